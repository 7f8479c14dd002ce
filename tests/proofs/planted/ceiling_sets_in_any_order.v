(* Sets at the ceiling of a prefix, the tokens in any order. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws priorities proxy.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (n m : nat) (p q : nat -> R) :
  (0 < n)%N -> (forall i, (i < m)%N -> 0 < q i) -> upto q m = 1 ->
  (forall i, (i < m)%N -> 0 <= p i) -> (* right: (forall i l, (i <= l < m)%N -> p i / q i <= p l / q l) -> *)
  exists h c1 c2 (sets : 'I_m -> 'I_m -> R), [/\ (h <= m)%N, priority_sets n q (proxy h p q c1 c2) sets &
    \sum_(i < m) Num.min (p i) (proxy h p q c1 c2 i) = 1 + upto p h - upto q h ^+ n].
Proof. by move=> n0 q0 q1 ascending; apply: ceiling_sets_exist. Qed.

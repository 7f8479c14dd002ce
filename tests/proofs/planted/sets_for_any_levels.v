(* Sets for levels that give the prefix less than its mass. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws priorities proxy.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (n m h : nat) (p q : nat -> R) (c1 c2 : R) :
  (0 < n)%N -> (h <= m)%N -> (forall i, (i < m)%N -> 0 < q i) ->
  least_prefix n m h p q ->
  upto (proxy h p q c1 c2) h <= upto q h ^+ n -> (* right: upto (proxy h p q c1 c2) h = upto q h ^+ n -> *)
  upto (proxy h p q c1 c2) m = 1 ->
  exists sets : 'I_m -> 'I_m -> R, priority_sets n q (proxy h p q c1 c2) sets.
Proof. by move=> n0 hm q0 least mass_in mass_all; apply: proxy_sets_exist. Qed.

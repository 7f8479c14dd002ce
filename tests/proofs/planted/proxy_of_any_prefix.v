(* The proxy of a prefix that need not be the least. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws priorities proxy.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (n m h : nat) (p q : nat -> R) (c1 c2 : R) :
  (0 < n)%N -> (h <= m)%N -> (forall i, (i < m)%N -> 0 < q i) ->
  upto q m = 1 /\ (forall i l, (i <= l < m)%N -> p i / q i <= p l / q l) -> (* right: least_prefix n m h p q -> *)
  upto (proxy h p q c1 c2) h = upto q h ^+ n -> upto (proxy h p q c1 c2) m = 1 ->
  forall j, (j <= m)%N -> upto q j ^+ n <= upto (proxy h p q c1 c2) j.
Proof. by move=> n0 hm q0 least mass_in mass_all; apply: proxy_majorised. Qed.

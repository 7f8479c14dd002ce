(* Sets for a law whose prefix sums may fall below the n-th powers. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws priorities.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (n m : nat) (q k : nat -> R) :
  (0 < n)%N -> (forall i, (i < m)%N -> 0 < q i) ->
  (forall i l, (i <= l < m)%N -> k i / q i <= k l / q l) ->
  (forall j, (j <= m)%N -> upto q j ^+ n.+1 <= upto k j) -> (* right: (forall j, (j <= m)%N -> upto q j ^+ n <= upto k j) -> *)
  upto k m = upto q m ^+ n -> exists sets : 'I_m -> 'I_m -> R, priority_sets n q k sets.
Proof. by move=> n0 q0 k_up prefix total; apply: priority_sets_exist. Qed.

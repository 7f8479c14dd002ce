(* Strict monotonicity as the paper states it. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V : finType) (cap q : V -> R) (Z Z' : R) :
  (forall x, 0 <= cap x) -> law q -> 0 < Z -> Z < Z' ->
  (exists x, 0 <= cap x /\ cap x < Z' * q x) -> (* right: (exists x, 0 < cap x /\ cap x < Z' * q x) -> *)
  drift cap q Z < drift cap q Z'.
Proof. by move=> c0 lq Z0 lt bottleneck; apply/(drift_strict_iff q c0 Z0 lt). Qed.

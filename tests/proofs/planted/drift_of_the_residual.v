(* That the next residual itself is nowhere larger: it is renormalised, so only its overlap with q shrinks. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V : finType) (w d : V -> R) x : 0 <= w x -> 0 <= d x ->
  residue w d x <= w x. (* right: Num.min (residue w d x) (d x) <= Num.min (w x) (d x). *)
Proof. by move=> w0 d0; apply: residual_drift. Qed.

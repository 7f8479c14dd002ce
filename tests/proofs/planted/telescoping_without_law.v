(* Appendix B with a division by zero and no law to excuse it. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V : finType) (p : V -> R) (k : nat -> V -> R) n y :
  (forall x, 0 <= p x) -> appendixB p k n y = p y. (* right: law p -> appendixB p k n y = p y. *)
Proof. by move=> lp; apply: appendixB_telescopes_law. Qed.

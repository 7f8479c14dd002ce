(* The published rule claimed exact at the witness. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted : @output _ _ (published q3 (proportional q3)) 1 p3
  =1 p3. (* right: =1 three (frac 107 282) (frac 46 105) (frac 1801 (94 * 105)). *)
Proof. by move=> y; rewrite proportional_law; move: y; apply: each3; apply/eqP; vm_compute. Qed.

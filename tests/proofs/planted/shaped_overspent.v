(* Shaping with a T that overspends. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V : finType) (p q : V -> R) n (T : R) :
  law p -> law q ->
  tau p q T n <= 0 -> (* right: 0 <= tau p q T n -> *)
  @exact _ _ (chain q (shaped_residual p q T)) n 0%N p.
Proof. by move=> lp lq tn; apply: shaped_exact. Qed.

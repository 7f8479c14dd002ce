(* Recursive rejection tested against a law other than the one the candidates come from. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V : finType) (D E : seq V -> V -> R) (p : V -> R) n :
  law p -> drawable_after D n [::] -> (forall h, law (E h)) ->
  @exact _ _ (recursive E) n (p, [::]) p. (* right: @exact _ _ (recursive D) n (p, [::]) p. *)
Proof. by move=> lp dr lE; apply: recursive_exact. Qed.

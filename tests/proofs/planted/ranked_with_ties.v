(* Rankings with ties: the highest candidate is not one. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone ranked without prefix.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V I : finType) n (w : n.-tuple V -> R) (c : I -> R) (ranks : I -> V -> nat) (p : V -> R) y :
  law p -> law c -> (0 < n)%N -> (forall t, 0 <= w t) -> \sum_t w t = 1 ->
  (forall i x, ranks i x <= #|V|)%N -> (* right: (forall i, injective (ranks i)) -> *)
  optimal_output p w (mixed c ranks) y = p y.
Proof. by move=> lp lc n0 w0 w1 inj; apply: ranked_exact. Qed.

(* The optimal proxy verified without knowing that the selection is a law. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V : finType) (p : V -> R) n (w : n.-tuple V -> R) (sel : n.-tuple V -> V -> R) y :
  law p -> (forall t, 0 <= w t) -> \sum_t w t = 1 -> (forall t x, 0 <= sel t x) ->
  (forall t, \sum_x sel t x <= 1) -> (* right: (forall t, \sum_x sel t x = 1) -> *)
  optimal_output p w sel y = p y.
Proof. by move=> lp w0 w1 s0 s1; apply: optimal_exact. Qed.

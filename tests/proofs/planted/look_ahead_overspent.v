(* A look ahead whose plan may take more of the second candidate than is owed. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone ranked without prefix.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V : finType) (m b : (V -> R) -> (V -> R) -> V -> R) (p q : V -> R) n :
  (forall w d, law w -> law d -> (forall x, d x != 1) -> forall y, [/\ 0 <= m w d y, m w d y <= d y, 0 <= b w d y & b w d y <= 1]) -> (* right: sound m b -> *)
  law p -> law q -> (n <= #|[pred x | q x != 0%R]|)%N ->
  @exact _ _ (look_ahead m b) n (n, (p, q)) p.
Proof. by move=> so lp lq le_n; apply: look_ahead_exact. Qed.

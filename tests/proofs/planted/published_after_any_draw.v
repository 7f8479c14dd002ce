(* The published rule claimed exact for draws that are not fixed. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone ranked without prefix.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V : finType) (D : seq V -> V -> R) (shape : (V -> R) -> (V -> R) -> V -> V -> R) (p : V -> R) n :
  (forall h, law (D h)) -> (* right: (forall h, exists x, D h =1 (fun y => (y == x)%:R)) -> *)
  (forall d w x, law w -> w x < d x -> (forall y, shape d w x y <= drop w x y) /\ \sum_y shape d w x y = d x - w x) ->
  law p -> @exact _ _ (published_after D shape) n (p, [::]) p.
Proof. by move=> fixed fills lp; apply: published_fixed_exact. Qed.

(* An exchange between groups that may be too close in height. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws priorities.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (I : finType) (q u v : I -> R) (f : I -> I -> R) :
  (forall g, 0 <= q g) ->
  [/\ forall i l, 0 <= f i l, forall i, \sum_l f i l = pos (q i * (v i - u i)) & forall l, \sum_i f i l = pos (q l * (u l - v l))] -> (* right: flow q u v f -> *)
  placement q u v (exchanged q u f).
Proof. by move=> q0 f_ok; apply: exchange_places. Qed.

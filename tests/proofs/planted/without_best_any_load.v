(* The best sequential rule claimed for every load. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone ranked without prefix.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V : finType) (p q : V -> R) (load : (V -> R) -> (V -> R) -> R) (a f : seq V -> V -> R) :
  law p -> law q -> (1 < #|[pred x | q x != 0%R]|)%N ->
  (forall h x, 0 <= a h x <= 1) -> (forall h y, 0 <= f h y) -> @exact _ _ (decide q a f) 2 [::] p ->
  0 <= load p q -> (* right: load p q = \sum_x refused load p q x / (1 - q x) -> *)
  @acceptance _ _ (decide q a f) 2 [::] <= @acceptance _ _ (shaped_without load) 2 (2%N, (p, q)).
Proof. by move=> lp lq lt1 a01 f0 ex root; apply: shaped_without_best. Qed.

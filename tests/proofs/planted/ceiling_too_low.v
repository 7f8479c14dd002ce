(* A ceiling that is too low for n > 1. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V : finType) (p q : V -> R) n (J : n.-tuple V -> V -> R) (H : pred V) :
  law q -> (forall t y, 0 <= J t y) -> (forall y, \sum_t J t y = p y) ->
  (forall t : n.-tuple V, \sum_y J t y = \prod_(x <- t) q x) ->
  accepted J <= 1 + \sum_(y | H y) p y - \sum_(x | H x) q x. (* right: accepted J <= 1 + \sum_(y | H y) p y - (\sum_(x | H x) q x) ^+ n. *)
Proof. by move=> lq J0 Jp Jq; apply: ceiling. Qed.

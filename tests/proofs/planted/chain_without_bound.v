(* A chain without the upper bound r_i - r_{i+1} <= S_i q. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V : finType) (p q : V -> R) n (r : nat -> V -> R) :
  law p -> law q -> r 0%N =1 p -> (forall x, 0 <= r n x) ->
  (forall i, (i < n)%N -> forall x, 0 <= r i x - r i.+1 x) -> (* right: (forall i, (i < n)%N -> forall x, 0 <= r i x - r i.+1 x /\ r i x - r i.+1 x <= left_mass r i * q x) -> *)
  @exact _ _ (chain q r) n 0%N p.
Proof. by move=> lp lq start last step; apply: chain_is_exact. Qed.

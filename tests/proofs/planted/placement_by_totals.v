(* Sets from the total alone. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws priorities.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (m : nat) (q u v : nat -> R) :
  (forall i, (i < m)%N -> 0 <= q i) -> (forall i l, (i <= l < m)%N -> v i <= v l) ->
  \sum_(i < m) q i * v i = \sum_(i < m) q i * u i -> (* right: majorised m q u v -> *)
  exists sets, placement (fun i : 'I_m => q i) (fun i => u i) (fun i => v i) sets.
Proof. by move=> q0 v_up maj; apply: placement_exists. Qed.

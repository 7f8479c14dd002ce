(* A matching in the order of the heights, the wanted values in any order. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws priorities.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (m : nat) (q u v : nat -> R) :
  (forall i, (i < m)%N -> 0 <= q i) ->
  (forall i l, (i <= l < m)%N -> u i <= u l) -> (* right: (forall i l, (i <= l < m)%N -> v i <= v l) -> *)
  majorised m q u v ->
  flow (fun i : 'I_m => q i) (fun i => u i) (fun i => v i) (matched q u v).
Proof. by move=> q0 up maj; apply: matched_flow. Qed.

(* Prefixes claimed minimal for any set function. Must not compile. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone ranked without prefix.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem planted (R : realFieldType) (V : finType) (p q : V -> R) (W : {set V} -> R) :
  (forall x, 0 < q x) ->
  (forall G H : {set V}, G \subset H -> W G <= W H) -> (* right: gains_grow q W -> *)
  exists H : {set V}, (forall K, set_bound p W H <= set_bound p W K)
                      /\ (forall i j, i \in H -> j \notin H -> p i / q i < p j / q j).
Proof. by move=> q0 grow; apply: prefix_minimal. Qed.

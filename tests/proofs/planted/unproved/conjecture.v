(* Compiles without any of the words searched for: only the printed assumptions give it away. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Resispec Require Import laws procedure chain shaped sequential telescoping ceiling published monotone.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Conjecture planted : forall (R : realFieldType) (V : finType) (p q : V -> R) n, @exact _ _ (specinfer q) n p p.
Print Assumptions planted.

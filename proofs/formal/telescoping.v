(* The identity of the paper's Appendix B: it holds for one fixed chain of arbitrary proxies k_0, k_1, ...,
   so it says nothing about the rule that chose them. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Telescoping.
Variables (R : realFieldType) (V : finType) (p : V -> R) (k : nat -> V -> R).

(* p_{i+1} = (p_i - min(p_i, k_i)) / (1 - beta_i) with beta_i = sum min(p_i, k_i). *)
Fixpoint left i x : R :=
  if i is j.+1
  then (left j x - Num.min (left j x) (k j x)) / (1 - \sum_z Num.min (left j z) (k j z))
  else p x.
Definition beta i : R := \sum_z Num.min (left i z) (k i z).
Definition reach i : R := \prod_(j < i) (1 - beta j).

(* min(k_1, p) + (1 - beta_1) min(k_2, p_2) + ... + prod (1 - beta_i) p_{n+1}. *)
Definition appendixB n y : R :=
  \sum_(i < n) reach i * Num.min (left i y) (k i y) + reach n * left n y.

Lemma appendixB_step n y :
    (forall i, (i < n)%N -> reach i.+1 * left i.+1 y = reach i * (left i y - Num.min (left i y) (k i y))) ->
  appendixB n y = p y.
Proof.
rewrite /appendixB; elim: n => [|n IH] H; first by rewrite big_ord0 /reach big_ord0 /=; ring.
rewrite big_ord_recr /= H // -[RHS]IH => [|i lt_in]; last by rewrite H // ltnS ltnW.
by rewrite mulrBr -addrA [_ * Num.min _ _ + _]addrC subrK.
Qed.

(* k is arbitrary: it need not be non-negative, sum to one, or come from p and q. *)
Theorem appendixB_telescopes n y : (forall i, (i < n)%N -> 1 - beta i != 0) -> appendixB n y = p y.
Proof.
move=> NE; apply: appendixB_step => i lt_in.
by rewrite /reach big_ord_recr /= -/(beta i) -mulrA [(1 - beta i) * _]mulrC divfK ?NE.
Qed.

(* With p a law no assumption is needed, dividing by zero giving zero: a factor 1 - beta_i = 0 leaves nothing. *)
Theorem appendixB_telescopes_law n y : law p -> appendixB n y = p y.
Proof.
move=> lp; have L i : reach i = 0 \/ law (left i).
  elim: i => [|i [E|li]]; first by right.
    by left; rewrite /reach big_ord_recr /= -/(reach i) E mul0r.
  have [E|NE] := eqVneq (1 - beta i) 0.
    by left; rewrite /reach big_ord_recr /= E mulr0.
  pose w x := left i x - Num.min (left i x) (k i x).
  have D : \sum_x w x = 1 - beta i by rewrite sumrB (law_sum li).
  have w0 x : 0 <= w x by rewrite subr_ge0 le_minl lexx.
  have lw : law (norm w) by apply: norm_law => //; rewrite D.
  have E x : left i.+1 x = norm w x by rewrite /norm D.
  by right; split=> [x|]; [rewrite E (law_ge0 _ lw) | rewrite (eq_bigr _ (fun x _ => E x)) (law_sum lw)].
apply: appendixB_step => i lt_in; rewrite {1}/reach big_ord_recr /= -/(reach i) -/(beta i).
have [E|li] := L i; first by rewrite E !mul0r.
have [E|NE] := eqVneq (1 - beta i) 0; last by rewrite -mulrA [(1 - beta i) * _]mulrC divfK.
have D : \sum_x (left i x - Num.min (left i x) (k i x)) = 0.
  by rewrite sumrB (law_sum li).
rewrite E mulr0 mul0r (sum0_eq0 _ D) ?mulr0 // => x.
by rewrite subr_ge0 le_minl lexx.
Qed.

End Telescoping.

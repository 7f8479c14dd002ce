(* Probability laws on a finite set of tokens, and the two facts on sums over candidate tuples that
   every other file uses. Tokens: a finite type V. Weights: any real field R (the rationals included). *)
From mathcomp Require Import all_ssreflect all_algebra ring.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Laws.
Variables (R : realFieldType) (V : finType).
Implicit Types (p q w : V -> R) (x y : V).

(* A probability law: non-negative weights that sum to one. *)
Definition law p := (forall x, 0 <= p x) /\ \sum_x p x = 1.

(* (z)+ = max(z, 0), and the weights w rescaled to sum to one (all zero when w sums to zero). *)
Definition pos (z : R) : R := Num.max z 0.
Definition norm w x : R := w x / \sum_z w z.

Lemma law_ge0 p x : law p -> 0 <= p x.
Proof. by case. Qed.

Lemma law_sum p : law p -> \sum_x p x = 1.
Proof. by case. Qed.

Lemma pos_ge0 z : 0 <= pos z.
Proof. by rewrite /pos le_maxr lexx orbT. Qed.

Lemma pos_ge z : z <= pos z.
Proof. by rewrite /pos le_maxr lexx. Qed.

Lemma pos_id z : 0 <= z -> pos z = z.
Proof. by move=> h; rewrite /pos max_l. Qed.

Lemma pos_eq0 z : z <= 0 -> pos z = 0.
Proof. by move=> h; rewrite /pos max_r. Qed.

(* min(a, b) + (a - b)+ = a. *)
Lemma min_pos (a b : R) : Num.min a b + pos (a - b) = a.
Proof.
rewrite /pos; case: (leP a b) => h.
  by rewrite max_r ?addr0 // subr_le0.
by rewrite max_l ?subr_ge0 1?ltW //; ring.
Qed.

Lemma sum_pos p q : \sum_x pos (p x - q x) = \sum_x p x - \sum_x Num.min (p x) (q x).
Proof.
apply/eqP; rewrite eq_sym subr_eq addrC -big_split /=; apply/eqP.
by apply: eq_bigr => x _; rewrite min_pos.
Qed.

Lemma sum_min_le p q : law p -> \sum_x Num.min (p x) (q x) <= 1.
Proof. by move=> lp; rewrite -(law_sum lp) ler_sum // => x _; rewrite le_minl lexx. Qed.

(* Non-negative weights with a zero sum vanish. *)
Lemma sum0_eq0 w : (forall x, 0 <= w x) -> \sum_x w x = 0 -> forall x, w x = 0.
Proof. by move=> w0 sw x; apply: (psumr_eq0P _ sw) => // y _; exact: w0. Qed.

Lemma norm_law w : (forall x, 0 <= w x) -> \sum_x w x != 0 -> law (norm w).
Proof.
move=> w0 sw; split=> [x|]; first by rewrite /norm divr_ge0 // sumr_ge0.
by rewrite /norm -mulr_suml divff.
Qed.

Lemma sum_indicator (f : V -> R) y : \sum_x f x * (x == y)%:R = f y.
Proof.
rewrite (bigD1 y) //= eqxx mulr1 big1 ?addr0 // => x /negbTE ->.
by rewrite mulr0.
Qed.

(* A sum over all (n+1)-tuples is a sum over the first token and over the n-tuple of the others. *)
Lemma sum_tuple_cons n (F : seq V -> R) :
  \sum_(t : n.+1.-tuple V) F t = \sum_x \sum_(t : n.-tuple V) F (x :: t).
Proof.
rewrite pair_big /=.
rewrite (reindex (fun xt : (V * n.-tuple V)%type => [tuple of xt.1 :: xt.2])) //=.
pose split_head (t : n.+1.-tuple V) : V * n.-tuple V := (thead t, [tuple of behead t]).
exists split_head => [[x t] _|t _]; last by rewrite [RHS]tuple_eta; apply: val_inj.
by rewrite /split_head theadE; congr pair; apply: val_inj.
Qed.

Lemma sum_tuple0 (F : seq V -> R) : \sum_(t : 0.-tuple V) F t = F [::].
Proof. by rewrite (eq_bigr (fun=> F [::])) ?sumr_const ?card_tuple ?expn0 // => t _; rewrite tuple0. Qed.

(* The probability that n independent draws from q all fall in H is q(H)^n. *)
Lemma sum_tuple_all n q (H : pred V) :
  \sum_(t : n.-tuple V) (\prod_(x <- t) q x) * (all H t)%:R = (\sum_(x | H x) q x) ^+ n.
Proof.
elim: n => [|n IH].
  by rewrite (sum_tuple0 (fun t => (\prod_(x <- t) q x) * (all H t)%:R)) big_nil mulr1 expr0.
rewrite (sum_tuple_cons _ (fun t => (\prod_(x <- t) q x) * (all H t)%:R)) exprS -IH [\sum_(x | H x) q x]big_mkcond mulr_suml.
apply: eq_bigr => x _; case Hx: (H x); rewrite /= Hx /=.
  by rewrite big_distrr /=; apply: eq_bigr => t _; rewrite big_cons; ring.
by rewrite mul0r big1 // => t _; rewrite mulr0.
Qed.

Lemma sum_tuple_prod n q : \sum_x q x = 1 -> \sum_(t : n.-tuple V) \prod_(x <- t) q x = 1.
Proof.
move=> sq; have := sum_tuple_all n q predT; rewrite sq expr1n => all1; rewrite -[RHS]all1.
by apply: eq_bigr => t _; rewrite all_predT mulr1n mulr1.
Qed.

End Laws.

(* The ceiling on acceptance of any exact verifier, and two verifiers stated as joint laws: target-match and
   the optimal proxy. A verifier is here any joint law J of (candidates, output). *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws procedure sequential.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Ceiling.
Variables (R : realFieldType) (V : finType) (p q : V -> R) (n : nat).
Hypotheses (lp : law p) (lq : law q).

Section Joint.
Variable J : n.-tuple V -> V -> R.
Hypothesis J_ge0 : forall t y, 0 <= J t y.
Hypothesis J_exact : forall y, \sum_t J t y = p y.

(* The output is one of the candidates. *)
Definition accepted : R := \sum_(t : n.-tuple V) \sum_(y | y \in t) J t y.

(* An accepted output lies in H, or some candidate lies outside H. Any draft law. *)
Theorem ceiling_any_draft (H : pred V) :
  accepted <= \sum_(y | H y) p y + \sum_(t : n.-tuple V | ~~ all H t) \sum_y J t y.
Proof.
have -> : \sum_(y | H y) p y = \sum_t \sum_(y | H y) J t y.
  by rewrite exchange_big /=; apply: eq_bigr => y _; rewrite J_exact.
rewrite [X in _ + X]big_mkcond -big_split /= ler_sum // => t _.
have JH : 0 <= \sum_(y | H y) J t y by apply: sumr_ge0.
case: allP => [all_H|_] /=; last first.
  by rewrite ler_paddl // [X in X <= _]big_mkcond ler_sum // => y _; case: ifP.
rewrite addr0 big_mkcond [X in _ <= X]big_mkcond ler_sum // => y _.
by case: ifP => [/all_H ->//|_]; case: ifP.
Qed.

(* n independent candidates. *)
Theorem ceiling (H : pred V) : (forall t, \sum_y J t y = \prod_(x <- t) q x) ->
  accepted <= 1 + \sum_(y | H y) p y - (\sum_(x | H x) q x) ^+ n.
Proof.
move=> J_draft; apply: le_trans (ceiling_any_draft H) _.
rewrite [1 + _]addrC -addrA ler_add2l ler_subr_addr -(sum_tuple_all n q H) [X in X + _]big_mkcond -big_split /=.
rewrite -[X in _ <= X](sum_tuple_prod n (law_sum lq)) ler_sum // => t _; rewrite J_draft.
by case: (all H t); rewrite /= ?mulr1 ?mulr0 ?add0r ?addr0.
Qed.

(* Deterministic candidates (all draws in a fixed set S): at most p(S). *)
Theorem deterministic_ceiling (S : pred V) :
  (forall t : n.-tuple V, ~~ all S t -> \sum_y J t y = 0) -> accepted <= \sum_(y | S y) p y.
Proof.
move=> J_S; apply: le_trans (ceiling_any_draft S) _.
by rewrite [X in _ + X]big1 ?addr0.
Qed.

End Joint.

(* The same bound for the procedures of this development, counting a candidate only where its own coin took it. *)
Section ProcedureCeiling.
Variables (M : procedure R V) (ok : state M -> Prop) (H : pred V).
Hypotheses (iid : forall s : state M, draw s =1 q) (prM : proper ok).

Let drawn (xs : seq V) := all (fun x => q x != 0) xs.

Let split_next s x (P : R -> Prop) : ok s -> q x != 0 ->
  (1 - acc s x = 0 -> P 0) -> (ok (next s x) -> P (1 - acc s x)) -> P (1 - acc s x).
Proof.
move=> oks qx P0 P1; have [E|NE] := eqVneq (acc s x) 1.
  by rewrite E subrr in P0 *; apply: P0.
by apply: P1; case: (prM oks) => _ _; apply=> //; rewrite iid.
Qed.

Let run_ge0 xs s y : ok s -> drawn xs -> 0 <= @run _ _ M s xs y.
Proof.
elim: xs s => [|x xs IH] s oks /=; first by case: (prM oks).
case/andP=> qx dxs; have [/(_ x) [a0 a1] _ _] := prM oks.
rewrite addr_ge0 //; first by rewrite mulr_ge0 ?ler0n.
apply: (@split_next s x (fun z => 0 <= z * @run _ _ M (next s x) xs y)) => // [_|okn]; first by rewrite mul0r.
by rewrite mulr_ge0 ?subr_ge0 // IH.
Qed.

Let hit_le1 xs s : ok s -> drawn xs -> @hit _ _ M s xs <= 1.
Proof.
elim: xs s => [|x xs IH] s oks /=; first by rewrite ler01.
case/andP=> qx dxs; have [/(_ x) [a0 a1] _ _] := prM oks.
rewrite -ler_subr_addl.
apply: (@split_next s x (fun z => z * _ <= 1 - acc s x)) => // [_|okn].
  by rewrite mul0r subr_ge0.
by rewrite ler_pimulr ?subr_ge0 // IH.
Qed.

Let hit_le_run xs s : ok s -> drawn xs -> all H xs ->
  @hit _ _ M s xs <= \sum_(y | H y) @run _ _ M s xs y.
Proof.
elim: xs s => [|x xs IH] s oks /=.
  by move=> _ _; apply: sumr_ge0 => y _; case: (prM oks).
case/andP=> qx dxs /andP [Hx Hxs]; have [/(_ x) [a0 a1] _ _] := prM oks.
rewrite big_split /= -!big_distrr /= ler_add //.
  by rewrite (bigD1 x) //= eqxx mulrDr mulr1 ler_addl mulr_ge0 // sumr_ge0 // => y _; rewrite ler0n.
apply: (@split_next s x (fun z => z * _ <= z * _)) => // [_|okn]; first by rewrite !mul0r.
by rewrite ler_wpmul2l ?subr_ge0 // IH.
Qed.

Theorem procedure_ceiling (s : state M) : ok s -> exact n s p ->
  acceptance n s <= 1 + \sum_(y | H y) p y - (\sum_(x | H x) q x) ^+ n.
Proof.
move=> oks ex.
have pH : \sum_(y | H y) p y = \sum_(t : n.-tuple V) weight s t * \sum_(y | H y) @run _ _ M s t y.
  rewrite (eq_bigr _ (fun y _ => esym (ex y))) /output exchange_big /=.
  by apply: eq_bigr => t _; rewrite big_distrr.
have w0 (t : seq V) : 0 <= @weight _ _ M s t.
  by rewrite (iid_weight iid); apply: prodr_ge0 => x _; exact: law_ge0 lq.
rewrite ler_subr_addr -(sum_tuple_all n q H) pH [1 + _]addrC -[X in _ <= _ + X](sum_tuple_prod n (law_sum lq)).
rewrite /acceptance -!big_split /= ler_sum // => t _; rewrite -(iid_weight iid s t).
have [->|NE] := eqVneq (@weight _ _ M s t) 0; first by rewrite !mul0r !addr0.
have dt : drawn t.
  apply/allP => x xt; apply: contra_neq NE => qx0; rewrite (iid_weight iid).
  by rewrite (big_rem x xt) /= qx0 mul0r.
have R0 : 0 <= \sum_(y | H y) @run _ _ M s t y by apply: sumr_ge0 => y _; exact: run_ge0.
case all_H: (all H t); rewrite /= ?mulr1 ?mulr0 ?addr0.
  by rewrite ler_add2r ler_wpmul2l // hit_le_run.
by rewrite ler_paddl ?mulr_ge0 // ler_pimulr // hit_le1.
Qed.

End ProcedureCeiling.

(* The premises can be met: SpecInfer, whose states are laws. *)
Corollary specinfer_ceiling (H : pred V) :
  @acceptance _ _ (specinfer q) n p <= 1 + \sum_(y | H y) p y - (\sum_(x | H x) q x) ^+ n.
Proof.
apply: (@procedure_ceiling (specinfer q) (fun w : V -> R => law w)) => //; last first.
  exact: specinfer_published_exact.
move=> w lw; split=> [x|y|x qx ax] /=; last first.
- by apply: (step_reaches (x := x) lw lq); rewrite mulf_neq0 // subr_eq0 eq_sym.
- exact: law_ge0 lw.
- by rewrite /ratio le_minr ler01 le_minl lexx divr_ge0 ?(law_ge0 _ lw) ?(law_ge0 _ lq).
Qed.

(* Target-match: draw y from p, accept where it is among the candidates, output y in any case. *)
Theorem target_match_exact (w : n.-tuple V -> R) y : \sum_t w t = 1 -> \sum_t w t * p y = p y.
Proof. by move=> w1; rewrite -big_distrl /= w1 mul1r. Qed.

Theorem target_match_acceptance :
  \sum_(t : n.-tuple V) (\prod_(x <- t) q x) * (\sum_(y | y \in t) p y)
  = \sum_y p y * (1 - (1 - q y) ^+ n).
Proof.
rewrite (eq_bigr (fun t : n.-tuple V => \sum_y (\prod_(x <- t) q x) * (if y \in t then p y else 0)))
  => [|t _]; last by rewrite [X in _ * X]big_mkcond big_distrr.
rewrite exchange_big /=; apply: eq_bigr => y _.
have -> : (1 - q y) ^+ n = (\sum_(x | x != y) q x) ^+ n.
  by rewrite -(law_sum lq) (bigD1 y) //= addrC addKr.
rewrite -(sum_tuple_all n q (fun x => x != y)) -[X in _ = _ * (X - _)](sum_tuple_prod n (law_sum lq)) -sumrB big_distrr /=.
apply: eq_bigr => t _; have -> : all (fun x => x != y) t = (y \notin t).
  by rewrite memtE; elim: (tval t) => //= x xs ->; rewrite in_cons negb_or eq_sym.
by case: ifP => _ /=; ring.
Qed.

(* The optimal proxy: select one candidate (sel t x), with marginal law k, and verify it once against p. *)
Section Selection.
Variables (w : n.-tuple V -> R) (sel : n.-tuple V -> V -> R).
Hypotheses (w0 : forall t, 0 <= w t) (w1 : \sum_t w t = 1).
Hypotheses (sel0 : forall t x, 0 <= sel t x) (sel1 : forall t, \sum_x sel t x = 1).

Definition selected x : R := \sum_t w t * sel t x.
Let a x : R := Num.min 1 (p x / selected x).
Let f : V -> R := norm (fun y => pos (p y - selected y)).

Definition optimal_output y : R :=
  \sum_t w t * \sum_x sel t x * (a x * (x == y)%:R + (1 - a x) * f y).
Definition optimal_accepted : R := \sum_t w t * \sum_x sel t x * a x.

Lemma selected_sum (g : V -> R) : \sum_t w t * (\sum_x sel t x * g x) = \sum_x selected x * g x.
Proof.
rewrite (eq_bigr (fun t => \sum_x w t * (sel t x * g x))) => [|t _]; last by rewrite big_distrr.
rewrite exchange_big /=; apply: eq_bigr => x _; rewrite /selected big_distrl /=.
by apply: eq_bigr => t _; rewrite mulrA.
Qed.

Lemma selected_law : law selected.
Proof.
split=> [x|]; first by apply: sumr_ge0 => t _; rewrite mulr_ge0.
rewrite /selected exchange_big /= -[RHS]w1; apply: eq_bigr => t _.
by rewrite -big_distrr /= sel1 mulr1.
Qed.

Theorem optimal_exact y : optimal_output y = p y.
Proof.
rewrite /optimal_output selected_sum -[RHS](step_balance y lp selected_law).
rewrite -(sum_indicator (fun x => selected x * ratio p selected x)) -big_split /=.
by apply: eq_bigr => x _; rewrite /a /f /ratio /residue; ring.
Qed.

Theorem optimal_acceptance : optimal_accepted = \sum_x Num.min (p x) (selected x).
Proof.
rewrite /optimal_accepted selected_sum; apply: eq_bigr => x _.
by rewrite -accepted_min ?(law_ge0 _ lp) ?(law_ge0 _ selected_law).
Qed.

End Selection.

(* A proxy above p on H, below p elsewhere, with mass q(H)^n on H, meets the ceiling of H. *)
Theorem optimal_meets_ceiling (k : V -> R) (H : pred V) :
    (forall x, H x -> p x <= k x) -> (forall x, ~~ H x -> k x <= p x) ->
    \sum_(x | ~~ H x) k x = 1 - (\sum_(x | H x) q x) ^+ n ->
  \sum_x Num.min (p x) (k x) = 1 + \sum_(x | H x) p x - (\sum_(x | H x) q x) ^+ n.
Proof.
move=> in_H out_H k_out; rewrite (bigID H) /= [1 + _]addrC -addrA -k_out; congr (_ + _).
  by apply: eq_bigr => x Hx; rewrite min_l ?in_H.
by apply: eq_bigr => x Hx; rewrite min_r ?out_H.
Qed.

End Ceiling.

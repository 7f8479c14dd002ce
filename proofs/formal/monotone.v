(* Theorem 2 of the paper: the distance between the residual r / Z and q as a function of the budget Z. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Drift.
Variables (R : realFieldType) (V : finType) (cap q : V -> R).
(* cap: the capacity each token offers, p(y), with 0 at the rejected token. *)
Hypotheses (cap0 : forall x, 0 <= cap x) (lq : law q).

(* D(Z) = || r / Z - q ||_1 for every residual between min(Z q, cap) and cap with sum Z. *)
Definition drift Z : R := \sum_x pos (q x - cap x / Z) *+ 2.

Theorem residual_distance Z (r : V -> R) : 0 < Z -> \sum_x r x = Z ->
    (forall x, Num.min (Z * q x) (cap x) <= r x /\ r x <= cap x) ->
  \sum_x `|r x / Z - q x| = drift Z.
Proof.
move=> Z0 sr box; have S0 : \sum_x (r x / Z - q x) = 0 by rewrite sumrB -big_distrl /= sr divff ?gt_eqF // (law_sum lq) subrr.
rewrite -[LHS]subr0 -[X in _ - X = _]S0 -sumrB; apply: eq_bigr => x _; have [lo hi] := box x.
have [le|gt] := leP (Z * q x) (cap x).
  have le_r : q x <= r x / Z by rewrite ler_pdivl_mulr // mulrC; apply: le_trans lo; rewrite le_minr lexx.
  rewrite ger0_norm ?subr_ge0 // subrr pos_eq0 ?mul0rn // subr_le0 ler_pdivl_mulr // mulrC.
  exact: le.
have -> : r x = cap x by apply/eqP; rewrite eq_le hi; apply: le_trans lo; rewrite le_minr lexx andbT ltW.
have le_q : cap x / Z <= q x by rewrite ler_pdivr_mulr // mulrC ltW.
by rewrite ler0_norm ?subr_le0 // pos_id ?subr_ge0 // opprB mulr2n.
Qed.

Let grows Z Z' x : 0 < Z -> Z <= Z' -> pos (q x - cap x / Z) *+ 2 <= pos (q x - cap x / Z') *+ 2.
Proof.
move=> Z0 le_Z; have Z'0 := lt_le_trans Z0 le_Z.
rewrite ler_muln2r /= /pos le_maxl !le_maxr lexx orbT andbT ler_add2l ler_opp2.
by rewrite ler_wpmul2l // lef_pinv ?posrE.
Qed.

(* A smaller budget is never worse. *)
Theorem drift_monotone Z Z' : 0 < Z -> Z <= Z' -> drift Z <= drift Z'.
Proof. by move=> Z0 le_Z; apply: ler_sum => x _; exact: grows. Qed.

(* It is strictly better if and only if some token with positive capacity is a bottleneck at the larger budget. *)
Theorem drift_strict_iff Z Z' : 0 < Z -> Z < Z' ->
  (drift Z < drift Z') <-> (exists x, 0 < cap x /\ cap x < Z' * q x).
Proof.
move=> Z0 lt_Z; have Z'0 := lt_trans Z0 lt_Z; split=> [|[x [c0 lt_c]]]; last first.
  rewrite /drift (bigD1 x) //= [X in _ < X](bigD1 x) //= ltr_le_add //.
    rewrite ltr_pmuln2r // [X in _ < X]pos_id; last first.
      by rewrite subr_ge0 ler_pdivr_mulr // mulrC ltW.
    rewrite /pos lt_maxl subr_gt0 ltr_pdivr_mulr // [q x * Z']mulrC lt_c andbT.
    by rewrite ltr_add2l ltr_opp2 ltr_pmul2l // ltf_pinv ?posrE.
  by apply: ler_sum => z _; apply: grows => //; apply: ltW.
have [/existsP [x /andP [c0 lt_c]]|/existsPn none] := boolP [exists x, (0 < cap x) && (cap x < Z' * q x)].
  by exists x.
rewrite ltNge => /negP []; apply: ler_sum => x _; rewrite ler_muln2r /=.
have := none x; rewrite negb_and -!leNgt => /orP [le0|le_c].
  have -> : cap x = 0 by apply/eqP; rewrite eq_le le0 cap0.
  by rewrite !mul0r.
rewrite [X in X <= _]pos_eq0 ?pos_ge0 // subr_le0 ler_pdivl_mulr // mulrC.
exact: le_c.
Qed.

End Drift.

(* The paper's strict statement fails without that token: p = (1, 0), q = (1/2, 1/2) has D(Z) = 1 for all Z <= 1. *)
Section StrictFails.
Variable R : realFieldType.
Let p (b : bool) : R := b%:R.
Let q (b : bool) : R := 1 / 2%:R.

Theorem drift_strict_fails Z : 0 < Z -> Z <= 1 -> drift p q Z = 1.
Proof.
move=> Z0 Z1; rewrite /drift big_bool /= /p /q /= mul0r subr0.
have two0 : 0 < 2%:R :> R by rewrite ltr0n.
have H : 1 / 2%:R - 1 / Z <= 0.
  by rewrite subr_le0 !mul1r lef_pinv ?posrE //; apply: le_trans Z1 _; rewrite ler1n.
rewrite (pos_eq0 H) mul0rn add0r pos_id; first by rewrite [LHS]mulr2n -splitr.
by rewrite divr_ge0 ?ler01 // ltW.
Qed.

End StrictFails.

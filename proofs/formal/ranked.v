(* The highest ranked candidate: its law, from the probabilities that all candidates fall in a set, and the exactness
   of verifying it once. The candidates may be drawn in any way. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws procedure sequential ceiling.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Ranked.
Variables (R : realFieldType) (V : finType) (n : nat) (w : n.-tuple V -> R).

(* The probability that all candidates fall in H, and the choice of the highest ranked candidate. *)
Definition inclusion (H : pred V) : R := \sum_(t : n.-tuple V | all H t) w t.
Definition highest (rank : V -> nat) (t : n.-tuple V) x : R :=
  ((x \in t) && all (fun z => rank z <= rank x)%N t)%:R.

Lemma highest_split (rank : V -> nat) (t : n.-tuple V) x : injective rank ->
  highest rank t x
  = (all (fun z => rank z <= rank x)%N t)%:R - (all (fun z => rank z < rank x)%N t)%:R.
Proof.
move=> inj; rewrite /highest.
have [le_all|] := boolP (all (fun z => rank z <= rank x)%N t); last first.
  move=> nle; rewrite andbF; case: (boolP (all _ t)) => [lt_all|_]; last by rewrite subrr.
  by case/negP: nle; apply: sub_all lt_all => z; exact: ltnW.
rewrite andbT; have -> : all (fun z => rank z < rank x)%N t = (x \notin t).
  apply/allP/idP => [lt_all|nx z zt]; first by apply/negP => /lt_all; rewrite ltnn.
  rewrite ltn_neqAle (allP le_all _ zt) andbT; apply: contraNneq nx => /inj <- //.
by case: (x \in t); rewrite ?subr0 ?subrr.
Qed.

(* The law of the highest ranked candidate, from inclusion probabilities alone. *)
Theorem ranked_selected (rank : V -> nat) x : injective rank ->
  selected w (highest rank) x
  = inclusion (fun z => rank z <= rank x)%N - inclusion (fun z => rank z < rank x)%N.
Proof.
move=> inj; rewrite /selected /inclusion [X in _ = X - _]big_mkcond [X in _ = _ - X]big_mkcond -sumrB.
apply: eq_bigr => t _; rewrite highest_split //.
by case: (all _ t); case: (all _ t) => /=; ring.
Qed.

Lemma highest_law (rank : V -> nat) (t : n.-tuple V) : injective rank -> (0 < n)%N ->
  \sum_x highest rank t x = 1.
Proof.
move=> inj n0; have [x0 x0t] : exists x, x \in t.
  by exists (tnth t (Ordinal n0)); exact: mem_tnth.
case: (@arg_maxnP _ x0 (fun x => x \in t) rank x0t) => y yt y_max.
rewrite (bigD1 y) //= {1}/highest yt (introT allP) //= big1 ?addr0 // => x ne_xy.
rewrite /highest; case xt: (x \in t) => //=; case: allP => // le_x.
case/eqP: ne_xy; apply: inj; apply/eqP; rewrite eqn_leq le_x // andbT; exact: y_max.
Qed.

(* Weights c over a finite set of rankings: pick one, then its highest candidate. *)
Section Mixture.
Variables (I : finType) (c : I -> R) (ranks : I -> V -> nat) (p : V -> R).
Hypotheses (lp : law p) (lc : law c) (inj : forall i, injective (ranks i)) (n0 : (0 < n)%N).
Hypotheses (w0 : forall t, 0 <= w t) (w1 : \sum_t w t = 1).

Definition mixed (t : n.-tuple V) x : R := \sum_i c i * highest (ranks i) t x.

Lemma mixed_ge0 t x : 0 <= mixed t x.
Proof. by apply: sumr_ge0 => i _; rewrite mulr_ge0 ?(law_ge0 _ lc) // ler0n. Qed.

Lemma mixed_sum t : \sum_x mixed t x = 1.
Proof.
rewrite /mixed exchange_big /= -(law_sum lc); apply: eq_bigr => i _.
by rewrite -big_distrr /= highest_law // mulr1.
Qed.

Theorem ranked_mixture x : selected w mixed x
  = \sum_i c i * (inclusion (fun z => ranks i z <= ranks i x)%N - inclusion (fun z => ranks i z < ranks i x)%N).
Proof.
rewrite /selected /mixed (eq_bigr (fun t => \sum_i w t * (c i * highest (ranks i) t x))) => [|t _]; last first.
  by rewrite big_distrr.
rewrite exchange_big /=; apply: eq_bigr => i _; rewrite -ranked_selected // /selected big_distrr /=.
by apply: eq_bigr => t _; ring.
Qed.

Theorem ranked_exact y : optimal_output p w mixed y = p y.
Proof. exact: (optimal_exact lp w0 w1 mixed_ge0 mixed_sum). Qed.

Theorem ranked_acceptance : optimal_accepted p w mixed = \sum_x Num.min (p x) (selected w mixed x).
Proof. exact: (optimal_acceptance lp w0 w1 mixed_ge0 mixed_sum). Qed.

End Mixture.
End Ranked.

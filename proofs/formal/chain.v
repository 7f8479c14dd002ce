(* Memoryless verifiers of independent candidates, and the chains of residuals behind them.
   Stage i (counted from 0) accepts the candidate x with probability (a i x), whatever was rejected before;
   after n rejections the output is drawn from (f n). *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws procedure.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Chain.
Variables (R : realFieldType) (V : finType) (p q : V -> R).
Implicit Types (r a f : nat -> V -> R) (n i m : nat) (x y : V).

Definition memoryless a f : procedure R V :=
  Procedure (fun _ : nat => q) a (fun i _ => i.+1) f.

(* S_i, the mass of the residual r_i. *)
Definition left_mass r i : R := \sum_x r i x.

(* r_0 = p, 0 <= r_i - r_{i+1} <= S_i q for i < n, and 0 <= r_n. *)
Record valid_chain n r : Prop := ValidChain {
  chain_start : r 0%N =1 p;
  chain_step : forall i, (i < n)%N -> forall x,
    0 <= r i x - r i.+1 x /\ r i x - r i.+1 x <= left_mass r i * q x;
  chain_end : forall x, 0 <= r n x
}.

(* The residuals left by arbitrary acceptance probabilities. *)
Fixpoint residual a i x : R :=
  if i is j.+1 then residual a j x - (\sum_z residual a j z) * q x * a j x else p x.

Hypotheses (lp : law p) (lq : law q).

Let iid a f (s : state (memoryless a f)) : draw s =1 q.
Proof. by []. Qed.

Lemma residualS a i x :
  residual a i.+1 x = residual a i x - left_mass (residual a) i * q x * a i x.
Proof. by []. Qed.

Lemma residual_massS a i :
  left_mass (residual a) i.+1 = left_mass (residual a) i * (1 - \sum_x q x * a i x).
Proof.
rewrite /left_mass /= sumrB mulrBr mulr1 big_distrr /=; congr (_ - _).
by apply: eq_bigr => x _; rewrite mulrA.
Qed.

Lemma residual_mass0 a : left_mass (residual a) 0 = 1.
Proof. exact: law_sum lp. Qed.

Let stop_mass a i : \sum_x q x * (1 - a i x) = 1 - \sum_x q x * a i x.
Proof.
rewrite -[in RHS](law_sum lq) -sumrB.
by apply: eq_bigr => x _; rewrite mulrBr mulr1.
Qed.

Lemma memoryless_run a f m i y :
  left_mass (residual a) i * @output _ _ (memoryless a f) m i y
  = residual a i y - residual a (i + m) y + left_mass (residual a) (i + m) * f (i + m)%N y.
Proof.
elim: m i => [|m IH] i; first by rewrite output0 addn0 /=; ring.
rewrite (iid_outputS (law_sum lq) (@iid a f)) /= -big_distrl /= stop_mass mulrDr !mulrA -residual_massS.
by rewrite IH addSnnS residualS; ring.
Qed.

(* The output law of any memoryless verifier, exact or not. *)
Theorem memoryless_output a f n y :
  @output _ _ (memoryless a f) n 0%N y
  = p y - residual a n y + left_mass (residual a) n * f n y.
Proof. by rewrite -[LHS]mul1r -(residual_mass0 a) memoryless_run. Qed.

(* Its acceptance probability. *)
Theorem memoryless_acceptance a f n :
  @acceptance _ _ (memoryless a f) n 0%N = 1 - left_mass (residual a) n.
Proof.
suff run i m : left_mass (residual a) i * @acceptance _ _ (memoryless a f) m i
               = left_mass (residual a) i - left_mass (residual a) (i + m).
  by rewrite -[LHS]mul1r -(residual_mass0 a) run.
elim: m i => [|m IH] i; first by rewrite acceptance0 addn0; ring.
rewrite (iid_acceptanceS (law_sum lq) (@iid a f)) /= -big_distrl /= stop_mass mulrDr !mulrA -residual_massS.
by rewrite IH addSnnS (residual_massS a i) mulrBr mulr1 addrC addrAC subrK.
Qed.

(* A memoryless verifier is exact if and only if its final draw follows what is left. *)
Theorem memoryless_exact_iff a f n :
  @exact _ _ (memoryless a f) n 0%N p <->
  (forall y, residual a n y = left_mass (residual a) n * f n y).
Proof.
split=> H y; last by rewrite memoryless_output H; ring.
have := H y; rewrite memoryless_output => /eqP.
rewrite -subr_eq0 -[p y in X in _ - X]addr0 opprD addrACA [p y - _ - _]addrAC.
by rewrite subrr add0r oppr0 addr0 addrC subr_eq0 => /eqP.
Qed.

(* Every exact memoryless verifier is a chain, so a bound on chains is a bound on all of them. *)
Theorem memoryless_is_chain a f n :
    (forall i x, 0 <= a i x /\ a i x <= 1) -> (forall y, 0 <= f n y) ->
  @exact _ _ (memoryless a f) n 0%N p -> valid_chain n (residual a).
Proof.
move=> a01 f0 /memoryless_exact_iff E.
have S0 i : 0 <= left_mass (residual a) i.
  elim: i => [|i IH]; first by rewrite residual_mass0 ler01.
  rewrite residual_massS mulr_ge0 // subr_ge0 -(law_sum lq) ler_sum // => x _.
  by rewrite ler_pimulr ?(law_ge0 _ lq) //; case: (a01 i x).
split=> // [i _ x|x]; last by rewrite E mulr_ge0.
have [a0 a1] := a01 i x; have q0 := law_ge0 x lq.
have -> : residual a i x - residual a i.+1 x = left_mass (residual a) i * q x * a i x.
  by rewrite residualS subKr.
have Sq := mulr_ge0 (S0 i) q0; split; first exact: mulr_ge0.
exact: ler_pimulr.
Qed.

Section Exactness.
Variables (n : nat) (r a f : nat -> V -> R).
Hypothesis V_r : valid_chain n r.
Let S := left_mass r.

(* Accept x_i with probability (r_i - r_{i+1})(x_i) / (S_i q(x_i)); where the denominator is zero, any value will do. *)
Hypothesis accept_r : forall i, (i < n)%N -> forall x,
  S i * q x != 0 -> a i x = (r i x - r i.+1 x) / (S i * q x).
(* After n rejections draw from r_n / S_n; where S_n is zero, anything will do. *)
Hypothesis final_r : S n != 0 -> f n =1 norm (r n).

Lemma chain_accepted i x : (i < n)%N -> S i * q x * a i x = r i x - r i.+1 x.
Proof.
move=> lt_in; have [E|NE] := eqVneq (S i * q x) 0; last by rewrite accept_r // mulrC divfK.
have [H0 H1] := chain_step V_r lt_in x.
by apply/eqP; rewrite E mul0r eq_le H0 -[X in _ <= X]E H1.
Qed.

Lemma residual_chain i x : (i <= n)%N -> residual a i x = r i x.
Proof.
elim: i x => [|i IH] x le_in; first by rewrite (chain_start V_r).
have -> : residual a i.+1 x = residual a i x - S i * q x * a i x.
  rewrite /= /S /left_mass; congr (_ - _ * _ * _).
  by apply: eq_bigr => z _; rewrite IH // ltnW.
by rewrite chain_accepted // IH 1?ltnW // subKr.
Qed.

Lemma left_mass_chain i : (i <= n)%N -> left_mass (residual a) i = S i.
Proof. by move=> le_in; apply: eq_bigr => x _; rewrite residual_chain. Qed.

(* Any chain is exact. *)
Theorem chain_exact : @exact _ _ (memoryless a f) n 0%N p.
Proof.
apply/memoryless_exact_iff => y; rewrite left_mass_chain // residual_chain //.
have [E|NE] := eqVneq (S n) 0; last by rewrite final_r // /norm mulrC divfK.
by rewrite E mul0r; apply: sum0_eq0 E y; exact: chain_end V_r.
Qed.

(* It accepts with probability 1 - S_n (S_{n+1} in the notation that counts from one). *)
Theorem chain_acceptance : @acceptance _ _ (memoryless a f) n 0%N = 1 - S n.
Proof. by rewrite memoryless_acceptance left_mass_chain. Qed.

Lemma chain_ge i x : (i <= n)%N -> r n x <= r i x.
Proof.
move=> le_in; rewrite -(subnKC le_in).
have : (n - i <= n - i)%N by [].
elim: {1 3}(n - i)%N => [|k IH] lt_k; first by rewrite addn0.
apply: le_trans (IH (ltnW lt_k)); rewrite addnS -subr_ge0.
by case: (chain_step V_r (_ : i + k < n)%N x) => //; rewrite -ltn_subRL.
Qed.

Lemma chain_ge0 i x : (i <= n)%N -> 0 <= r i x.
Proof. by move=> le_in; apply: le_trans (chain_end V_r x) (chain_ge x le_in). Qed.

Lemma left_mass_ge0 i : (i <= n)%N -> 0 <= S i.
Proof. by move=> le_in; apply: sumr_ge0 => x _; apply: chain_ge0. Qed.

(* The acceptance probabilities of a chain are probabilities wherever they are used. *)
Theorem chain_proper i x : (i < n)%N -> S i * q x != 0 -> 0 <= a i x /\ a i x <= 1.
Proof.
move=> lt_in NE; rewrite accept_r //; have [H0 H1] := chain_step V_r lt_in x.
have P : 0 < S i * q x by rewrite lt_def NE mulr_ge0 ?(law_ge0 _ lq) ?left_mass_ge0 1?ltnW.
by rewrite divr_ge0 ?(ltW P) // ler_pdivr_mulr // mul1r.
Qed.

End Exactness.

(* The procedure a chain prescribes. In this field division by zero gives zero: such a stage rejects. *)
Definition chain r : procedure R V :=
  memoryless (fun i x => (r i x - r i.+1 x) / (left_mass r i * q x)) (fun i => norm (r i)).

Corollary chain_is_exact n r : valid_chain n r -> @exact _ _ (chain r) n 0%N p.
Proof. by move=> V_r; apply: chain_exact V_r _ _. Qed.

Corollary chain_accepts n r : valid_chain n r ->
  @acceptance _ _ (chain r) n 0%N = 1 - left_mass r n.
Proof. by move=> V_r; apply: chain_acceptance V_r _. Qed.

(* SpecInfer: the smallest residual at every stage. *)
Fixpoint specinfer_residual i x : R :=
  if i is j.+1 then pos (specinfer_residual j x - (\sum_z specinfer_residual j z) * q x) else p x.

Lemma specinfer_ge0 i x : 0 <= specinfer_residual i x.
Proof. by case: i => [|i]; [exact: law_ge0 lp | exact: pos_ge0]. Qed.

Theorem specinfer_valid n : valid_chain n specinfer_residual.
Proof.
split=> // [i _ x|x]; last exact: specinfer_ge0.
have S0 : 0 <= left_mass specinfer_residual i by apply: sumr_ge0 => z _; exact: specinfer_ge0.
have Sq : 0 <= left_mass specinfer_residual i * q x by rewrite mulr_ge0 // (law_ge0 _ lq).
rewrite /= -/(left_mass specinfer_residual i); set r := specinfer_residual i x; split.
  by rewrite subr_ge0 /pos le_maxl specinfer_ge0 ler_subl_addr ler_addl Sq.
by rewrite ler_subl_addr -ler_subl_addl pos_ge.
Qed.

(* Its acceptance probability in the usual words: min(1, R/q) for the normalised residual R = r_i / S_i. *)
Theorem specinfer_accepts i x : left_mass specinfer_residual i * q x != 0 ->
  @acc _ _ (chain specinfer_residual) i x = Num.min 1 (norm (specinfer_residual i) x / q x).
Proof.
move=> NE; have S0 : 0 <= left_mass specinfer_residual i.
  by apply: sumr_ge0 => z _; exact: specinfer_ge0.
have P : 0 < left_mass specinfer_residual i * q x by rewrite lt_def NE mulr_ge0 // (law_ge0 _ lq).
rewrite /= -/(left_mass specinfer_residual i) /norm -/(left_mass specinfer_residual i).
set S := left_mass _ _; set r := specinfer_residual i x.
have -> : r - pos (r - S * q x) = Num.min r (S * q x) by rewrite -[X in X - _](min_pos r (S * q x)) addrK.
have -> : r / S / q x = r / (S * q x) by rewrite invfM mulrA.
by rewrite minr_pmull ?invr_ge0 ?(ltW P) // divff // minC.
Qed.

Corollary specinfer_exact n : @exact _ _ (chain specinfer_residual) n 0%N p.
Proof. exact: chain_is_exact (specinfer_valid n). Qed.

(* K-SEQ (SpecTr): accept with probability min(1, p/(g q)) at every stage, for a fixed g. *)
Section Kseq.
Variables (g : R) (n : nat).
Let common x := Num.min (q x) (p x / g).
Let beta := \sum_x common x.
(* The sum over i < n of (1 - beta)^i, which is (1 - (1 - beta)^n) / beta. *)
Definition kseq_load : R := \sum_(i < n) (1 - beta) ^+ i.

Definition kseq : procedure R V :=
  memoryless (fun _ x => Num.min 1 (p x / (g * q x))) (fun _ => norm (fun x => p x - kseq_load * common x)).

Hypothesis g0 : 0 < g.

Let a : nat -> V -> R := fun _ x => Num.min 1 (p x / (g * q x)).

Lemma kseq_common x : q x * Num.min 1 (p x / (g * q x)) = common x.
Proof.
have [E|NE] := eqVneq (q x) 0.
  by rewrite /common E mul0r min_l // divr_ge0 ?(law_ge0 _ lp) // ltW.
rewrite minr_pmulr ?(law_ge0 _ lq) // mulr1; congr Num.min.
by rewrite invfM [g^-1 * _]mulrC !mulrA [q x * p x]mulrC mulfK.
Qed.

Lemma kseq_mass i : left_mass (residual a) i = (1 - beta) ^+ i.
Proof.
elim: i => [|i IH]; first by rewrite residual_mass0.
rewrite residual_massS IH exprSr; congr (_ * (_ - _)).
by apply: eq_bigr => x _; rewrite /a kseq_common.
Qed.

Lemma kseq_residual i x : residual a i x = p x - (\sum_(j < i) (1 - beta) ^+ j) * common x.
Proof.
elim: i => [|i IH]; first by rewrite big_ord0 /=; ring.
have -> : residual a i.+1 x = residual a i x - left_mass (residual a) i * (q x * a i x).
  by rewrite residualS mulrA.
by rewrite IH kseq_mass /a kseq_common big_ord_recr /=; ring.
Qed.

(* Exact as soon as what it hands out of each token is covered: sum_{i<n} (1 - beta)^i <= g. *)
Theorem kseq_exact : kseq_load <= g -> @exact _ _ kseq n 0%N p.
Proof.
move=> load_le; pose w x := p x - kseq_load * common x.
have lm : left_mass (residual a) n = \sum_x w x by apply: eq_bigr => x _; rewrite kseq_residual.
apply/memoryless_exact_iff => y; rewrite -/a kseq_residual -/kseq_load -/(w y) lm.
have [E|NE] := eqVneq (\sum_x w x) 0; last by rewrite -/w /norm [RHS]mulrC divfK.
rewrite E mul0r; apply: (@sum0_eq0 _ _ w) E y => x.
rewrite subr_ge0 (@le_trans _ _ (g * common x)) ?ler_wpmul2r //.
  by rewrite le_minr (law_ge0 _ lq) divr_ge0 ?(law_ge0 _ lp) // ltW.
by rewrite -ler_pdivl_mull // mulrC le_minl lexx orbT.
Qed.

Theorem kseq_acceptance : @acceptance _ _ kseq n 0%N = 1 - (1 - beta) ^+ n.
Proof. by rewrite memoryless_acceptance -/a kseq_mass. Qed.

End Kseq.

End Chain.

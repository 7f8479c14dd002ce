(* Residual shaping: the chain r = clip(tau q, p - (T - tau) q, p). It is exact for every T that leaves
   tau_n >= 0 (stages counted from 0), and with tau_n = 0 no memoryless verifier accepts more, for any n. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws procedure chain.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Shaped.
Variables (R : realFieldType) (V : finType) (p q : V -> R).
Hypotheses (lp : law p) (lq : law q).

Section Residual.
Variable T : R.

Definition clip t x : R := Num.max (p x - (T - t) * q x) (Num.min (p x) (t * q x)).

(* tau_0 = T, tau_{i+1} = tau_i - S_i with S_i the mass of the residual at tau_i. *)
Fixpoint tau i : R := if i is j.+1 then tau j - \sum_x clip (tau j) x else T.

Definition shaped_residual i x : R := clip (tau i) x.

Let q0 x : 0 <= q x. Proof. exact: law_ge0 lq. Qed.
Let p0 x : 0 <= p x. Proof. exact: law_ge0 lp. Qed.

(* The residual rises in tau with slope between 0 and q: the bound every chain needs. *)
Lemma clip_slope t d x : 0 <= d -> 0 <= clip t x - clip (t - d) x /\ clip t x - clip (t - d) x <= d * q x.
Proof.
move=> d0; have dq : 0 <= d * q x by rewrite mulr_ge0.
have A : p x - (T - (t - d)) * q x = p x - (T - t) * q x - d * q x by ring.
have B : (t - d) * q x = t * q x - d * q x by ring.
rewrite /clip A B; set a := p x - _; set b := t * q x; set e := d * q x in dq *.
split.
  rewrite subr_ge0 le_maxl !le_maxr ler_subl_addr ler_addl dq /=; apply/orP; right.
  by rewrite le_minr !le_minl lexx /= ler_subl_addr ler_addl dq orbT.
rewrite ler_subl_addr le_maxl -!ler_subl_addl !le_maxr lexx /=; apply/orP; right.
by rewrite le_minr ler_subl_addr ler_paddr ?le_minl ?lexx //= ler_subl_addr subrK le_minl lexx orbT.
Qed.

Lemma clip_start x : clip T x = p x.
Proof. by rewrite /clip subrr mul0r subr0 max_l // le_minl lexx. Qed.

Lemma clip_ge0 t x : 0 <= t -> 0 <= clip t x.
Proof. by move=> t0; rewrite /clip le_maxr le_minr p0 mulr_ge0 ?orbT. Qed.

Lemma tau_neg t x : p x > T * q x -> t < 0 -> t < \sum_z clip t z.
Proof.
move=> gt_p t0; rewrite -subr_gt0.
have -> : \sum_z clip t z - t = \sum_z (clip t z - t * q z).
  by rewrite sumrB -big_distrr /= (law_sum lq) mulr1.
rewrite (bigD1 x) //= ltr_paddr ?sumr_ge0 // => [z _|].
  rewrite subr_ge0 /clip le_maxr le_minr lexx andbT; apply/orP; right.
  by apply: le_trans (p0 z); rewrite mulr_le0_ge0 // ltW.
by rewrite subr_gt0 /clip lt_maxr mulrBl opprB addrCA ltr_addl subr_gt0 gt_p.
Qed.

Lemma tau_pos t : (forall x, p x <= T * q x) -> \sum_z clip t z <= t.
Proof.
move=> le_p; rewrite -[t in _ <= t]mulr1 -(law_sum lq) big_distrr /= ler_sum // => x _.
rewrite /clip le_maxl le_minl lexx orbT andbT mulrBl opprB addrCA ger_addl subr_le0.
exact: le_p.
Qed.

(* A last tau that is not negative was never negative. *)
Lemma tau_ge0 n i : 0 <= tau n -> (i <= n)%N -> 0 <= tau i.
Proof.
have [/forallP le_p _ _|/forallPn [x]] := boolP [forall x, p x <= T * q x].
  elim: i => [|i IH]; last by rewrite /= subr_ge0 tau_pos.
  rewrite /= -[T]mulr1 -(law_sum lq) big_distrr /=.
  by apply: sumr_ge0 => x _; apply: le_trans (p0 x) (le_p x).
rewrite -ltNge => gt_p tn le_in; rewrite leNgt; apply/negP => neg_i.
suff : tau n < 0 by rewrite ltNge tn.
rewrite -(subnKC le_in); elim: (n - i)%N => [|k IH]; first by rewrite addn0.
by rewrite addnS /= subr_lt0 (tau_neg gt_p).
Qed.

Theorem shaped_valid n : 0 <= tau n -> valid_chain p q n shaped_residual.
Proof.
move=> tn; split=> [x|i lt_in x|x]; [exact: clip_start | | exact: clip_ge0].
by apply: clip_slope; apply: sumr_ge0 => z _; rewrite clip_ge0 // (tau_ge0 tn) // ltnW.
Qed.

Corollary shaped_exact n : 0 <= tau n -> @exact _ _ (chain q shaped_residual) n 0%N p.
Proof. by move=> /shaped_valid /(chain_is_exact lp lq). Qed.

Lemma clip0 x : clip 0 x = pos (p x - T * q x).
Proof. by rewrite /clip subr0 mul0r min_r. Qed.

Lemma shaped_left n : tau n = 0 -> 1 - left_mass shaped_residual n = \sum_x Num.min (p x) (T * q x).
Proof.
move=> tn; rewrite /left_mass /shaped_residual tn (eq_bigr _ (fun x _ => clip0 x)).
by rewrite (sum_pos p (fun x => T * q x)) (law_sum lp); ring.
Qed.

Theorem shaped_acceptance n : tau n = 0 ->
  @acceptance _ _ (chain q shaped_residual) n 0%N = \sum_x Num.min (p x) (T * q x).
Proof.
by move=> tn; rewrite (chain_accepts lp lq) ?shaped_left //; apply: shaped_valid; rewrite tn.
Qed.

Lemma clip_accepts t x : Num.min (p x) (t * q x) <= clip t x - clip 0 x.
Proof.
rewrite clip0 ler_subr_addr; have [le_p|/ltW ge_p] := leP (p x) (T * q x).
  by rewrite pos_eq0 ?subr_le0 // addr0 /clip le_maxr lexx orbT.
rewrite pos_id ?subr_ge0 // /clip le_maxr; apply/orP; left.
have -> : p x - (T - t) * q x = t * q x + (p x - T * q x) by ring.
by rewrite ler_add2r le_minl lexx orbT.
Qed.

End Residual.

Lemma crossing (f g : nat -> R) n : g 0%N < f 0%N -> f n <= g n ->
  exists j, [/\ (j < n)%N, g j < f j & f j.+1 <= g j.+1].
Proof.
elim: n => [|n IH] gt0 le_n; first by move: gt0; rewrite ltNge le_n.
have [le_n'|gt_n] := leP (f n) (g n); last by exists n.
by have [j [lt_jn gt_j le_j]] := IH gt0 le_n'; exists j; split=> //; apply: ltnW.
Qed.

Section Optimal.
Variables (n : nat) (r : nat -> V -> R).
Hypothesis V_r : valid_chain p q n r.
Let S := left_mass r.

Definition load i : R := \sum_(i <= j < n) S j.

Lemma loadS i : (i < n)%N -> load i = S i + load i.+1.
Proof. by move=> lt_in; rewrite /load big_ltn. Qed.

Lemma chain_load i x : (i <= n)%N -> r i x - r n x <= load i * q x.
Proof.
move=> le_in; rewrite -(subKn le_in); elim: (n - i)%N (leq_subr i n) => [|k IH] le_k.
  by rewrite subn0 /load big_geq // subrr mul0r.
have E : (n - k = (n - k.+1).+1)%N by rewrite -subSn.
have lt_n : (n - k.+1 < n)%N by rewrite -E leq_subr.
rewrite loadS // -E mulrDl -(subrK (r (n - k)%N x) (r (n - k.+1)%N x)) -addrA ler_add ?IH 1?ltnW //.
by have [_] := chain_step V_r lt_n x; rewrite -E.
Qed.

Lemma chain_le i x : (i <= n)%N -> r i x <= p x.
Proof.
rewrite -(chain_start V_r x); elim: i => // i IH lt_in; apply: le_trans (IH (ltnW lt_in)).
by rewrite -subr_ge0; case: (chain_step V_r lt_in x).
Qed.

(* What is accepted from stage i on is at most min(p, load_i q), token by token. *)
Lemma chain_bound i : (i <= n)%N -> 1 - S n <= 1 - S i + \sum_x Num.min (p x) (load i * q x).
Proof.
move=> le_in; rewrite -ler_subl_addl.
have -> : 1 - S n - (1 - S i) = \sum_x (r i x - r n x) by rewrite sumrB /S /left_mass; ring.
rewrite ler_sum // => x _; rewrite le_minr chain_load // andbT ler_subl_addr.
by rewrite ler_paddr ?(chain_end V_r) ?chain_le.
Qed.

(* The chain of tau_0 = T with tau_n = 0 accepts at least as much as any other chain of n stages. *)
Theorem shaped_optimal T : tau T n = 0 -> 1 - S n <= \sum_x Num.min (p x) (T * q x).
Proof.
move=> tn; have q0 x : 0 <= q x by exact: law_ge0 lq.
have [le_T|gt_T] := leP (load 0) T.
  apply: le_trans (chain_bound (leq0n n)) _.
  have -> : S 0%N = 1 by rewrite /S /left_mass -(law_sum lp); apply: eq_bigr => x _; rewrite (chain_start V_r).
  rewrite subrr add0r ler_sum // => x _; rewrite le_minr !le_minl lexx /=.
  by rewrite ler_wpmul2r ?orbT.
have [|j [lt_jn gt_j le_j]] := @crossing load (tau T) n gt_T; first by rewrite tn /load big_geq.
apply: le_trans (chain_bound (ltnW lt_jn)) _; rewrite -(shaped_left tn).
set S' := left_mass (shaped_residual T); set A := \sum_x Num.min (p x) (tau T j * q x).
have B : \sum_x Num.min (p x) (load j * q x) <= A + (load j - tau T j).
  rewrite -[load j - _]mulr1 -(law_sum lq) big_distrr -big_split /= ler_sum // => x _.
  have d0 : 0 <= (load j - tau T j) * q x by rewrite mulr_ge0 // subr_ge0 ltW.
  rewrite -ler_subl_addr le_minr ler_subl_addr ler_paddr ?le_minl ?lexx //=.
  by rewrite ler_subl_addr -mulrDl [tau T j + _]addrC subrK le_minl lexx orbT.
have C : A <= S' j - S' n.
  rewrite /S' /left_mass -sumrB ler_sum // => x _.
  by rewrite /shaped_residual tn clip_accepts.
have D : S' j = tau T j - tau T j.+1 by rewrite [tau T j.+1]/= subKr.
have E : S j = load j - load j.+1 by rewrite loadS // addrK.
rewrite -subr_ge0.
have -> : 1 - S' n - (1 - S j + \sum_x Num.min (p x) (load j * q x))
   = (A + (load j - tau T j) - \sum_x Num.min (p x) (load j * q x)) + (S' j - S' n - A)
     + (tau T j.+1 - load j.+1) by rewrite D E; ring.
by apply: addr_ge0; last (by rewrite subr_ge0); apply: addr_ge0; rewrite subr_ge0.
Qed.

End Optimal.

(* No exact memoryless verifier of n candidates accepts more than `shaped`. *)
Theorem shaped_best_memoryless n a f T :
    (forall i x, 0 <= a i x /\ a i x <= 1) -> (forall y, 0 <= f n y) ->
    @exact _ _ (memoryless q a f) n 0%N p -> tau T n = 0 ->
  @acceptance _ _ (memoryless q a f) n 0%N
    <= @acceptance _ _ (chain q (shaped_residual T)) n 0%N.
Proof.
move=> a01 f0 ex tn; rewrite (memoryless_acceptance lp lq) (shaped_acceptance tn).
exact: (shaped_optimal (memoryless_is_chain lp lq a01 f0 ex) tn).
Qed.

End Shaped.

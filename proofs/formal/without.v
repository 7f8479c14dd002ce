(* Candidates drawn without replacement, with a look ahead to one more: exact for every plan within its bounds, and
   for two candidates the best of all sequential rules. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws procedure sequential.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

(* Look ahead to one more candidate. From the residual w and the law d of the candidate at hand, plan the mass m of a
   rejection at each token, and how readily b the next candidate will be taken. *)
Section LookAhead.
Variables (R : realFieldType) (V : finType).
Implicit Types (p q w d : V -> R) (x y : V).

(* The mass with which the next candidate is y, after a rejection at x with mass m x. *)
Definition second (m : V -> R) d y : R := \sum_x m x * norm (drop d x) y.
Definition left_over (m b : V -> R) w d y : R := w y - d y + m y - b y * second m d y.
Definition taken (b : V -> R) d x : R := \sum_z b z * norm (drop d x) z.
Definition handed_on m b w d x : V -> R :=
  fun y => b y * norm (drop d x) y + (1 - taken b d x) * norm (left_over m b w d) y.

Variables (m b : (V -> R) -> (V -> R) -> V -> R).

(* State: the number of candidates to come, the residual, the law of the next candidate. *)
Definition look_ahead : procedure R V :=
  Procedure (fun s : nat * ((V -> R) * (V -> R)) => s.2.2)
    (fun s x => let: (k, (w, d)) := s in if (1 < k)%N then (d x - m w d x) / d x else ratio w d x)
    (fun s x => let: (k, (w, d)) := s in
       (k.-1, (if (1 < k)%N then handed_on (m w d) (b w d) w d x else residue w d, norm (drop d x))))
    (fun s => s.2.1).

Definition sound := forall w d, law w -> law d -> (forall x, d x != 1) -> forall y,
  [/\ 0 <= m w d y, m w d y <= d y, 0 <= b w d y, b w d y <= 1 & 0 <= left_over (m w d) (b w d) w d y].
Hypothesis sound_plan : sound.

Lemma drawable_lt1 k d x : drawable k.+2 d -> d x != 1.
Proof.
move=> dr; have [d0 _ _] := dr; have ld := drawable_law dr.
have [E|NE] := eqVneq (d x) 0; first by rewrite E eq_sym oner_eq0.
have [_ _ /(_ isT) s1] := drawable_next dr NE; apply/eqP => E.
have S0 : \sum_y drop d x y = 0 by rewrite drop_sum // E subrr.
by move: s1; rewrite big1 => [/eqP|y _]; [rewrite eq_sym oner_eq0 | rewrite /norm S0 invr0 mulr0].
Qed.

Section Step.
Variables (w d : V -> R).
Hypotheses (lw : law w) (ld : law d) (d1 : forall x, d x != 1).
Let M := m w d.
Let B := b w d.
Let L := left_over M B w d.

Lemma drop_law x : law (norm (drop d x)).
Proof.
apply: norm_law => [y|]; first by apply: drop_ge0 => z; exact: law_ge0 ld.
by rewrite drop_sum // subr_eq0 eq_sym.
Qed.

Lemma refused_mass x : d x * (1 - (d x - M x) / d x) = M x.
Proof.
have [m0 md _ _ _] := sound_plan lw ld d1 x; have [E|NE] := eqVneq (d x) 0.
  by rewrite E mul0r; apply/eqP; rewrite eq_sym -/M eq_le -{1}E md m0.
by rewrite mulrBr mulr1 mulrC divfK //; ring.
Qed.

Lemma accepted_mass x : d x * ((d x - M x) / d x) = d x - M x.
Proof. by rewrite -[in RHS](refused_mass x); ring. Qed.

Lemma left_sum : \sum_x M x * (1 - taken B d x) = \sum_y L y.
Proof.
rewrite /L /left_over sumrB big_split sumrB /= (law_sum lw) (law_sum ld) subrr add0r.
rewrite (eq_bigr (fun x => M x - M x * taken B d x)) => [|x _]; last by rewrite mulrBr mulr1.
rewrite sumrB; congr (_ - _); rewrite /taken /second.
rewrite (eq_bigr (fun x => \sum_z M x * (B z * norm (drop d x) z))) => [|x _]; last by rewrite big_distrr.
rewrite exchange_big /=; apply: eq_bigr => y _; rewrite big_distrr /=; apply: eq_bigr => x _; ring.
Qed.

Lemma taken_le1 x : taken B d x <= 1.
Proof.
rewrite -(law_sum (drop_law x)); apply: ler_sum => y _.
have [_ _ b0 b1 _] := sound_plan lw ld d1 y; have N0 := law_ge0 y (drop_law x).
by rewrite -[X in _ <= X]mul1r ler_wpmul2r.
Qed.

Lemma left_ge0 y : 0 <= L y.
Proof. by case: (sound_plan lw ld d1 y). Qed.

Lemma look_ahead_balance y :
  d y * ((d y - M y) / d y) + \sum_x d x * (1 - (d x - M x) / d x) * handed_on M B w d x y = w y.
Proof.
rewrite accepted_mass (eq_bigr (fun x => M x * (B y * norm (drop d x) y)
  + M x * (1 - taken B d x) * norm L y)) => [|x _]; last by rewrite refused_mass /handed_on -/L; ring.
rewrite big_split /= -[X in _ + (_ + X)]big_distrl /= left_sum.
have -> : (\sum_y L y) * norm L y = L y.
  have [E|NE] := eqVneq (\sum_y L y) 0; last by rewrite /norm mulrC divfK.
  by rewrite E mul0r (sum0_eq0 left_ge0 E).
rewrite (eq_bigr (fun x => B y * (M x * norm (drop d x) y))) => [|x _]; last by ring.
by rewrite -big_distrr /= /L /left_over -/(second M d y); ring.
Qed.

Lemma handed_on_law x : M x != 0 -> law (handed_on M B w d x).
Proof.
move=> NE; have t1 z : 0 <= 1 - taken B d z by rewrite subr_ge0 taken_le1.
split=> [y|].
  have [_ _ b0 _ _] := sound_plan lw ld d1 y; have N0 := law_ge0 y (drop_law x).
  have L0 : 0 <= norm L y by rewrite /norm divr_ge0 ?left_ge0 // sumr_ge0 // => z _; exact: left_ge0.
  by rewrite /handed_on -/L; apply: addr_ge0; apply: mulr_ge0.
rewrite big_split /= -big_distrr /= -/(taken B d x).
have [E|NEs] := eqVneq (\sum_y L y) 0; last by case: (norm_law left_ge0 NEs) => _ ->; ring.
have pay0 z : 0 <= M z * (1 - taken B d z) by have [m0 _ _ _ _] := sound_plan lw ld d1 z; rewrite mulr_ge0.
have /eqP : M x * (1 - taken B d x) = 0 by apply: (sum0_eq0 pay0); rewrite left_sum.
by rewrite mulf_eq0 (negbTE NE) /= => /eqP T; rewrite T mul0r addr0; apply/eqP; rewrite eq_sym -subr_eq0 T.
Qed.

End Step.

Lemma look_ahead_mass k w d : drawable k d -> @mass _ _ look_ahead k (k, (w, d)) = 1.
Proof.
elim: k w d => [|k IH] w d dr; first exact: mass0.
rewrite massS /=; have [_ _ <- //] := dr; apply: eq_bigr => x _.
have [->|NE] := eqVneq (d x) 0; first by rewrite mul0r.
by rewrite IH ?mulr1 //; apply: drawable_next.
Qed.

Theorem look_ahead_exact p q n : law p -> law q -> (n <= #|[pred x | q x != 0%R]|)%N ->
  @exact _ _ look_ahead n (n, (p, q)) p.
Proof.
move=> lp lq le_n.
apply: (@balance _ _ look_ahead (fun k s => [/\ s.1 = k, law s.2.1 & drawable k s.2.2]) (fun s => s.2.1)).
- by [].
- move=> k [j [w d]] x /= [-> lw dr] NE; have ld := drawable_law dr.
  have dx : d x != 0 by apply: contra_neq NE => ->; rewrite mul0r.
  split=> //=; last exact: drawable_next.
  case: k dr NE => [|k] dr /= NE; first exact: step_reaches NE.
  have d1 z := drawable_lt1 z dr; apply: handed_on_law => //.
  by apply: contra_neq NE => E; rewrite refused_mass.
- move=> k [j [w d]] x /= [-> _ dr] NE; apply: look_ahead_mass; apply: drawable_next => //.
  by apply: contra_neq NE => ->; rewrite mul0r.
- move=> k [j [w d]] y /= [-> lw dr]; have ld := drawable_law dr; case: k dr => [|k] dr /=.
    exact: step_balance.
  by apply: look_ahead_balance => // z; exact: drawable_lt1 dr.
- by split=> //=; split=> // [x|_]; [exact: law_ge0 lq | exact: law_sum lq].
Qed.

(* Two candidates: what is accepted of the second. *)
Theorem look_ahead_acceptance_two p q : law p -> law q -> (1 < #|[pred x | q x != 0%R]|)%N ->
    (forall y, [\/ b p q y = 1, left_over (m p q) (b p q) p q y = 0 | second (m p q) q y = 0]) ->
  @acceptance _ _ look_ahead 2 (2%N, (p, q)) = \sum_y (q y - m p q y + b p q y * second (m p q) q y).
Proof.
move=> lp lq lt_1 full; have dr : drawable 2 q.
  by split=> // [x|_]; [exact: law_ge0 lq | exact: law_sum lq].
have q1 x := drawable_lt1 x dr.
rewrite acceptanceS => [|x /= NE]; last first.
  apply: look_ahead_mass; apply: drawable_next => //; by apply: contra_neq NE => ->; rewrite mul0r.
rewrite big_split /=; congr (_ + _).
  by apply: eq_bigr => x _; rewrite accepted_mass.
rewrite (eq_bigr (fun x => \sum_y m p q x * (b p q y * norm (drop q x) y))) => [|x _].
  by rewrite exchange_big /=; apply: eq_bigr => y _; rewrite /second big_distrr /=; apply: eq_bigr => x _; ring.
rewrite refused_mass //; have [->|NE] := eqVneq (m p q x) 0.
  by rewrite mul0r big1 // => y _; rewrite mul0r.
have qx : q x != 0.
  have [m0 md _ _ _] := sound_plan lp lq q1 x.
  by apply: contra_neq NE => E; apply/eqP; rewrite eq_le m0 andbT (le_trans md) // E.
have lD := drop_law lq q1 x; have lH := handed_on_law lp lq q1 NE.
rewrite -big_distrr /=; congr (_ * _); rewrite acceptanceS => [|y _]; last exact: mass0.
rewrite /= [X in _ + X]big1 ?addr0 => [|y _]; last by rewrite acceptance0 mulr0.
apply: eq_bigr => y _; rewrite accepted_min ?(law_ge0 _ lD) ?(law_ge0 _ lH) //.
have [_ _ b0 b1 _] := sound_plan lp lq q1 y; have N0 := law_ge0 y lD.
have t1 : 0 <= 1 - taken (b p q) q x by rewrite subr_ge0 taken_le1.
have [E|E|E] := full y; rewrite /handed_on.
- rewrite E mul1r min_r // ler_addl mulr_ge0 // /norm divr_ge0 ?left_ge0 // sumr_ge0 // => z _; exact: left_ge0.
- by rewrite [X in _ + _ * X]/norm E mul0r mulr0 addr0 min_l // -[X in _ <= X]mul1r ler_wpmul2r.
have /eqP : m p q x * norm (drop q x) y = 0.
  apply: (sum0_eq0 _ E) => z; have [m0 _ _ _ _] := sound_plan lp lq q1 z.
  by rewrite mulr_ge0 // (law_ge0 y (drop_law lq q1 z)).
by rewrite mulf_eq0 (negbTE NE) /= => /eqP Z; move: (law_ge0 y lH); rewrite /handed_on Z mulr0 => H0; rewrite min_r.
Qed.

End LookAhead.

(* The rule shaped-without-replacement: m and b from a load, here any number. *)
Section ShapedWithout.
Variables (R : realFieldType) (V : finType) (load : (V -> R) -> (V -> R) -> R).
Implicit Types (p q w d : V -> R) (x y : V).

Definition refused w d x : R :=
  Num.min (d x) (Num.max (pos (d x - w x)) ((d x * (1 + load w d) - w x) * (1 - d x))).
Definition accepts_second w d y : R :=
  Num.min 1 ((w y - d y + refused w d y) / second (refused w d) d y).
Definition shaped_without : procedure R V := look_ahead refused accepts_second.

Lemma refused_bounds w d x : 0 <= w x -> 0 <= d x -> pos (d x - w x) <= refused w d x <= d x.
Proof.
move=> w0 d0; rewrite /refused le_minl lexx orTb andbT le_minr le_maxr lexx orTb andbT.
by rewrite /pos le_maxl d0 andbT ler_subl_addr ler_addl.
Qed.

Lemma second_ge0 (m : V -> R) d y : (forall x, 0 <= m x) -> (forall x, 0 <= d x) -> 0 <= second m d y.
Proof.
move=> m0 d0; apply: sumr_ge0 => x _; rewrite mulr_ge0 // /norm divr_ge0 ?drop_ge0 // sumr_ge0 // => z _.
exact: drop_ge0.
Qed.

Lemma shaped_owed_ge0 w d y : 0 <= w y -> 0 <= d y -> 0 <= w y - d y + refused w d y.
Proof.
move=> w0 d0; have /andP[lo _] := refused_bounds w0 d0.
by rewrite addrC -ler_subl_addr sub0r opprB (le_trans (pos_ge _) lo).
Qed.

Lemma shaped_paid w d y : law w -> law d ->
  accepts_second w d y * second (refused w d) d y
  = Num.min (w y - d y + refused w d y) (second (refused w d) d y).
Proof.
move=> [w0 _] [d0 _].
rewrite mulrC; apply: (@accepted_min R V (fun z => w z - d z + refused w d z) (second (refused w d) d) y).
  exact: shaped_owed_ge0.
by apply: second_ge0 => // x; have /andP[lo _] := refused_bounds (w0 x) (d0 x); apply: le_trans (pos_ge0 _) lo.
Qed.

Lemma shaped_sound : sound refused accepts_second.
Proof.
move=> w d lw ld d1 y; have [w0 _] := lw; have [d0 _] := ld.
have /andP[lo hi] := refused_bounds (w0 y) (d0 y).
have m0 x : 0 <= refused w d x.
  by have /andP[lox _] := refused_bounds (w0 x) (d0 x); apply: le_trans (pos_ge0 _) lox.
split=> //; first 1 last.
- by rewrite /accepts_second le_minl lexx.
- by rewrite /left_over shaped_paid // subr_ge0 le_minl lexx.
- by rewrite /accepts_second le_minr ler01 divr_ge0 ?shaped_owed_ge0 ?second_ge0.
Qed.

Theorem shaped_without_exact p q n : law p -> law q -> (n <= #|[pred x | q x != 0%R]|)%N ->
  @exact _ _ shaped_without n (n, (p, q)) p.
Proof. exact: (look_ahead_exact shaped_sound). Qed.

Theorem shaped_without_acceptance p q : law p -> law q -> (1 < #|[pred x | q x != 0%R]|)%N ->
  @acceptance _ _ shaped_without 2 (2%N, (p, q))
  = \sum_y Num.min (p y) (q y - refused p q y + second (refused p q) q y).
Proof.
move=> lp lq lt_1; rewrite (look_ahead_acceptance_two shaped_sound) // => [|y].
  apply: eq_bigr => y _; rewrite shaped_paid // -[RHS](addrNK (q y - refused p q y)) addr_minl.
  by rewrite addrC; congr (Num.min _ _ + _); ring.
have [E|NE] := eqVneq (second (refused p q) q y) 0; first by constructor 3.
rewrite /left_over shaped_paid //; case: (leP (p y - q y + refused p q y) (second (refused p q) q y)) => [le|lt].
  by constructor 2; rewrite subrr.
constructor 1; have s0 : 0 < second (refused p q) q y.
  rewrite lt_neqAle eq_sym NE second_ge0 // => x; last exact: law_ge0 lq.
  by have /andP[lo _] := refused_bounds (law_ge0 x lp) (law_ge0 x lq); apply: le_trans (pos_ge0 _) lo.
by rewrite /accepts_second min_l // ler_pdivl_mulr // mul1r ltW.
Qed.

End ShapedWithout.

(* No sequential rule for two candidates without replacement accepts more, if the load is a root of its equation. *)
Section TwoCandidates.
Variables (R : realFieldType) (V : finType) (p q : V -> R).
Hypotheses (lp : law p) (lq : law q) (lt_1 : (1 < #|[pred x | q x != 0%R]|)%N).
Implicit Types (m : V -> R) (x y : V).

Let q1 x : q x != 1.
Proof.
have dr : drawable 2 q by split=> // [z|_]; [exact: law_ge0 lq | exact: law_sum lq].
exact: drawable_lt1 dr.
Qed.

Let others x : 0 < 1 - q x.
Proof.
rewrite lt_neqAle eq_sym subr_eq0 eq_sym q1 -drop_sum // sumr_ge0 // => y _; apply: drop_ge0 => z.
exact: law_ge0 lq.
Qed.

Definition load_of m : R := \sum_x m x / (1 - q x).

Lemma second_load m y : second m q y = q y * (load_of m - m y / (1 - q y)).
Proof.
rewrite mulrBr /load_of big_distrr /= -[X in _ - X](sum_indicator (fun x => q x * (m x / (1 - q x)))) -sumrB.
apply: eq_bigr => x _; rewrite /norm drop_sum // /drop eq_sym.
by case: eqP => [->|_]; rewrite /= ?mulr1 ?mulr0; ring.
Qed.

(* What can be accepted at y, as p + (t - v): t from the load alone, v what is refused there. *)
Let t mu y : R := q y * (1 + mu) - p y.
Let v m y : R := m y / (1 - q y).

Lemma accepts_at m y : q y - m y + second m q y = p y + (t (load_of m) y - v m y).
Proof.
have E : m y = v m y * (1 - q y) by rewrite /v divfK // gt_eqF.
by rewrite second_load -/(v m y) {1}E /t; ring.
Qed.

Definition reached m : R := \sum_y Num.min (p y) (q y - m y + second m q y).

Lemma reached_best (load : (V -> R) -> (V -> R) -> R) m :
    (forall y, pos (q y - p y) <= m y) -> (forall y, m y <= q y) ->
    load p q = load_of (refused load p q) ->
  reached m <= reached (refused load p q).
Proof.
move=> lo hi root; set m' := refused load p q in root *.
have m'E y : m' y = Num.min (q y) (Num.max (pos (q y - p y)) (t (load_of m') y * (1 - q y))).
  by rewrite -root.
have v_le (a b : V -> R) y : a y <= b y -> v a y <= v b y by move=> le; rewrite /v ler_pmul2r // invr_gt0.
have t_le mu mu' y : mu <= mu' -> t mu y <= t mu' y.
  by move=> le; rewrite /t ler_add2r ler_wpmul2l ?ler_add2l // (law_ge0 _ lq).
rewrite /reached; have [le_mu|lt_mu] := leP (load_of m) (load_of m').
  apply: ler_sum => y _; rewrite !accepts_at.
  have [le|lt] := leP (v m' y) (t (load_of m') y).
    by rewrite [X in _ <= X]min_l ?ler_addl ?subr_ge0 // le_minl lexx.
  suff le_v : v m' y <= v m y by rewrite le_minr !le_minl lexx /= ler_add2l ler_sub ?t_le // orbT.
  apply: v_le; apply: le_trans (lo y); move: lt; rewrite /v ltr_pdivl_mulr // m'E.
  have [le _|_] := leP (t (load_of m') y * (1 - q y)) (pos (q y - p y)); first by rewrite le_minl lexx orbT.
  by rewrite ltNge le_minl lexx orbT.
pose u y := q y / (1 - q y).
have sumE m0 : 1 - load_of m0 + \sum_y Num.min (t (load_of m0) y) (u y)
              = \sum_y (p y - v m0 y + Num.min (t (load_of m0) y) (u y)).
  by rewrite big_split sumrB /= (law_sum lp).
have upper : \sum_y Num.min (p y) (q y - m y + second m q y)
             <= 1 - load_of m + \sum_y Num.min (t (load_of m) y) (u y).
  rewrite sumE; apply: ler_sum => y _; rewrite accepts_at.
  case: (leP (t (load_of m) y) (u y)) => _; first by rewrite addrAC -addrA le_minl lexx orbT.
  by rewrite le_minl -addrA ler_addl addrC subr_ge0; apply/orP; left; apply: v_le.
have lower : 1 - load_of m' + \sum_y Num.min (t (load_of m') y) (u y)
             <= \sum_y Num.min (p y) (q y - m' y + second m' q y).
  rewrite sumE; apply: ler_sum => y _; rewrite accepts_at le_minr -addrA ger_addl addrC subr_le0.
  rewrite ler_add2l ler_add2r !le_minl lexx /= andbT /v /u m'E; case: (leP (q y)) => _.
    by rewrite lexx orbT.
  by rewrite ler_pdivl_mulr // le_maxr lexx !orbT.
apply: le_trans upper (le_trans _ lower).
have -> : 1 - load_of m = 1 - load_of m' - (load_of m - load_of m') by ring.
rewrite -addrA ler_add2l addrC ler_subl_addr.
have -> : load_of m - load_of m' = \sum_y q y * (load_of m - load_of m').
  by rewrite -big_distrl /= (law_sum lq) mul1r.
rewrite -big_split; apply: ler_sum => y _ /=.
have d0 : 0 <= q y * (load_of m - load_of m') by rewrite mulr_ge0 ?(law_ge0 _ lq) // subr_ge0 ltW.
have -> : t (load_of m) y = t (load_of m') y + q y * (load_of m - load_of m') by rewrite /t; ring.
case: (leP (t (load_of m') y) (u y)) => _; first by rewrite le_minl lexx.
by rewrite le_minl ler_addl d0 orbT.
Qed.

(* A sequential rule: accept the candidate at hand, knowing those rejected before it; f after both were rejected. *)
Definition decide (a f : seq V -> V -> R) : procedure R V :=
  Procedure (fun h => if h is x :: _ then norm (drop q x) else q) a (fun h x => x :: h) f.

Theorem shaped_without_best (load : (V -> R) -> (V -> R) -> R) a f :
    (forall h x, 0 <= a h x <= 1) -> (forall h y, 0 <= f h y) -> @exact _ _ (decide a f) 2 [::] p ->
    load p q = \sum_x refused load p q x / (1 - q x) ->
  @acceptance _ _ (decide a f) 2 [::] <= @acceptance _ _ (shaped_without load) 2 (2%N, (p, q)).
Proof.
move=> a01 f0 ex root; rewrite shaped_without_acceptance //.
have lD x : law (norm (drop q x)) by apply: drop_law.
have mass1 x : @mass _ _ (decide a f) 1 [:: x] = 1.
  rewrite massS /= -(law_sum (lD x)); apply: eq_bigr => y _.
  by rewrite mass0 mulr1.
pose m x := q x * (1 - a [::] x).
have m0 x : 0 <= m x by have /andP[_ le] := a01 [::] x; rewrite /m mulr_ge0 ?(law_ge0 _ lq) ?subr_ge0.
pose A y := q y * a [::] y + \sum_x m x * (norm (drop q x) y * a [:: x] y).
have accE : @acceptance _ _ (decide a f) 2 [::] = \sum_y A y.
  rewrite acceptanceS => [|x _] /=; last exact: mass1.
  rewrite /A big_split /=; congr (_ + _); rewrite exchange_big /=; apply: eq_bigr => x _.
  rewrite -big_distrr /= -/(m x); congr (_ * _); rewrite acceptanceS => [|y _]; last exact: mass0.
  by rewrite [X in _ + X]big1 ?addr0 // => y _; rewrite acceptance0 mulr0.
have A_le_p y : A y <= p y.
  rewrite -(ex y) outputS => [|x _] /=; last exact: mass1.
  rewrite ler_add2l; apply: ler_sum => x _; rewrite -/(m x) ler_wpmul2l //.
  rewrite outputS => [|z _] /=; last exact: mass0.
  rewrite ler_addl sumr_ge0 // => z _; have /andP[_ le] := a01 [:: x] z.
  rewrite output0 /=; apply: mulr_ge0 => //; apply: mulr_ge0; last by rewrite subr_ge0.
  exact: law_ge0 (lD x).
have A_le y : A y <= q y - m y + second m q y.
  have -> : q y - m y = q y * a [::] y by rewrite /m; ring.
  rewrite ler_add2l; apply: ler_sum => x _; rewrite ler_wpmul2l //.
  by have /andP[_ le] := a01 [:: x] y; rewrite -[X in _ <= X]mulr1 ler_wpmul2l ?(law_ge0 _ (lD x)).
rewrite accE; apply: le_trans (_ : reached m <= _).
  by apply: ler_sum => y _; rewrite le_minr A_le_p A_le.
apply: reached_best => // y; last first.
  by have /andP[ge _] := a01 [::] y; rewrite /m ler_pimulr ?(law_ge0 _ lq) // ler_subl_addr ler_addl.
rewrite /pos le_maxl m0 andbT ler_subl_addr -ler_subl_addl; apply: le_trans (A_le_p y).
have -> : q y - m y = q y * a [::] y by rewrite /m; ring.
rewrite ler_addl sumr_ge0 // => x _; have /andP[ge _] := a01 [:: x] y.
by apply: mulr_ge0 => //; apply: mulr_ge0 => //; exact: law_ge0 (lD x).
Qed.

End TwoCandidates.

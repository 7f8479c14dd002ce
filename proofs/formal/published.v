(* The rule as published (Algorithm 1), for any redistribution: what exactness demands of it at n = 1, why that is
   not met, and one rational pair with its output laws. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws procedure chain shaped sequential ceiling.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Published.
Variables (R : realFieldType) (V : finType) (p q : V -> R).
Hypotheses (lp : law p) (lq : law q).

(* shape w x y: the residual mass r(y) built after rejecting x from the residual w; its sum should be the
   budget Z = q(x) - w(x), and r / Z is the next residual. *)
Definition published (shape : (V -> R) -> V -> V -> R) : procedure R V :=
  Procedure (fun _ : V -> R => q) (fun w x => ratio w q x)
            (fun w x y => shape w x y / (q x - w x)) id.

Variable shape : (V -> R) -> V -> V -> R.

Theorem published_law_one y :
  @output _ _ (published shape) 1 p y = Num.min (p y) (q y) + \sum_(x | p x < q x) shape p x y.
Proof.
rewrite (@iid_outputS _ _ q (law_sum lq)) //= accepted_min ?(law_ge0 _ lp) ?(law_ge0 _ lq) //.
congr (_ + _); rewrite [RHS]big_mkcond; apply: eq_bigr => x _.
rewrite output0 /= rejected_pos ?(law_ge0 _ lp) ?(law_ge0 _ lq) //; case: ifP => [lt_pq|/negbT].
  by rewrite pos_id ?subr_ge0 1?ltW // mulrC divfK // subr_eq0 gt_eqF.
by rewrite -leNgt => le_qp; rewrite pos_eq0 ?subr_le0 // mul0r.
Qed.

(* Exact at n = 1 if and only if the residuals built after each over-drafted token add up to (p - q)+. *)
Theorem published_exact_iff :
  @exact _ _ (published shape) 1 p p
  <-> (forall y, \sum_(x | p x < q x) shape p x y = pos (p y - q y)).
Proof.
split=> H y; last by rewrite published_law_one H min_pos.
by have := H y; rewrite published_law_one -{2}(min_pos (p y) (q y)) => /addrI.
Qed.

(* The projection r = min(Z q, w) off x, 0 at x; a redistribution may add to it, never take away. *)
Definition projection (w : V -> R) x y : R :=
  if y == x then 0 else Num.min ((q x - w x) * q y) (w y).

(* Whatever the redistribution: a rejected token x and another token y with 0 < p(y) <= q(y) make the rule biased. *)
Theorem published_biased x y :
    (forall x' y', p x' < q x' -> projection p x' y' <= shape p x' y') ->
    x != y -> p x < q x -> 0 < p y -> p y <= q y ->
  ~ @exact _ _ (published shape) 1 p p.
Proof.
move=> above ne_xy lt_x p_y le_y /published_exact_iff /(_ y).
rewrite [pos _]pos_eq0 ?subr_le0 // => E.
have P z : p z < q z -> 0 <= projection p z y.
  move=> lt_z; rewrite /projection; case: ifP => // _.
  by rewrite le_minr (ltW p_y) andbT mulr_ge0 ?(law_ge0 _ lq) // subr_ge0 ltW.
have N z : p z < q z -> 0 <= shape p z y by move=> lt_z; apply: le_trans (P z lt_z) (above _ _ lt_z).
have := above x y lt_x; rewrite (psumr_eq0P N E) // /projection eq_sym (negbTE ne_xy).
rewrite leNgt lt_minr p_y mulr_gt0 ?subr_gt0 //.
exact: lt_le_trans le_y.
Qed.

(* Two readings of the redistribution. *)
Definition proportional (w : V -> R) x y : R :=
  let m := projection w x in
  let t := (q x - w x - \sum_z m z) / \sum_z (drop w x z - m z) in
  m y + t * (drop w x y - m y).

Definition waterfilling (w : V -> R) x (r : V -> R) :=
  exists c, [/\ r x = 0, forall y, y != x -> r y = Num.min (c * q y) (w y) & \sum_y r y = q x - w x].

End Published.

Section WaterfillingUnique.
Variables (R : realFieldType) (V : finType) (q w : V -> R) (x : V).
Hypothesis q0 : forall y, 0 <= q y.

(* The condition fixes r: two scalars c that spend the same budget give the same residual. *)
Lemma waterfilling_unique r r' : waterfilling q w x r -> waterfilling q w x r' -> r =1 r'.
Proof.
move=> [c [r0 rc rs]] [c' [r0' rc' rs']].
wlog le_c : c c' r r' r0 rc rs r0' rc' rs' / c <= c'.
  move=> W; have [le|/ltW le] := leP c c'; first exact: (W c c').
  by move=> y; rewrite (W c' c r' r).
have D y : 0 <= r' y - r y.
  have [->|NE] := eqVneq y x; first by rewrite r0 r0' subrr.
  rewrite subr_ge0 rc // rc' // le_minr !le_minl lexx orbT andbT.
  by rewrite ler_wpmul2r.
have S : \sum_y (r' y - r y) = 0 by rewrite sumrB rs rs' subrr.
by move=> y; apply/eqP; rewrite eq_sym -subr_eq0 (sum0_eq0 D S).
Qed.

End WaterfillingUnique.

Section Witness.

Definition three (a b c : rat) (i : 'I_3) : rat := nth 0 [:: a; b; c] i.
Definition frac (a b : nat) : rat := fracq (a%:Z, b%:Z).

Lemma fracE a b : frac a b = a%:Q / b%:Q.
Proof. exact: fracqE. Qed.

Definition p3 := three (frac 1 3) (frac 1 3) (frac 1 3).
Definition q3 := three (frac 1 2) (frac 2 5) (frac 1 10).
Let o0 := @Ordinal 3 0 isT.
Let o1 := @Ordinal 3 1 isT.
Let o2 := @Ordinal 3 2 isT.

Lemma sum3 (F : 'I_3 -> rat) : \sum_i F i = F o0 + F o1 + F o2.
Proof. by rewrite !big_ord_recl big_ord0 addr0 addrA; congr (F _ + F _ + F _); apply: val_inj. Qed.

Lemma each3 (P : 'I_3 -> Prop) : P o0 -> P o1 -> P o2 -> forall i, P i.
Proof.
move=> P0 P1 P2 [m lt].
have E (k : 'I_3) : nat_of_ord k = m -> P k -> P (Ordinal lt).
  by move=> e Pk; rewrite (_ : Ordinal lt = k) //; apply: val_inj.
case: m lt E => [|[|[|//]]] lt E; [exact: (E o0) | exact: (E o1) | exact: (E o2)].
Qed.

(* Equality of two closed rationals, by computation. *)
Ltac rational := apply/eqP; vm_compute; reflexivity.

Lemma law_p3 : law p3.
Proof. by split; [apply: each3; vm_compute | rewrite sum3; rational]. Qed.

Lemma law_q3 : law q3.
Proof. by split; [apply: each3; vm_compute | rewrite sum3; rational]. Qed.

(* Every redistribution is biased at the pair p3, q3. *)
Theorem witness_biased shape :
    (forall x y, p3 x < q3 x -> projection q3 p3 x y <= shape p3 x y) ->
  ~ @exact _ _ (published q3 shape) 1 p3 p3.
Proof. by move=> above; apply: (published_biased law_p3 law_q3 above (x := o0) (y := o1)); vm_compute. Qed.

(* Proportional redistribution: the residual mass after each of the two possible rejections. *)
Lemma proportional_o0 : proportional q3 p3 o0 =1 three 0 (frac 11 105) (frac 13 210).
Proof.
have m : projection q3 p3 o0 =1 three 0 (frac 1 15) (frac 1 60) by apply: each3; rational.
have M : \sum_z projection q3 p3 o0 z = frac 1 12 by rewrite (eq_bigr _ (fun z _ => m z)) sum3; rational.
have C : \sum_z (drop p3 o0 z - projection q3 p3 o0 z) = frac 7 12 by rewrite sum3 !m; rational.
by move=> y; rewrite /proportional M C m; move: y; apply: each3; rational.
Qed.

Lemma proportional_o1 : proportional q3 p3 o1 =1 three (frac 13 282) 0 (frac 29 1410).
Proof.
have m : projection q3 p3 o1 =1 three (frac 1 30) 0 (frac 1 150) by apply: each3; rational.
have M : \sum_z projection q3 p3 o1 z = frac 1 25 by rewrite (eq_bigr _ (fun z _ => m z)) sum3; rational.
have C : \sum_z (drop p3 o1 z - projection q3 p3 o1 z) = frac 47 75 by rewrite sum3 !m; rational.
by move=> y; rewrite /proportional M C m; move: y; apply: each3; rational.
Qed.

(* ... and the output law at n = 1. *)
Theorem proportional_law :
  @output _ _ (published q3 (proportional q3)) 1 p3
  =1 three (frac 107 282) (frac 46 105) (frac 1801 (94 * 105)).
Proof.
move=> y; rewrite (published_law_one law_p3 law_q3) big_mkcond sum3 proportional_o0 proportional_o1.
by move: y; apply: each3; rational.
Qed.

Corollary proportional_not_exact : ~ @exact _ _ (published q3 (proportional q3)) 1 p3 p3.
Proof. by move=> /(_ o0); rewrite proportional_law => /eqP; vm_compute. Qed.

(* Water-filling: the output law at n = 1. *)
Definition filled (x : 'I_3) : 'I_3 -> rat :=
  if x == o0 then three 0 (frac 2 15) (frac 1 30) else three (frac 1 18) 0 (frac 1 90).

Lemma filled_waterfilling x : p3 x < q3 x -> waterfilling q3 p3 x (filled x).
Proof.
have no : (p3 o2 < q3 o2) = false by vm_compute.
move: x; apply: each3 => lt_x; last by rewrite no in lt_x.
  exists (frac 1 3); split; [rational | | by rewrite sum3; rational].
  by apply: each3 => [|_|_]; [rewrite eqxx | rational | rational].
exists (frac 1 9); split; [rational | | by rewrite sum3; rational].
by apply: each3 => [_||_]; [rational | rewrite eqxx | rational].
Qed.

Theorem waterfilling_law shape :
    (forall x, p3 x < q3 x -> waterfilling q3 p3 x (shape p3 x)) ->
  @output _ _ (published q3 shape) 1 p3 =1 three (frac 7 18) (frac 7 15) (frac 13 90).
Proof.
move=> wf y; have q0 z : 0 <= q3 z by exact: law_ge0 law_q3.
rewrite (published_law_one law_p3 law_q3).
rewrite (eq_bigr (fun x => filled x y)) => [|x lt_x]; last first.
  exact: (waterfilling_unique q0 (wf x lt_x) (filled_waterfilling lt_x)).
by rewrite big_mkcond sum3; move: y; apply: each3; rational.
Qed.

Corollary waterfilling_not_exact shape :
    (forall x, p3 x < q3 x -> waterfilling q3 p3 x (shape p3 x)) ->
  ~ @exact _ _ (published q3 shape) 1 p3 p3.
Proof. by move=> wf /(_ o0); rewrite waterfilling_law // => /eqP; vm_compute. Qed.

(* At n = 2 the same pair is accepted with probability 89/100. *)
Theorem proportional_accepts_two :
  @acceptance _ _ (published q3 (proportional q3)) 2 p3 = frac 89 100.
Proof.
set M := published q3 (proportional q3).
have step := @iid_acceptanceS _ _ q3 (law_sum law_q3) M (fun _ _ => erefl).
have last s : @acceptance _ _ M 1 s = \sum_x q3 x * ratio s q3 x.
  by rewrite step [X in _ + X]big1 ?addr0 // => x _; rewrite acceptance0 mulr0.
have A0 : @acceptance _ _ M 1 (fun y => proportional q3 p3 o0 y / (q3 o0 - p3 o0)) = frac 1 2.
  by rewrite last sum3 /ratio !proportional_o0; rational.
have A1 : @acceptance _ _ M 1 (fun y => proportional q3 p3 o1 y / (q3 o1 - p3 o1)) = frac 3 5.
  by rewrite last sum3 /ratio !proportional_o1; rational.
have B0 : @acceptance _ _ M 1 (@next _ _ M p3 o0) = frac 1 2 by exact: A0.
have B1 : @acceptance _ _ M 1 (@next _ _ M p3 o1) = frac 3 5 by exact: A1.
have E2 : @acc _ _ M p3 o2 = 1 by rational.
rewrite step !sum3 E2 subrr mulr0 mul0r addr0 B0 B1.
rational.
Qed.

(* ... and no exact verifier of two candidates accepts more than 257/300. *)
Theorem witness_ceiling_two (J : 2.-tuple 'I_3 -> 'I_3 -> rat) :
    (forall t y, 0 <= J t y) -> (forall y, \sum_t J t y = p3 y) ->
    (forall t : 2.-tuple 'I_3, \sum_y J t y = \prod_(x <- t) q3 x) ->
  accepted J <= frac 257 300 /\ frac 257 300 < frac 89 100.
Proof.
move=> J0 Jp Jq; split; last by vm_compute.
apply: le_trans (ceiling law_q3 J0 Jp (fun i => i != o2) Jq) _.
by rewrite big_mkcond [X in X ^+ _]big_mkcond !sum3; vm_compute.
Qed.

(* `shaped` reaches that ceiling with T = 19/10: its conditions can be met. *)
Theorem shaped_witness_two :
  tau p3 q3 (frac 19 10) 2 = 0
  /\ @acceptance _ _ (chain q3 (shaped_residual p3 q3 (frac 19 10))) 2 0%N = frac 257 300.
Proof.
have t0 : tau p3 q3 (frac 19 10) 2 = 0 by rewrite /= !sum3; rational.
by split=> //; rewrite (shaped_acceptance law_p3 law_q3 t0) sum3; rational.
Qed.

End Witness.

(* The published rule with any law D of the next candidate, given those before it (latest first); shape d w x is what
   it builds after rejecting x, drawn from d. *)
Section Fixed.
Variables (R : realFieldType) (V : finType) (D : seq V -> V -> R).
Variable shape : (V -> R) -> (V -> R) -> V -> V -> R.

Definition published_after : procedure R V :=
  Procedure (fun s : (V -> R) * seq V => D s.2) (fun s x => ratio s.1 (D s.2) x)
            (fun s x => (fun y => shape (D s.2) s.1 x y / (D s.2 x - s.1 x), x :: s.2)) (fun s => s.1).

(* Fixed candidates: then the budget Z = 1 - w(x) is all that is left off x, which any redistribution must fill. *)
Hypothesis fixed : forall h, exists x, D h =1 (fun y => (y == x)%:R).
Hypothesis fills : forall d w x, law w -> w x < d x ->
  (forall y, shape d w x y <= drop w x y) /\ \sum_y shape d w x y = d x - w x.

Let fixed_law h : law (D h).
Proof.
have [x Dx] := fixed h; split=> [y|]; first by rewrite Dx ler0n.
by rewrite (bigD1 x) //= Dx eqxx big1 ?addr0 // => y /negbTE NE; rewrite Dx NE.
Qed.

Let fixed_mass n s : @mass _ _ published_after n s = 1.
Proof.
elim: n s => [|n IH] s; first exact: mass0.
by rewrite massS -(law_sum (fixed_law s.2)); apply: eq_bigr => x _; rewrite IH mulr1.
Qed.

Let le1 (w : V -> R) x : law w -> w x <= 1.
Proof. by move=> [w0 <-]; rewrite (bigD1 x) //= ler_addl sumr_ge0. Qed.

Let shape_is_drop (d w : V -> R) x y : law w -> d x = 1 -> w x != 1 -> shape d w x y = drop w x y.
Proof.
move=> lw d1 NE; have lt : w x < d x by rewrite d1 lt_neqAle NE le1.
have [le sum_shape] := fills lw lt; apply/eqP; rewrite eq_sym -subr_eq0; apply/eqP.
apply: (@sum0_eq0 _ _ (fun z => drop w x z - shape d w x z)) => [z|]; first by rewrite subr_ge0.
by rewrite sumrB sum_shape drop_sum // d1 subrr.
Qed.

Theorem published_fixed_exact p n : law p -> @exact _ _ published_after n (p, [::]) p.
Proof.
move=> lp; apply: (@balance _ _ published_after (fun _ s => law s.1) (fun s => s.1)) => //= [_ [w h] x|_ [w h] y] /= lw.
  have [a Da] := fixed h; move=> NE; have E : x = a.
    by apply/eqP; apply: contraTT NE => /negbTE ne; rewrite Da ne mul0r eqxx.
  have D1 : D h x = 1 by rewrite Da E eqxx.
  have w1 : w x != 1.
    by apply: contra_neq NE => w1; rewrite /ratio D1 w1 divr1 minxx subrr mulr0.
  have S : \sum_z drop w x z != 0 by rewrite drop_sum // subr_eq0 eq_sym.
  have [n0 n1] := norm_law (fun z => drop_ge0 x z (fun u => law_ge0 u lw)) S.
  have E' y : shape (D h) w x y / (D h x - w x) = norm (drop w x) y.
    by rewrite shape_is_drop // D1 -(drop_sum x lw).
  by split=> [y|]; [rewrite E' | rewrite -[RHS]n1; apply: eq_bigr => y _; rewrite E'].
have [a Da] := fixed h; have D1 : D h a = 1 by rewrite Da eqxx.
rewrite accepted_min ?(law_ge0 _ lw) ?(law_ge0 _ (fixed_law h)) // (bigD1 a) //= [X in _ + (_ + X)]big1 => [|x ne]; last first.
  by rewrite Da (negbTE ne) !mul0r.
have Ra : ratio w (D h) a = w a by rewrite /ratio D1 divr1 min_r // le1.
rewrite addr0 Ra D1 mul1r Da.
have [w1|NE] := eqVneq (w a) 1.
  rewrite w1 subrr mul0r addr0; have [->|ne] := eqVneq y a; first by rewrite w1 minxx.
  have := drop_sum a lw; rewrite w1 subrr => /(sum0_eq0 (fun z => drop_ge0 a z (fun u => law_ge0 u lw))) /(_ y).
  by rewrite /drop (negbTE ne) => ->; rewrite minxx.
rewrite shape_is_drop // mulrC divfK ?subr_eq0 1?eq_sym // /drop.
have [->|ne] := eqVneq y a; first by rewrite addr0 min_l ?le1.
by rewrite min_r ?add0r // (law_ge0 _ lw).
Qed.

End Fixed.

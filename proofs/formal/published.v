(* The rule as published (Algorithm 1), for any redistribution: what exactness demands of it at n = 1, why that is
   not met, and one rational pair with its output laws. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws procedure sequential.
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
  by rewrite le_minr ltW // mulr_ge0 ?(law_ge0 _ lq) // subr_ge0 ltW.
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

Section Witness.

Definition three (a b c : rat) (i : 'I_3) : rat := nth 0 [:: a; b; c] i.
Definition third : rat := 1 / 3%:R.
Definition p3 := three third third third.
Definition q3 := three (1 / 2%:R) (2%:R / 5%:R) (1 / 10%:R).

Lemma sum3 (F : 'I_3 -> rat) : \sum_i F i = F (inord 0) + F (inord 1) + F (inord 2).
Proof.
rewrite !big_ord_recl big_ord0 addr0 addrA; congr (F _ + F _ + F _).
all: by apply/val_inj; rewrite /= inordK.
Qed.

End Witness.

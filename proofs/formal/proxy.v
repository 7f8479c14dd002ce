(* The proxy of the optimal rule: its levels exist, and it is majorised, so priority sets exist for it. The tokens that
   can be drafted are numbered from 0 to m - 1 in the order of p / q. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws priorities.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

(* The proxy k* = max(p, c1 q) on the first h tokens by p / q, min(p, c2 q) on the others. *)
Section Proxy.
Variables (R : realFieldType) (n m h : nat) (p q : nat -> R) (c1 c2 : R).
Hypotheses (n0 : (0 < n)%N) (hm : (h <= m)%N) (q0 : forall i, (i < m)%N -> 0 < q i).
Let Q := upto q.
Let P := upto p.
Let r i := p i / q i.

(* Tokens in the order of p / q, of which the first h have the smallest bound. Nothing is asked of the sum of p. *)
Definition least_prefix := [/\ Q m = 1, forall i l, (i <= l < m)%N -> r i <= r l &
  forall j, (j <= m)%N -> P h - Q h ^+ n <= P j - Q j ^+ n].

Definition proxy i : R := if (i < h)%N then Num.max (p i) (c1 * q i) else Num.min (p i) (c2 * q i).
Let K := upto proxy.
Let s i := if (i < h)%N then Num.max (r i) c1 else Num.min (r i) c2.

Hypotheses (least : least_prefix) (mass_in : K h = Q h ^+ n) (mass_all : K m = 1).

Let q1 : Q m = 1. Proof. by case: least. Qed.
Let r_up i l : (i <= l < m)%N -> r i <= r l. Proof. by case: least => _ + _; exact. Qed.

Let low j : (j <= m)%N -> P h - P j <= Q h ^+ n - Q j ^+ n.
Proof.
move=> jm; rewrite -subr_ge0; have -> : Q h ^+ n - Q j ^+ n - (P h - P j) = P j - Q j ^+ n - (P h - Q h ^+ n) by ring.
by rewrite subr_ge0; case: least => _ _; apply.
Qed.

Let pE i : (i < m)%N -> p i = q i * r i.
Proof. by move=> im; rewrite /r mulrC divfK // gt_eqF // q0. Qed.

Let proxyE i : (i < m)%N -> proxy i = q i * s i.
Proof.
move=> im; have qi := ltW (q0 im).
by rewrite /proxy /s (pE im) ![_ * q i]mulrC; case: ifP => _; rewrite (maxr_pmulr, minr_pmulr).
Qed.

Let Q_le j k : (j <= k <= m)%N -> Q j <= Q k. Proof. exact: upto_le. Qed.
Let Q_lt j k : (j < k <= m)%N -> Q j < Q k. Proof. exact: upto_lt. Qed.
Let Q_ge0 j : (j <= m)%N -> 0 <= Q j. Proof. exact: upto_ge0. Qed.
Let Q_le1 j : (j <= m)%N -> Q j <= 1. Proof. by move=> jm; rewrite -q1 Q_le // jm leqnn. Qed.
Let Q0 : Q 0%N = 0. Proof. exact: upto0. Qed.
Let zero_pow : 0 ^+ n = 0 :> R. Proof. by rewrite expr0n gtn_eqF. Qed.

(* All that is needed of the levels and of the ratios next to the cut: slopes of t^n on either side of Q h. *)
Let c1_low : (0 < h)%N -> c1 <= height n 0 (Q h).
Proof.
move=> h0; have Qh : 0 < Q h - 0 by rewrite subr_gt0 -Q0 Q_lt // h0.
rewrite -(ler_pmul2l Qh) heightE zero_pow !subr0 -mass_in mulrC -upto_scale.
have := @upto_mono _ (fun i => c1 * q i) proxy 0 h (leq0n h); rewrite !upto0 !subr0; apply=> i /andP [_ ih].
by rewrite /proxy ih le_maxr lexx orbT.
Qed.

Let c2_high : (h < m)%N -> height n (Q h) 1 <= c2.
Proof.
move=> h_m; have Qh : 0 < 1 - Q h by rewrite subr_gt0 -q1 Q_lt // h_m leqnn.
rewrite -(ler_pmul2l Qh) heightE expr1n -mass_in -{1}mass_all mulrC -q1 mulrBr -!upto_scale.
by apply: upto_mono => // i /andP [hi _]; rewrite /proxy ltnNge hi le_minl lexx orbT.
Qed.

Let r_low i : (i < h)%N -> r i <= height n (Q h.-1) (Q h).
Proof.
move=> ih; have h0 : (0 < h)%N by apply: leq_trans ih.
have pm : (h.-1 < m)%N by rewrite prednK.
apply: le_trans (_ : r h.-1 <= _); first by rewrite r_up // -ltnS prednK // ih.
rewrite -(ler_pmul2l (q0 pm)) -pE //.
have last f : upto f h - upto f h.-1 = f h.-1 by rewrite -{1}(prednK h0) upto_step addrC addKr.
by have := low (ltnW pm); rewrite -heightE /P /Q !last.
Qed.

Let r_high j : (h <= j < m)%N -> height n (Q h) (Q h.+1) <= r j.
Proof.
case/andP=> hj jm; have h_m : (h < m)%N by apply: leq_ltn_trans jm.
apply: le_trans (_ : r h <= _); last by rewrite r_up // hj.
rewrite -(ler_pmul2l (q0 h_m)) -pE // window_value -/Q.
have next : P h.+1 - P h = p h by rewrite /P upto_step addrC addKr.
by have := low h_m; rewrite -ler_opp2 !opprB next.
Qed.

(* The groups come in the order of k* / q. *)
Let s_up i l : (i <= l < m)%N -> s i <= s l.
Proof.
case/andP=> il lm; have rr : r i <= r l by rewrite r_up // il.
rewrite /s; case: (ltnP i h) => ih; case: (ltnP l h) => lh.
- by rewrite le_maxl !le_maxr rr lexx orbT.
- have h0 : (0 < h)%N by apply: leq_trans ih.
  have h_m : (h < m)%N by apply: leq_ltn_trans lm.
  have ph : (h.-1 <= h)%N by exact: leq_pred.
  rewrite le_maxl !le_minr rr /=; apply/andP; split.
    apply: le_trans (r_low ih) (le_trans _ (c2_high h_m)); apply: height_le;
    by rewrite ?Q_ge0 ?Q_le1 ?Q_le ?ph ?(leq_trans ph).
  apply/andP; split; apply: le_trans (c1_low h0) _.
    by apply: le_trans (r_high _); rewrite ?lh //; apply: height_le; rewrite ?Q_ge0 ?Q_le ?leqnSn.
  by apply: le_trans (c2_high h_m); apply: height_le; rewrite ?Q_ge0 ?Q_le1.
- by have := leq_trans (leq_ltn_trans il lh) ih; rewrite ltnn.
- by rewrite le_minr !le_minl rr lexx orbT.
Qed.

(* On the prefix, from its end backwards. *)
Let early d : (d <= h)%N -> Q (h - d) ^+ n <= K (h - d).
Proof.
elim: d => [|d IH] dh; first by rewrite subn0 mass_in.
set j := (h - d.+1)%N; have jd : (h - d)%N = j.+1 by rewrite /j subnS prednK // subn_gt0.
have jh : (j < h)%N by rewrite -jd leq_subr.
have jm : (j < m)%N by apply: leq_trans hm.
have {IH} : Q j.+1 ^+ n <= K j.+1 by rewrite -jd IH // ltnW.
have [cr|rc] := leP c1 (r j) => IH.
  have : K h - K j <= P h - P j.
    apply: upto_mono => [|i /andP [ji ih]]; first exact: ltnW.
    have im : (i < m)%N by apply: leq_trans hm.
    by rewrite /proxy ih le_maxl lexx /= (pE im) mulrC ler_wpmul2l ?(ltW (q0 im)) // (le_trans cr) // r_up // ji.
  by move/le_trans => /(_ _ (low (ltnW jm))); rewrite mass_in ler_add2l ler_opp2.
have flat k : (k <= j.+1)%N -> K k = c1 * Q k.
  move=> kj; rewrite -upto_scale; apply: eq_bigr => -[i /= ik] _.
  have ij : (i <= j)%N by rewrite -ltnS (leq_trans ik).
  have ih : (i < h)%N by apply: leq_ltn_trans jh.
  have im : (i < m)%N by apply: leq_trans hm.
  by rewrite /proxy ih max_r // (pE im) mulrC ler_wpmul2r ?(ltW (q0 im)) // (le_trans _ (ltW rc)) // r_up // ij.
have power k : Q k ^+ n = Q k * height n 0 (Q k) by rewrite -{2}[Q k]subr0 heightE zero_pow subr0.
move: IH; rewrite !flat // !power ![_ * Q _]mulrC ler_pmul2l => [slope|]; last by rewrite -Q0 Q_lt.
rewrite ler_wpmul2l ?Q_ge0 ?(ltnW jm) // (le_trans _ slope) // height_le ?Q_ge0 ?(ltnW jm) //.
by rewrite Q_le // leqnSn.
Qed.

(* Behind it, forwards. *)
Let late d : (h + d <= m)%N -> Q (h + d) ^+ n <= K (h + d).
Proof.
elim: d => [|d IH]; rewrite ?addn0 ?mass_in // addnS; set j := (h + d)%N => jm.
have hj : (h <= j)%N by rewrite leq_addr.
have {}IH : Q j ^+ n <= K j by apply: IH; rewrite ltnW.
have [rc|cr] := leP (r j) c2.
  have : P j.+1 - P h <= K j.+1 - K h.
    apply: upto_mono => [|i /andP [hi ij]]; first by rewrite leqW.
    have im : (i < m)%N by apply: leq_trans jm.
    rewrite /proxy ltnNge hi le_minr lexx /= (pE im) mulrC ler_wpmul2r ?(ltW (q0 im)) // (le_trans _ rc) //.
    by rewrite r_up // -ltnS ij.
  have := low jm; rewrite -ler_opp2 !opprB => /le_trans le /le.
  by rewrite mass_in ler_add2r.
have flat k : (j <= k <= m)%N -> K k = 1 - c2 * (1 - Q k).
  case/andP=> jk km; rewrite -[LHS](subKr (K m)) {1}mass_all; congr (_ - _).
  rewrite -q1 mulrBr -!upto_scale -!upto_between // !big_nat; apply: eq_bigr => i /andP [ki im].
  have ji : (j <= i)%N by apply: leq_trans ki.
  rewrite /proxy ltnNge (leq_trans hj ji) /= min_r // (pE im) mulrC ler_wpmul2l ?(ltW (q0 im)) //.
  by rewrite (le_trans (ltW cr)) // r_up // ji.
have power k : 1 - Q k ^+ n = (1 - Q k) * height n (Q k) 1 by rewrite heightE expr1n.
have turn (a b : R) : (a <= 1 - b) = (b <= 1 - a) by rewrite ler_subr_addl addrC -ler_subr_addl.
move: IH; rewrite !flat ?leqnn ?leqnSn ?(ltnW jm) ?jm // !(turn (_ ^+ _)) !power ![c2 * _]mulrC.
rewrite ler_pmul2l => [slope|]; last by rewrite subr_gt0 -q1 Q_lt // jm leqnn.
rewrite ler_wpmul2l ?subr_ge0 ?Q_le1 // (le_trans slope) //.
by apply: height_le; rewrite ?ler01 ?lexx ?Q_ge0 ?Q_le ?leqnSn ?(ltnW jm).
Qed.

(* k* comes as early as the n-th powers do, so there are sets for it. *)
Theorem proxy_majorised j : (j <= m)%N -> Q j ^+ n <= K j.
Proof.
move=> jm; case: (leqP j h) => [jh|/ltnW hj]; first by rewrite -(subKn jh) early // leq_subr.
by rewrite -(subnKC hj) late // subnKC.
Qed.

Theorem proxy_sets_exist : exists sets, @priority_sets R n m q proxy sets.
Proof.
apply: priority_sets_exist => // [i l /andP [il lm]|j|]; last by rewrite -/K -/Q mass_all q1 expr1n.
  have im : (i < m)%N by apply: leq_ltn_trans lm.
  by rewrite !proxyE // mulrAC divff ?gt_eqF ?q0 // mul1r mulrAC divff ?gt_eqF ?q0 // mul1r s_up // il.
exact: proxy_majorised.
Qed.
End Proxy.

(* The levels c1 and c2 exist: sums of max(p, c q), or of min, are affine in c between the ratios. *)
Section Root.
Variables (R : realFieldType) (F : R -> R) (breaks : seq R).
Hypothesis affine : forall a b, a <= b -> (forall x, x \in breaks -> x <= a \/ b <= x) ->
  exists s t, forall c, a <= c <= b -> F c = s * c + t.

Lemma root_between a b y : a <= b -> F a <= y <= F b -> exists c, F c = y.
Proof.
have: forall x, x \in breaks -> x \in breaks \/ (x <= a \/ b <= x) by left.
elim: {2}breaks a b => [|z zs IH] a b out ab /andP [ya yb].
  have [|s [t line]] := affine ab; first by move=> x /out [].
  have Fa : F a = s * a + t by rewrite line // lexx.
  have Fb : F b = s * b + t by rewrite line // lexx ab.
  have [E|ne] := eqVneq (F a) (F b); first by exists a; apply/eqP; rewrite eq_le ya E yb.
  have w0 : 0 < F b - F a by rewrite subr_gt0 lt_neqAle ne (le_trans ya).
  pose w := (y - F a) / (F b - F a).
  have w01 : 0 <= w <= 1 by rewrite /w divr_ge0 ?(ltW w0) ?subr_ge0 //= ler_pdivr_mulr // mul1r ler_add2r.
  case/andP: w01 => w_ge w_le; exists (a + w * (b - a)); rewrite line; last first.
    by rewrite ler_addl mulr_ge0 ?subr_ge0 //= -ler_subr_addl ler_pimull // subr_ge0.
  have -> : s * (a + w * (b - a)) + t = F a + w * (F b - F a) by rewrite Fa Fb; ring.
  by rewrite divfK ?gt_eqF // addrC subrK.
have [za|az] := leP z a.
  by apply: (IH a b); rewrite ?ya ?yb // => x /out; rewrite inE => -[/orP [/eqP ->|]|]; tauto.
have [bz|zb] := leP b z.
  by apply: (IH a b); rewrite ?ya ?yb // => x /out; rewrite inE => -[/orP [/eqP ->|]|]; tauto.
have [Fz|Fz] := leP (F z) y.
  apply: (IH z b); rewrite ?Fz ?yb ?(ltW zb) // => x /out; rewrite inE => -[/orP [/eqP ->|]|[xa|]]; try tauto.
    by right; left.
  by right; left; apply: le_trans xa (ltW az).
apply: (IH a z); rewrite ?ya ?(ltW Fz) ?(ltW az) // => x /out; rewrite inE => -[/orP [/eqP ->|]|[|bx]]; try tauto.
  by right; right.
by right; right; apply: le_trans (ltW zb) bx.
Qed.
End Root.

Section Levels.
Variables (R : realFieldType) (n m h : nat) (p q : nat -> R).
Hypotheses (n0 : (0 < n)%N) (hm : (h <= m)%N) (q0 : forall i, (i < m)%N -> 0 < q i).
Hypothesis least : least_prefix n m h p q.

Let part (above : bool) i c : R := if above then Num.max (p i) (c * q i) else Num.min (p i) (c * q i).

Let part_root above j k lo hi y : (k <= m)%N -> lo <= hi ->
  \sum_(j <= i < k) part above i lo <= y <= \sum_(j <= i < k) part above i hi ->
  exists c, \sum_(j <= i < k) part above i c = y.
Proof.
move=> km; apply: (root_between (breaks := [seq p i / q i | i <- index_iota j k])) => a b ab out.
exists (\sum_(j <= i < k) if (p i / q i <= a) == above then q i else 0).
exists (\sum_(j <= i < k) if (p i / q i <= a) == above then 0 else p i).
move=> c /andP [ac cb]; rewrite mulr_suml -big_split /= !big_nat; apply: eq_bigr => i ijk.
have qi : 0 < q i by case/andP: ijk => _ /leq_trans ik; exact: q0 (ik _ km).
rewrite /part; have [ra|ar] := leP (p i / q i) a.
  have : p i <= c * q i by rewrite -ler_pdivr_mulr // (le_trans ra).
  by case: above; rewrite /= => le; rewrite (max_r le, min_l le) ?mul0r ?add0r ?addr0 1?mulrC.
have br : b <= p i / q i.
  have [|/(lt_le_trans ar)|//] := out (p i / q i); last by rewrite ltxx.
  by apply: (map_f (fun i => p i / q i)); rewrite mem_index_iota.
have : c * q i <= p i by rewrite -ler_pdivl_mulr // (le_trans cb).
by case: above; rewrite /= => le; rewrite (max_l le, min_r le) ?mul0r ?add0r ?addr0 1?mulrC.
Qed.

Let Q := upto q.
Let P := upto p.

Theorem levels_exist : exists c1 c2,
  upto (proxy h p q c1 c2) h = Q h ^+ n /\ upto (proxy h p q c1 c2) m = 1.
Proof.
case: (least) => q1 r_up low.
have root_in : exists c, \sum_(0 <= i < h) part true i c = Q h ^+ n.
  case: (posnP h) => [->|h0].
    by exists 0; rewrite big_geq // /Q upto0 expr0n gtn_eqF.
  have Qh : 0 < Q h by rewrite -(upto0 q) (upto_lt q0) // h0.
  have PQ : P h <= Q h ^+ n.
    by have := low 0%N (leq0n m); rewrite !upto0 expr0n gtn_eqF // subr0 subr_le0.
  have r0 i : (i < h)%N -> p 0%N / q 0%N * q i <= p i.
    by move=> ih; have im := leq_trans ih hm; rewrite -ler_pdivl_mulr ?q0 // r_up.
  have at_r : \sum_(0 <= i < h) part true i (p 0%N / q 0%N) = P h.
    rewrite big_mkord; apply: eq_bigr => i _; by rewrite /part max_l // r0.
  apply: (@part_root true 0 h (p 0%N / q 0%N) (Q h ^+ n / Q h)) => //.
    rewrite ler_pdivl_mulr // (le_trans _ PQ) // /Q /P -upto_scale; apply: ler_sum => i _; exact: r0.
  rewrite at_r PQ /=; apply: le_trans (_ : Q h ^+ n / Q h * Q h <= _); first by rewrite divfK // gt_eqF.
  by rewrite -upto_scale big_mkord; apply: ler_sum => i _; rewrite /part le_maxr lexx orbT.
have root_out : exists c, \sum_(h <= i < m) part false i c = 1 - Q h ^+ n.
  case: (ltngtP h m) => [h_m| |->]; rewrite ?ltnNge ?hm //; last first.
    by exists 0; rewrite big_geq // /Q q1 expr1n subrr.
  have Qh : 0 < 1 - Q h by rewrite subr_gt0 -q1 (upto_lt q0) // h_m leqnn.
  have m0 : (0 < m)%N by apply: leq_ltn_trans h_m.
  have pm : (m.-1 < m)%N by rewrite prednK.
  have PQ : 1 - Q h ^+ n <= P m - P h.
    have := low m (leqnn m); rewrite q1 expr1n -subr_ge0 => le; rewrite -subr_ge0; move: le.
    by congr (0 <= _); rewrite /P /Q; ring.
  have r1 i : (h <= i < m)%N -> p i <= p m.-1 / q m.-1 * q i.
    by case/andP=> _ im; rewrite -ler_pdivr_mulr ?q0 // r_up // -ltnS prednK // im leqnn.
  have at_r : \sum_(h <= i < m) part false i (p m.-1 / q m.-1) = P m - P h.
    by rewrite -upto_between // !big_nat; apply: eq_bigr => i ihm; rewrite /part min_l // r1.
  apply: (@part_root false h m ((1 - Q h ^+ n) / (1 - Q h)) (p m.-1 / q m.-1)) => //.
    rewrite ler_pdivr_mulr // (le_trans PQ) // -q1 mulrBr -!upto_scale; exact: upto_mono.
  rewrite at_r PQ andbT; move: (divfK (negbT (gt_eqF Qh)) (1 - Q h ^+ n)); move: (_ / _) => c <-.
  rewrite -q1 mulrBr -!upto_scale -upto_between //.
  by rewrite !big_nat; apply: ler_sum => i _; rewrite /part le_minl lexx orbT.
case: root_in => c1 E1; case: root_out => c2 E2; exists c1, c2.
have K_in : upto (proxy h p q c1 c2) h = Q h ^+ n.
  by rewrite -E1 big_mkord; apply: eq_bigr => i _; rewrite /proxy ltn_ord.
split=> //; rewrite -[LHS](subrK (upto (proxy h p q c1 c2) h)) {2}K_in -upto_between //.
rewrite (eq_big_nat _ _ (F2 := fun i => part false i c2)) => [|i /andP [hi _]]; first by rewrite E2 subrK.
by rewrite /proxy ltnNge hi.
Qed.
End Levels.

(* In short: tokens in the order of p / q have a prefix, levels and sets for a law that meets the ceiling. *)
Corollary ceiling_sets_exist (R : realFieldType) (n m : nat) (p q : nat -> R) :
    (0 < n)%N -> (forall i, (i < m)%N -> 0 < q i) -> upto q m = 1 ->
    (forall i l, (i <= l < m)%N -> p i / q i <= p l / q l) ->
  exists h c1 c2 (sets : 'I_m -> 'I_m -> R), [/\ (h <= m)%N, priority_sets n q (proxy h p q c1 c2) sets &
    \sum_(i < m) Num.min (p i) (proxy h p q c1 c2 i) = 1 + upto p h - upto q h ^+ n].
Proof.
move=> n0 q0 q1 r_up; pose bound j := upto p j - upto q j ^+ n.
case: (@arg_minP _ _ _ (ord0 : 'I_m.+1) xpredT (fun j => bound j) isT) => -[h h_m] _ low.
have hm : (h <= m)%N by [].
have least : least_prefix n m h p q by split=> // j jm; apply: (low (Ordinal (jm : (j < m.+1)%N))).
have [c1 [c2 [mass_in mass_all]]] := levels_exist n0 hm q0 least.
have [sets ok] := proxy_sets_exist n0 hm q0 least mass_in mass_all.
exists h, c1, c2, sets; split=> //; rewrite -[LHS](subrK (upto (fun i => Num.min (p i) (proxy h p q c1 c2 i)) h)).
have -> : upto (fun i => Num.min (p i) (proxy h p q c1 c2 i)) h = upto p h.
  by apply: eq_bigr => i _; rewrite /proxy ltn_ord min_l // le_maxr lexx.
have -> : \sum_(i < m) Num.min (p i) (proxy h p q c1 c2 i) - upto p h = 1 - upto q h ^+ n; last by ring.
rewrite -mass_in -{1}mass_all -upto_between //.
have -> : upto p h = upto (fun i => Num.min (p i) (proxy h p q c1 c2 i)) h.
  by apply: eq_bigr => i _; rewrite /proxy ltn_ord min_l // le_maxr lexx.
rewrite -/(upto _ m) -upto_between //; apply: eq_big_nat => i /andP [hi _].
by rewrite /proxy ltnNge hi min_r // le_minl lexx.
Qed.

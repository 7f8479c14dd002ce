(* Priority sets: measures that tile [0, 1] and give every group of tokens its wanted value, made by swapping mass
   between two windows. They exist whenever the wanted values are majorised. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

(* z is its positive part less that of -z. *)
Lemma balance (R : realFieldType) (a b c : R) : pos (a * (b - c)) - pos (a * (c - b)) = a * (b - c).
Proof.
have -> : a * (c - b) = - (a * (b - c)) by ring.
set z := a * _; case: (leP 0 z) => z0; first by rewrite pos_id // pos_eq0 ?subr0 // oppr_le0.
by rewrite pos_eq0 ?(ltW z0) // pos_id ?oppr_ge0 ?(ltW z0) // sub0r opprK.
Qed.

(* Group g has the window g, of mass q g and height u g, and wants the value v g per unit of mass. *)
Section Exchange.
Variables (R : realFieldType) (I : finType) (q u v : I -> R).

(* m g w is what group g has of window w, spread evenly over it. Groups keep their masses, windows stay covered, and
   the values are the wanted ones. *)
Definition placement (m : I -> I -> R) :=
  [/\ forall g w, 0 <= m g w, forall g, \sum_w m g w = q g,
      forall w, \sum_g m g w = q w & forall g, \sum_w m g w * u w = q g * v g].

(* What the low groups (u < v) are short of, matched with what the high ones have too much. *)
Definition flow (f : I -> I -> R) :=
  [/\ forall i l, 0 <= f i l, forall i, \sum_l f i l = pos (q i * (v i - u i)),
      forall l, \sum_i f i l = pos (q l * (u l - v l)) & forall i l, f i l != 0 -> v i <= u l /\ u i <= v l].

Variable f : I -> I -> R.
(* For the value f i l, group i swaps this mass with group l. *)
Definition swapped i l : R := f i l / (u l - u i).
Definition given g : R := \sum_l swapped g l + \sum_i swapped i g.
Definition exchanged g w : R := (if w == g then q g - given g else 0) + (swapped g w + swapped w g).

Hypotheses (q0 : forall g, 0 <= q g) (ff : flow f).

Let between i l : f i l != 0 -> [/\ 0 < v i - u i, 0 < u l - v l, v i - u i <= u l - u i & u l - v l <= u l - u i].
Proof.
move=> fil; case: ff => f0 out_i in_l ord; have [vu uv] := ord i l fil.
have fp : 0 < f i l by rewrite lt_neqAle eq_sym fil f0.
have up (w : R) g : 0 < pos (q g * w) -> 0 < w.
  by apply: contraTT; rewrite -!leNgt => w0; rewrite pos_eq0 // mulr_ge0_le0.
split; rewrite ?ler_add2r ?ler_add2l ?ler_opp2 //.
  apply: (up _ i); rewrite -out_i (bigD1 l) //=; apply: lt_le_trans fp _.
  by rewrite ler_addl sumr_ge0.
apply: (up _ l); rewrite -in_l (bigD1 i) //=; apply: lt_le_trans fp _.
by rewrite ler_addl sumr_ge0.
Qed.

Let swapped_ge0 i l : 0 <= swapped i l.
Proof.
have [E|/between [a _ b _]] := eqVneq (f i l) 0; first by rewrite /swapped E mul0r.
by case: ff => f0 _ _ _; rewrite divr_ge0 // (le_trans (ltW a)).
Qed.

Let swapped_value i l : swapped i l * (u l - u i) = f i l.
Proof.
have [E|/between [a _ b _]] := eqVneq (f i l) 0; first by rewrite /swapped E !mul0r.
by rewrite divfK // gt_eqF // (lt_le_trans a).
Qed.

Let low_within i l : swapped i l * (v i - u i) <= f i l.
Proof.
have [E|/between [a _ b _]] := eqVneq (f i l) 0; first by rewrite /swapped E !mul0r.
by rewrite -[X in _ <= X]swapped_value ler_wpmul2l.
Qed.

Let high_within i l : swapped i l * (u l - v l) <= f i l.
Proof.
have [E|/between [_ a _ b]] := eqVneq (f i l) 0; first by rewrite /swapped E !mul0r.
by rewrite -[X in _ <= X]swapped_value ler_wpmul2l.
Qed.

(* A low group gives nothing as a high one, and conversely, so none gives more than it has. *)
Let low_only i l : f i l != 0 -> (forall k, swapped k i = 0) /\ (forall k, swapped l k = 0).
Proof.
case/between=> [a b _ _]; split=> k.
  have [E|/between [_ c _ _]] := eqVneq (f k i) 0; first by rewrite /swapped E mul0r.
  by have := addr_gt0 a c; rewrite addrA subrK subrr ltxx.
have [E|/between [c _ _ _]] := eqVneq (f l k) 0; first by rewrite /swapped E mul0r.
by have := addr_gt0 b c; rewrite addrA subrK subrr ltxx.
Qed.

Let given_le g : given g <= q g.
Proof.
have none (s : I -> R) : (forall k, s k = 0) -> \sum_k s k = 0 by move=> s0; apply: big1 => k _.
have idle i l : (f i l != 0) = false -> swapped i l = 0.
  by move/negbFE/eqP; rewrite /swapped => ->; rewrite mul0r.
rewrite /given; case: (pickP (fun l => f g l != 0)) => [l fgl|no_low].
  have [a _ _ _] := between fgl; have [gave _] := low_only fgl.
  rewrite (none _ gave) addr0 -(ler_pmul2r a) mulr_suml.
  apply: le_trans (_ : \sum_l f g l <= _); first by apply: ler_sum => k _.
  by case: ff => _ -> _ _; rewrite pos_id // mulr_ge0 // ltW.
rewrite (none (swapped g)) ?add0r => [|k]; last exact: idle (no_low k).
case: (pickP (fun i => f i g != 0)) => [i fig|no_high]; last first.
  by rewrite none // => k; exact: idle (no_high k).
have [_ a _ _] := between fig; rewrite -(ler_pmul2r a) mulr_suml.
apply: le_trans (_ : \sum_i f i g <= _); first by apply: ler_sum => k _.
by case: ff => _ _ -> _; rewrite pos_id // mulr_ge0 // ltW.
Qed.

Let sum_here (c : I -> R) g (h : I -> R) : \sum_w (if w == g then c g else 0) * h w = c g * h g.
Proof. by rewrite (bigD1 g) //= eqxx big1 ?addr0 // => w /negbTE ->; rewrite mul0r. Qed.

Theorem exchange_places : placement exchanged.
Proof.
have row g : \sum_w exchanged g w = q g.
  rewrite /exchanged big_split /= big_split /= -/(given g) -[RHS](subrK (given g)); congr (_ + _).
  by rewrite -big_mkcond big_pred1_eq.
split=> [g w||w|g] //; first by rewrite !addr_ge0 //; case: eqP => // _; rewrite subr_ge0.
  rewrite -[RHS]row; apply: eq_bigr => g _; rewrite /exchanged eq_sym [X in _ + X]addrC.
  by case: eqP => [->|].
rewrite /exchanged (eq_bigr (fun w => (if w == g then q g - given g else 0) * u w
    + (f g w - f w g + (swapped g w * u g + swapped w g * u g)))) => [|w _]; last first.
  by rewrite -!swapped_value; ring.
rewrite big_split /= (sum_here (fun g => q g - given g)) big_split sumrB /= big_split /= -!mulr_suml.
case: ff => _ -> -> _; rewrite balance /given.
by set a := \sum_l swapped g l; set b := \sum_i swapped i g; ring.
Qed.

End Exchange.

(* The matching in order. *)
Section Matching.
Variable R : realFieldType.

(* The length of the intersection of [a, b] and [c, d]. *)
Definition overlap (a b c d : R) : R := pos (Num.min b d - Num.max a c).

Let clamp (a b x : R) : R := Num.max a (Num.min x b).

Let overlap_clamp a b c d : a <= b -> c <= d -> overlap a b c d = clamp a b d - clamp a b c.
Proof.
rewrite /overlap /clamp => ab cd.
case: (leP d b) => db; last first.
  rewrite (max_r ab); case: (leP c b) => cb; first by rewrite pos_id // subr_ge0 le_maxl ab.
  by rewrite (max_r ab) subrr pos_eq0 // subr_le0 le_maxr (ltW cb) orbT.
rewrite (min_l (le_trans cd db)); case: (leP a d) => ad; first by rewrite pos_id // subr_ge0 le_maxl ad.
by rewrite (max_l (le_trans cd (ltW ad))) subrr pos_eq0 // subr_le0 (ltW ad).
Qed.

Let overlapC a b c d : overlap a b c d = overlap c d a b.
Proof. by rewrite /overlap minC maxC. Qed.

Let overlap_wide a b c d : a <= b -> c <= a -> b <= d -> overlap a b c d = b - a.
Proof. by move=> ab ca bd; rewrite /overlap min_l // max_l // pos_id // subr_ge0. Qed.

(* Neighbouring intervals add up. *)
Let overlap_sum a b (B : nat -> R) m : a <= b -> (forall j, B j <= B j.+1) ->
  \sum_(l < m) overlap a b (B l) (B l.+1) = overlap a b (B 0%N) (B m).
Proof.
move=> ab incr; have B0m : B 0%N <= B m by elim: m => // m IH; exact: le_trans IH _.
rewrite overlap_clamp // -(telescope_sumr (fun j => clamp a b (B j)) (leq0n m)) big_mkord.
by apply: eq_bigr => l _; rewrite overlap_clamp.
Qed.

Variables (m : nat) (q u v : nat -> R).
Hypothesis q0 : forall i, (i < m)%N -> 0 <= q i.
Hypothesis v_up : forall i l, (i <= l < m)%N -> v i <= v l.

(* The wanted values come as early as the windows' own, and are as much in all. *)
Definition majorised := \sum_(i < m) q i * v i = \sum_(i < m) q i * u i /\
  forall j, (j <= m)%N -> \sum_(i < j) q i * u i <= \sum_(i < j) q i * v i.

(* Up to group j: what the low ones are short of, and what the high ones have too much. *)
Let short j : R := \sum_(i < j) pos (q i * (v i - u i)).
Let over j : R := \sum_(i < j) pos (q i * (u i - v i)).
Definition matched (i l : 'I_m) : R := overlap (short i) (short i.+1) (over l) (over l.+1).

Let short_step j : short j.+1 = short j + pos (q j * (v j - u j)).
Proof. by rewrite /short big_ord_recr. Qed.

Let over_step j : over j.+1 = over j + pos (q j * (u j - v j)).
Proof. by rewrite /over big_ord_recr. Qed.

Let up (s : nat -> R) : (forall j, s j <= s j.+1) -> forall j k, (j <= k)%N -> s j <= s k.
Proof. by move=> step j; elim=> [|k IH]; rewrite leq_eqVlt => /orP [/eqP ->|] // /IH /le_trans; apply. Qed.

Let short_up j : short j <= short j.+1.
Proof. by rewrite short_step ler_addl pos_ge0. Qed.

Let over_up j : over j <= over j.+1.
Proof. by rewrite over_step ler_addl pos_ge0. Qed.

Let difference j : short j - over j = \sum_(i < j) q i * v i - \sum_(i < j) q i * u i.
Proof. by rewrite /short /over -!sumrB; apply: eq_bigr => i _; rewrite balance mulrBr. Qed.

Theorem matched_flow : majorised -> flow (fun i : 'I_m => q i) (fun i => u i) (fun i => v i) matched.
Proof.
case=> total prefix.
have ends : over m = short m by apply/eqP; rewrite eq_sym -subr_eq0 difference total subrr.
have behind j : (j <= m)%N -> over j <= short j.
  by move=> jm; rewrite -subr_ge0 difference subr_ge0 prefix.
have zero : short 0%N = 0 /\ over 0%N = 0 by rewrite /short /over !big_ord0.
case: zero => short0 over0.
split=> [i l|i|l|i l]; first exact: pos_ge0.
- rewrite /matched overlap_sum // overlap_wide //; first by rewrite short_step addrC addKr.
    by rewrite over0 -short0; apply: up.
  by rewrite ends; apply: up.
- under eq_bigr do rewrite /matched overlapC.
  rewrite overlap_sum // overlap_wide //; first by rewrite over_step addrC addKr.
    by rewrite short0 -over0; apply: up.
  by rewrite -ends; apply: up.
rewrite /matched => fil; have {fil} : 0 < overlap (short i) (short i.+1) (over l) (over l.+1).
  by rewrite lt_neqAle eq_sym fil pos_ge0.
rewrite /overlap /pos lt_maxr ltxx orbF subr_gt0 lt_minr !lt_maxl => /andP [/andP [low cross] /andP [cross' high]].
have sign j k (w : R) : (j < m)%N -> k < k + pos (q j * w) -> 0 < w.
  move=> jm; rewrite ltr_addl; apply: contraTT; rewrite -!leNgt => w0.
  by rewrite pos_eq0 // mulr_ge0_le0 // q0.
move: (low) (high); rewrite short_step over_step => /(sign _ _ _ (ltn_ord i)) vi /(sign _ _ _ (ltn_ord l)) vl.
have il : (i < l)%N.
  rewrite ltnNge leq_eqVlt; apply/negP => /orP [/eqP E|li].
    by have := addr_gt0 vi vl; rewrite E addrA subrK subrr ltxx.
  have := lt_le_trans cross' (le_trans (behind l.+1 (ltn_ord l)) (up short_up li)).
  by rewrite ltxx.
have vv : v i <= v l by rewrite v_up // ltnW //= ltn_ord.
rewrite !subr_gt0 in vi vl.
by split; [apply: le_trans vv (ltW vl) | apply: le_trans (ltW vi) vv].
Qed.

(* So there are sets for ascending wanted values that are majorised; the heights need not ascend. *)
Corollary placement_exists : majorised ->
  exists sets, placement (fun i : 'I_m => q i) (fun i => u i) (fun i => v i) sets.
Proof.
move=> maj; exists (exchanged (fun i : 'I_m => q i) (fun i => u i) matched).
by apply: exchange_places (matched_flow maj) => i; exact: q0.
Qed.

End Matching.

(* Windows of lengths q in order, under the density n t^(n-1) of the largest of n uniform priorities. *)
Section Windows.
Variables (R : realFieldType) (n m : nat) (q : nat -> R).
Hypotheses (n0 : (0 < n)%N) (q0 : forall i, (i < m)%N -> 0 < q i).

(* The mean of n t^(n-1) over [a, b], without the division. *)
Definition height (a b : R) : R := \sum_(i < n) b ^+ (n.-1 - i) * a ^+ i.

Lemma heightE a b : (b - a) * height a b = b ^+ n - a ^+ n.
Proof. by rewrite /height subrXX. Qed.

Lemma height_le a b a' b' : 0 <= a -> 0 <= b -> a <= a' -> b <= b' -> height a b <= height a' b'.
Proof.
move=> a0 b0 aa bb; apply: ler_sum => i _.
by apply: ler_pmul; rewrite ?exprn_ge0 //; apply: ler_expn2r; rewrite ?nnegrE // (le_trans _ aa, le_trans _ bb).
Qed.

(* The sum over the first j. *)
Definition upto (f : nat -> R) j : R := \sum_(i < j) f i.
Let Q := upto q.
Definition window i : R := height (Q i) (Q i.+1).

Lemma upto0 f : upto f 0 = 0.
Proof. by rewrite /upto big_ord0. Qed.

Lemma upto_step f j : upto f j.+1 = upto f j + f j.
Proof. by rewrite /upto big_ord_recr. Qed.

Lemma upto_between f j k : (j <= k)%N -> \sum_(j <= i < k) f i = upto f k - upto f j.
Proof.
move=> jk; rewrite -(telescope_sumr (upto f) jk).
by apply: eq_bigr => i _; rewrite upto_step addrC addKr.
Qed.

Lemma upto_mono f g j k : (j <= k)%N -> (forall i, (j <= i < k)%N -> f i <= g i) ->
  upto f k - upto f j <= upto g k - upto g j.
Proof. by move=> jk fg; rewrite -!upto_between // !big_nat ler_sum. Qed.

Lemma upto_scale c f j : upto (fun i => c * f i) j = c * upto f j.
Proof. by rewrite /upto big_distrr. Qed.

Lemma upto_le j k : (j <= k <= m)%N -> Q j <= Q k.
Proof.
case/andP=> jk km; rewrite -subr_ge0 -upto_between // big_nat sumr_ge0 // => i /andP [_ ik].
by rewrite ltW // q0 // (leq_trans ik).
Qed.

Lemma upto_lt j k : (j < k <= m)%N -> Q j < Q k.
Proof.
case/andP=> jk km; have jm : (j < m)%N by apply: leq_trans km.
by apply: lt_le_trans (_ : Q j.+1 <= _); rewrite ?upto_le ?jk // [Q j.+1]upto_step ltr_addl q0.
Qed.

Lemma upto_ge0 j : (j <= m)%N -> 0 <= Q j.
Proof. by move=> jm; rewrite -[X in X <= _](upto0 q) upto_le. Qed.

Lemma window_value i : q i * window i = Q i.+1 ^+ n - Q i ^+ n.
Proof. by rewrite -heightE; congr (_ * _); rewrite /Q upto_step addrC addKr. Qed.

(* Sets that give the law k: as placement, with the value k g in all. *)
Definition priority_sets (k : nat -> R) (sets : 'I_m -> 'I_m -> R) :=
  [/\ forall g w, 0 <= sets g w, forall g, \sum_w sets g w = q g,
      forall w, \sum_g sets g w = q w & forall g, \sum_w sets g w * window w = k g].

(* They exist for a law k that comes as early as the n-th powers do, in the order of k / q. *)
Theorem priority_sets_exist (k : nat -> R) :
    (forall i l, (i <= l < m)%N -> k i / q i <= k l / q l) ->
    (forall j, (j <= m)%N -> Q j ^+ n <= upto k j) -> upto k m = Q m ^+ n ->
  exists sets, priority_sets k sets.
Proof.
move=> k_up prefix total.
have own j : \sum_(i < j) q i * window i = Q j ^+ n.
  rewrite (eq_bigr (fun i : 'I_j => Q i.+1 ^+ n - Q i ^+ n)) => [|i _]; last exact: window_value.
  rewrite -(big_mkord xpredT (fun i => Q i.+1 ^+ n - Q i ^+ n)) (telescope_sumr (fun i => Q i ^+ n)) //.
  by rewrite /Q upto0 expr0n gtn_eqF // subr0.
have wanted i : (i < m)%N -> q i * (k i / q i) = k i by move=> im; rewrite mulrC divfK // gt_eqF // q0.
have wants j : (j <= m)%N -> \sum_(i < j) q i * (k i / q i) = upto k j.
  by move=> jm; apply: eq_bigr => i _; rewrite wanted // (leq_trans (ltn_ord i)).
have maj : majorised m q window (fun i => k i / q i).
  by split=> [|j jm]; rewrite own wants // prefix.
have [|sets [s0 rows columns values]] := placement_exists _ k_up maj.
  by move=> i im; rewrite ltW // q0.
by exists sets; split=> // g; rewrite values wanted.
Qed.

End Windows.

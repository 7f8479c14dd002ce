(* Which sets give the ceiling without replacement: the prefixes of the tokens sorted by p/q. The step from an
   inequality on the set function W to prefixes, for any number of candidates; the inequality for two. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws procedure sequential ranked.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Prefix.
Variables (R : realFieldType) (V : finType) (p q : V -> R) (W : {set V} -> R).
Hypothesis q0 : forall x, 0 < q x.

(* W gains more from a token, for its draft mass, the larger the set is. *)
Definition gains_grow := forall (G : {set V}) i j, i != j -> i \notin G -> j \notin G ->
  (W (i |: G) - W G) / q i <= (W (j |: (i |: G)) - W (i |: G)) / q j.

(* The bound of ceiling_any_draft, with W H the probability that all candidates fall in H. *)
Definition set_bound (H : {set V}) : R := \sum_(x in H) p x + 1 - W H.

(* Of the sets with the smallest bound, one is a prefix by p/q, whatever the order of ties. *)
Theorem prefix_minimal : gains_grow ->
  exists H : {set V}, (forall K, set_bound H <= set_bound K)
                      /\ (forall i j, i \in H -> j \notin H -> p i / q i < p j / q j).
Proof.
move=> grow; case: (@arg_minP _ _ _ (set0 : {set V}) xpredT set_bound isT) => H0 _ low.
case: (@arg_minnP _ H0 (fun H : {set V} => set_bound H <= set_bound H0) (fun H => #|H|) (lexx _)) => H leH small.
have min_H K : set_bound H <= set_bound K by apply: le_trans leH (low K isT).
exists H; split=> // i j iH jH; pose G := H :\ i.
have HE : H = i |: G by rewrite setD1K.
have iG : i \notin G by rewrite !inE eqxx.
have ne_ij : i != j by apply: contraNneq jH => <-.
have jG : j \notin G by rewrite !inE negb_and jH orbT.
have drop_i : p i < W H - W G.
  have lt : set_bound H < set_bound G.
    rewrite ltNge; apply/negP => le; have := small G (le_trans le leH).
    by rewrite (cardsD1 i H) iH ltnn.
  move: lt; rewrite /set_bound [in \sum_(x in H) _]HE big_setU1 //= -subr_gt0.
  have -> : \sum_(x in G) p x + 1 - W G - (p i + \sum_(x in G) p x + 1 - W H) = W H - W G - p i by ring.
  by rewrite subr_gt0.
have add_j : W (j |: H) - W H <= p j.
  have := min_H (j |: H); have -> : set_bound (j |: H) = set_bound H + (p j - (W (j |: H) - W H)).
    by rewrite /set_bound big_setU1 //=; ring.
  by rewrite ler_addl subr_ge0.
apply: lt_le_trans (_ : (W H - W G) / q i <= _); first by rewrite ltr_pmul2r ?invr_gt0.
apply: le_trans (_ : (W (j |: H) - W H) / q j <= _); last by rewrite ler_pmul2r ?invr_gt0.
by have := grow G i j ne_ij iG jG; rewrite -HE.
Qed.
End Prefix.

(* Two candidates without replacement. *)
Section Pair.
Variables (R : realFieldType) (V : finType) (p q : V -> R).
Hypotheses (lp : law p) (lq : law q) (q0 : forall x, 0 < q x) (q1 : forall x, q x < 1).

Let both (H : {set V}) : R :=
  inclusion (fun t : 2.-tuple V => @weight _ _ (@without_replacement R V) (p, q) t) (mem H).

Lemma pair_inclusion (H : {set V}) :
  both H = \sum_(x in H) \sum_(y in H) (if y == x then 0 else q x * q y / (1 - q x)).
Proof.
rewrite /both /inclusion big_mkcond.
rewrite (sum_tuple_cons 1 (fun t => if all (mem H) t then @weight _ _ (@without_replacement R V) (p, q) t else 0)).
rewrite [RHS]big_mkcond; apply: eq_bigr => x _ /=.
rewrite (sum_tuple_cons 0 (fun t => if (x \in H) && all (mem H) t
           then q x * @weight _ _ (@without_replacement R V) (residue p q, norm (drop q x)) t else 0)).
case: (x \in H) => /=; last by apply: big1 => y _; apply: big1.
rewrite [RHS]big_mkcond; apply: eq_bigr => y _ /=.
rewrite (eq_bigr (fun=> if y \in H then q x * norm (drop q x) y else 0)) => [|t _].
  rewrite sumr_const card_tuple expn0 mulr1n; case: (y \in H) => //; rewrite /norm drop_sum // /drop.
  by case: eqP => _; rewrite ?mul0r ?mulr0 // mulrA.
by rewrite tuple0 /= andbT mulr1.
Qed.

Let mass_of (G : {set V}) : R := \sum_(y in G) q y.

(* What one more token adds: it first, or it second. *)
Lemma pair_gain (G : {set V}) i : i \notin G ->
  (both (i |: G) - both G) / q i = mass_of G / (1 - q i) + \sum_(x in G) q x / (1 - q x).
Proof.
move=> iG; have qi := gt_eqF (q0 i).
have -> : both (i |: G) - both G = q i * (mass_of G / (1 - q i) + \sum_(x in G) q x / (1 - q x)).
  have inner x : x \in G -> \sum_(y in i |: G) (if y == x then 0 else q x * q y / (1 - q x))
      = q i * (q x / (1 - q x)) + \sum_(y in G) (if y == x then 0 else q x * q y / (1 - q x)).
    move=> xG; rewrite big_setU1 //=; case: eqP => [E|_]; first by rewrite E xG in iG.
    by congr (_ + _); ring.
  rewrite !pair_inclusion big_setU1 //= big_setU1 //= eqxx add0r [X in _ + X - _](eq_bigr _ inner).
  rewrite big_split /= addrA addrK mulrDr -big_distrr /=; congr (_ + _).
  rewrite /mass_of mulr_suml big_distrr /=; apply: eq_bigr => y yG.
  by case: eqP => [E|_]; [rewrite -E yG in iG | ring].
by rewrite mulrC mulKf // qi.
Qed.

Theorem pair_gains_grow : gains_grow q both.
Proof.
move=> G i j ne_ij iG jG; have jG' : j \notin i |: G by rewrite !inE eq_sym negb_or ne_ij.
rewrite !pair_gain // big_setU1 //= /mass_of big_setU1 //= -/(mass_of G).
have le_g : mass_of G <= 1 - q i - q j.
  have : \sum_(x in j |: (i |: G)) q x <= 1.
    rewrite -(law_sum lq) [X in _ <= X](bigID (mem (j |: (i |: G)))) /= ler_addl sumr_ge0 // => x _; exact: ltW.
  rewrite !big_setU1 //= !ler_subr_addr; suff -> : mass_of G + q j + q i = q j + (q i + mass_of G) by [].
  by ring.
have c0 x : 0 < 1 - q x by rewrite subr_gt0.
rewrite addrA ler_add2r -ler_subl_addr -mulrBl ler_pdivr_mulr // mulrAC ler_pdivl_mulr // -subr_ge0.
have -> : (q i + mass_of G) * (1 - q i) - (mass_of G - q i) * (1 - q j)
          = q i * (1 + (1 - q i - q j - mass_of G)) + mass_of G * q j by ring.
have g0 : 0 <= mass_of G by apply: sumr_ge0 => x _; exact: ltW.
have s0 : 0 <= 1 + (1 - q i - q j - mass_of G) by apply: addr_ge0; rewrite ?ler01 ?subr_ge0.
by apply: addr_ge0; apply: mulr_ge0 => //; exact: ltW.
Qed.

(* So for two candidates the ceiling is the smallest bound over prefixes. *)
Corollary pair_prefix_minimal :
  exists H : {set V}, (forall K, set_bound p both H <= set_bound p both K)
                      /\ (forall i j, i \in H -> j \notin H -> p i / q i < p j / q j).
Proof. exact: (prefix_minimal p q0 pair_gains_grow). Qed.

End Pair.

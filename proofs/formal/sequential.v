(* Rules that carry a normalised residual: ordinary speculative sampling, SpecInfer as published, recursive
   rejection without replacement (Sequoia), deterministic siblings (EAGLE-2). *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws procedure.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Sequential.
Variables (R : realFieldType) (V : finType).
Implicit Types (p q w d : V -> R) (x y : V).

(* min(1, w/d) accepted from d pays min(d, w); the residual (w - d)+ is what is left of w. *)
Definition ratio w d x : R := Num.min 1 (w x / d x).
Definition residue w d : V -> R := norm (fun y => pos (w y - d y)).

Lemma accepted_min w d x : 0 <= w x -> 0 <= d x -> d x * ratio w d x = Num.min (w x) (d x).
Proof.
move=> w0 d0; have [E|NE] := eqVneq (d x) 0; first by rewrite E mul0r min_r.
by rewrite /ratio minr_pmulr // mulr1 mulrC divfK // minC.
Qed.

Lemma rejected_pos w d x : 0 <= w x -> 0 <= d x -> d x * (1 - ratio w d x) = pos (d x - w x).
Proof.
move=> w0 d0; rewrite mulrBr mulr1 accepted_min // minC.
by rewrite -[X in X - _](min_pos (d x) (w x)) addrC addKr.
Qed.

Lemma rejected_sum w d : law w -> law d -> \sum_x d x * (1 - ratio w d x) = \sum_x pos (w x - d x).
Proof.
move=> lw ld; rewrite sum_pos (law_sum lw) -[X in _ = X - _](law_sum ld) -sumrB; apply: eq_bigr => x _.
by rewrite mulrBr mulr1 accepted_min ?(law_ge0 _ lw) ?(law_ge0 _ ld).
Qed.

Lemma residue_law w d : \sum_x pos (w x - d x) != 0 -> law (residue w d).
Proof. by move=> NE; apply: norm_law NE => x; exact: pos_ge0. Qed.

Lemma step_balance w d y : law w -> law d ->
  d y * ratio w d y + \sum_x d x * (1 - ratio w d x) * residue w d y = w y.
Proof.
move=> lw ld; rewrite -big_distrl /= rejected_sum // accepted_min ?(law_ge0 _ lw) ?(law_ge0 _ ld) //.
set s := \sum_x pos _; have E : s * residue w d y = pos (w y - d y).
  have [E|NE] := eqVneq s 0; last by rewrite /residue /norm mulrC divfK.
  by rewrite E mul0r (sum0_eq0 _ E) // => x; exact: pos_ge0.
by rewrite E min_pos.
Qed.

Lemma step_reaches w d x : law w -> law d -> d x * (1 - ratio w d x) != 0 -> law (residue w d).
Proof.
move=> lw ld NE; apply: residue_law; apply: contra_neq NE => E; move: E; rewrite -rejected_sum // => E.
apply: (sum0_eq0 _ E) => z; rewrite rejected_pos ?pos_ge0 ?(law_ge0 _ lw) ?(law_ge0 _ ld) //.
Qed.

(* SpecInfer as published: state = normalised residual, candidates always from q. *)
Definition specinfer q : procedure R V :=
  Procedure (fun _ : V -> R => q) (fun w x => ratio w q x) (fun w _ => residue w q) id.

Theorem specinfer_published_exact p q n : law p -> law q -> @exact _ _ (specinfer q) n p p.
Proof.
move=> lp lq.
apply: (@balance _ _ (specinfer q) (fun _ w => law w) id) => //= [_ w x lw|n' w x _ _|_ w y lw].
- exact: step_reaches.
- exact: (@iid_mass _ _ q (law_sum lq)).
- exact: step_balance.
Qed.

(* Ordinary speculative sampling (Leviathan; Chen) is the case n = 1. *)
Corollary single_draft_exact p q : law p -> law q -> @exact _ _ (specinfer q) 1 p p.
Proof. exact: specinfer_published_exact. Qed.

Theorem single_draft_acceptance p q : law p -> law q ->
  @acceptance _ _ (specinfer q) 1 p = \sum_x Num.min (p x) (q x).
Proof.
move=> lp lq; rewrite (@iid_acceptanceS _ _ q (law_sum lq)) //=.
rewrite [X in _ + X]big1 ?addr0 => [|x _]; last by rewrite acceptance0 mulr0.
by apply: eq_bigr => x _; rewrite accepted_min ?(law_ge0 _ lp) ?(law_ge0 _ lq).
Qed.

(* Without replacement: the draft law loses the token drawn and is renormalised; so is the residual, as above. *)
Definition drop d x y : R := if y == x then 0 else d y.

Definition without_replacement : procedure R V :=
  Procedure (fun s : (V -> R) * (V -> R) => s.2) (fun s x => ratio s.1 s.2 x)
            (fun s x => (residue s.1 s.2, norm (drop s.2 x))) (fun s => s.1).

(* n tokens can still be drawn from d without replacement. *)
Definition drawable n d :=
  [/\ forall x, 0 <= d x, (n <= #|[pred x | d x != 0%R]|)%N & (0 < n)%N -> \sum_x d x = 1].

Lemma drop_ge0 d x y : (forall z, 0 <= d z) -> 0 <= drop d x y.
Proof. by move=> d0; rewrite /drop; case: ifP. Qed.

Lemma drawable_next n d x : drawable n.+1 d -> d x != 0 -> drawable n (norm (drop d x)).
Proof.
move=> [d0 le_n sd] NE; have dd0 z := drop_ge0 x z d0.
have N0 z : 0 <= norm (drop d x) z by rewrite /norm divr_ge0 // sumr_ge0.
case: n le_n {sd} => [|n] le_n; first by split.
have cardE : #|[pred y | drop d x y != 0]|.+1 = #|[pred y | d y != 0]|.
  rewrite [RHS](cardD1 x) inE NE add1n; congr _.+1; apply: eq_card => y.
  by rewrite !inE /drop; have [->|_] := eqVneq y x; rewrite ?eqxx.
have S_ne : \sum_y drop d x y != 0.
  apply/eqP => /(sum0_eq0 dd0) all0; move: le_n; rewrite -cardE eq_card0 // => y.
  by rewrite !inE all0 eqxx.
split=> // [|_]; last by case: (norm_law dd0 S_ne).
rewrite -ltnS -/(n.+2) (leq_trans le_n) // -cardE ltnS subset_leq_card //.
by apply/subsetP => y; rewrite !inE /norm => NEy; rewrite mulf_neq0 // invr_eq0.
Qed.

Lemma drawable_mass n w d : drawable n d -> @mass _ _ without_replacement n (w, d) = 1.
Proof.
elim: n w d => [|n IH] w d dr; first exact: mass0.
rewrite massS /=; have [_ _ <- //] := dr; apply: eq_bigr => x _.
have [->|NE] := eqVneq (d x) 0; first by rewrite mul0r.
by rewrite IH ?mulr1 //; apply: drawable_next.
Qed.

Lemma drawable_law n d : drawable n.+1 d -> law d.
Proof. by case=> d0 _ s; split=> //; exact: s. Qed.

Theorem without_replacement_exact p q n : law p -> law q -> (n <= #|[pred x | q x != 0%R]|)%N ->
  @exact _ _ without_replacement n (p, q) p.
Proof.
move=> lp lq le_n.
apply: (@balance _ _ without_replacement (fun n s => law s.1 /\ drawable n s.2) fst).
- by [].
- move=> m [w d] x /= [lw dr] NE; have ld := drawable_law dr; split; first exact: step_reaches NE.
  by apply: drawable_next => //; apply: contra_neq NE => ->; rewrite mul0r.
- move=> m [w d] x /= [_ dr] NE; apply: drawable_mass; apply: drawable_next => //.
  by apply: contra_neq NE => ->; rewrite mul0r.
- by move=> m [w d] y /= [lw dr]; apply: step_balance => //; apply: drawable_law dr.
- split=> //=; split=> // [x|_]; [exact: law_ge0 lq | exact: law_sum lq].
Qed.

(* Residual drift: after a rejection no token is accepted with more mass than before it. *)
Theorem residual_drift w d x : 0 <= w x -> 0 <= d x -> Num.min (residue w d x) (d x) <= Num.min (w x) (d x).
Proof.
move=> w0 d0; have [le|lt] := leP (w x) (d x); last by rewrite le_minl lexx orbT.
by rewrite /residue /norm pos_eq0 ?subr_le0 // mul0r min_l.
Qed.

(* Recursive rejection with any draw mode: the law D of the next candidate may depend on those before it (latest
   first), at random or not. Independent draws, draws without replacement, top-k children and the greedy draft are
   instances. *)
Section Recursive.
Variable D : seq V -> V -> R.

Definition recursive : procedure R V :=
  Procedure (fun s : (V -> R) * seq V => D s.2) (fun s x => ratio s.1 (D s.2) x)
            (fun s x => (residue s.1 (D s.2), x :: s.2)) (fun s => s.1).

(* m further candidates can be drawn after the candidates h (latest first). *)
Fixpoint drawable_after m h : Prop :=
  if m is m'.+1 then law (D h) /\ (forall x, D h x != 0 -> drawable_after m' (x :: h)) else True.

Lemma recursive_mass m w h : drawable_after m h -> @mass _ _ recursive m (w, h) = 1.
Proof.
elim: m w h => [|m IH] w h; first by rewrite mass0.
move=> [lD dr]; rewrite massS -(law_sum lD); apply: eq_bigr => x _ /=.
have [->|NE] := eqVneq (D h x) 0; first by rewrite mul0r.
by rewrite IH ?mulr1 //; exact: dr.
Qed.

Theorem recursive_exact p n : law p -> drawable_after n [::] -> @exact _ _ recursive n (p, [::]) p.
Proof.
move=> lp dr; apply: (@balance _ _ recursive (fun m s => law s.1 /\ drawable_after m s.2) (fun s => s.1)) => //.
- move=> m [w h] x [lw [lD dr']] /= NE; split; first exact: step_reaches NE.
  by apply: dr'; apply: contra_neq NE => ->; rewrite mul0r.
- move=> m [w h] x [lw [lD dr']] /= NE; apply: recursive_mass; apply: dr'.
  by apply: contra_neq NE => ->; rewrite mul0r.
- by move=> m [w h] y [lw [lD _]] /=; exact: step_balance.
Qed.
End Recursive.

(* Deterministic siblings: any list of tokens, accepted with R(x), after which R(x) := 0 and R is renormalised.
   How the list came about (the draws d) does not matter: exactness holds for every list. *)
Definition siblings d : procedure R V :=
  Procedure (fun _ : V -> R => d) (fun w x => w x) (fun w x => norm (drop w x)) id.

Lemma drop_sum w x : law w -> \sum_y drop w x y = 1 - w x.
Proof.
move=> lw; rewrite -(law_sum lw) (bigD1 x) //= [in RHS](bigD1 x) //= /drop eqxx add0r addrC addKr.
by apply: eq_bigr => y /negbTE ->.
Qed.

Theorem deterministic_exact p d (xs : seq V) y : law p -> @run _ _ (siblings d) p xs y = p y.
Proof.
elim: xs p => // x xs IH p lp /=; have dp0 z := drop_ge0 x z (fun u => law_ge0 u lp).
have D : (1 - p x) * norm (drop p x) y = drop p x y.
  rewrite -drop_sum // /norm; have [E|NE] := eqVneq (\sum_z drop p x z) 0; last by rewrite mulrC divfK.
  by rewrite E mul0r (sum0_eq0 dp0 E).
have -> : (1 - p x) * @run _ _ (siblings d) (norm (drop p x)) xs y = drop p x y.
  have [E|NE] := eqVneq (1 - p x) 0; first by rewrite -D E !mul0r.
  by rewrite IH // ?D //; apply: norm_law => //; rewrite drop_sum.
by rewrite /drop eq_sym; case: eqP => [->|_]; rewrite ?mulr1 ?mulr0 ?addr0 ?add0r.
Qed.

(* It accepts with the target mass of the set of its candidates. *)
Theorem deterministic_acceptance p d (xs : seq V) : law p ->
  @hit _ _ (siblings d) p xs = \sum_(z | z \in xs) p z.
Proof.
elim: xs p => [|x xs IH] p lp /=; first by rewrite big_pred0.
have dp0 z := drop_ge0 x z (fun u => law_ge0 u lp).
have -> : (1 - p x) * @hit _ _ (siblings d) (norm (drop p x)) xs = \sum_(z | z \in xs) drop p x z.
  have [E|NE] := eqVneq (1 - p x) 0; last first.
    rewrite IH; last by apply: norm_law => //; rewrite drop_sum.
    by rewrite big_distrr /=; apply: eq_bigr => z _; rewrite /norm drop_sum // mulrC divfK.
  rewrite E mul0r big1 // => z _; apply: (sum0_eq0 dp0); by rewrite drop_sum.
rewrite [RHS](bigD1 x) ?inE ?eqxx //=; congr (_ + _).
rewrite [LHS]big_mkcond [RHS]big_mkcond; apply: eq_bigr => z _.
by rewrite in_cons /drop; have [->|_] := eqVneq z x; rewrite ?if_same ?andbF ?andbT.
Qed.

End Sequential.

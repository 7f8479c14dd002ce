(* The model of a verifier. A procedure examines candidates one after another; its state is whatever it
   remembers. In state s the next candidate is x with probability (draw s x); it is accepted with
   probability (acc s x), which ends the procedure with output x; otherwise the state becomes (next s x).
   When the candidates are used up the output is drawn from (fin s).

   Independent candidates have draw s = q in every state; sampling without replacement keeps the shrinking
   draft law in the state; deterministic candidates make (draw s) a point mass. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Resispec Require Import laws.
Import Order.TTheory GRing.Theory Num.Theory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope ring_scope.

Section Procedure.
Variables (R : realFieldType) (V : finType).

Record procedure := Procedure {
  state : Type;
  draw : state -> V -> R;
  acc : state -> V -> R;
  next : state -> V -> state;
  fin : state -> V -> R
}.

Variable M : procedure.
Implicit Types (s : state M) (x y : V) (xs : seq V).

(* The probability of the output y given the candidates xs: the sum over every accept/reject path. *)
Fixpoint run s xs y : R :=
  if xs is x :: xs' then acc s x * (x == y)%:R + (1 - acc s x) * run (next s x) xs' y else fin s y.

(* The probability that one of the candidates xs is accepted. *)
Fixpoint hit s xs : R :=
  if xs is x :: xs' then acc s x + (1 - acc s x) * hit (next s x) xs' else 0.

(* The probability that the candidates are xs. *)
Fixpoint weight s xs : R :=
  if xs is x :: xs' then draw s x * weight (next s x) xs' else 1.

(* The law of the output over all randomness: candidates, acceptance coins, final draw. *)
Definition output n s y : R := \sum_(t : n.-tuple V) weight s t * run s t y.

(* The probability of accepting some candidate. *)
Definition acceptance n s : R := \sum_(t : n.-tuple V) weight s t * hit s t.

(* Exact for n candidates from state s: the output has law p. *)
Definition exact n s (p : V -> R) := forall y, output n s y = p y.

(* In the states described by ok, the acceptance probabilities are probabilities and the final weights are not
   negative; and a rejection that can happen leads to such a state again. *)
Definition proper (ok : state M -> Prop) := forall s, ok s ->
  [/\ forall x, 0 <= acc s x /\ acc s x <= 1, forall y, 0 <= fin s y
    & forall x, draw s x != 0 -> acc s x != 1 -> ok (next s x)].

Lemma output0 s y : output 0 s y = fin s y.
Proof. by rewrite /output (sum_tuple0 (fun t => weight s t * run s t y)) mul1r. Qed.

Lemma acceptance0 s : acceptance 0 s = 0.
Proof. by rewrite /acceptance (sum_tuple0 (fun t => weight s t * hit s t)) mulr0. Qed.

(* Total weight of the tuples; draws that are laws in the states reached make it one. *)
Definition mass n s : R := \sum_(t : n.-tuple V) weight s t.

Lemma mass0 s : mass 0 s = 1.
Proof. by rewrite /mass (sum_tuple0 (weight s)). Qed.

Lemma massS n s : mass n.+1 s = \sum_x draw s x * mass n (next s x).
Proof.
rewrite /mass (sum_tuple_cons _ (weight s)); apply: eq_bigr => x _.
by rewrite big_distrr.
Qed.

(* One stage, then the rest. Needs the remaining candidates to have total probability one. *)
Lemma outputS n s y : (forall x, draw s x * acc s x != 0 -> mass n (next s x) = 1) ->
  output n.+1 s y = draw s y * acc s y
                    + \sum_x draw s x * (1 - acc s x) * output n (next s x) y.
Proof.
move=> m1; rewrite /output (sum_tuple_cons _ (fun t => weight s t * run s t y)).
rewrite -(sum_indicator (fun x => draw s x * acc s x)) -big_split /=.
apply: eq_bigr => x _.
have -> : draw s x * acc s x * (x == y)%:R
          = draw s x * acc s x * (x == y)%:R * mass n (next s x).
  by have [->|/m1 ->] := eqVneq (draw s x * acc s x) 0; rewrite ?mulr1 // !mul0r.
rewrite /mass !big_distrr /= -big_split /=.
by apply: eq_bigr => t _; ring.
Qed.

Lemma acceptanceS n s : (forall x, draw s x * acc s x != 0 -> mass n (next s x) = 1) ->
  acceptance n.+1 s = \sum_x draw s x * acc s x
                      + \sum_x draw s x * (1 - acc s x) * acceptance n (next s x).
Proof.
move=> m1; rewrite /acceptance (sum_tuple_cons _ (fun t => weight s t * hit s t)).
rewrite -big_split /=; apply: eq_bigr => x _.
have -> : draw s x * acc s x = draw s x * acc s x * mass n (next s x).
  by have [->|/m1 ->] := eqVneq (draw s x * acc s x) 0; rewrite ?mulr1 // !mul0r.
rewrite /mass !big_distrr /= -big_split /=.
by apply: eq_bigr => t _; ring.
Qed.

(* The usual shape of an exactness proof. (good n s): state s may occur with n candidates to come; tgt s: the
   law that is owed there. If every stage pays its part and hands on the rest, the output follows tgt. *)
Lemma balance (good : nat -> state M -> Prop) (tgt : state M -> V -> R) :
    (forall s y, good 0%N s -> fin s y = tgt s y) ->
    (forall n s x, good n.+1 s -> draw s x * (1 - acc s x) != 0 -> good n (next s x)) ->
    (forall n s x, good n.+1 s -> draw s x * acc s x != 0 -> mass n (next s x) = 1) ->
    (forall n s y, good n.+1 s ->
      draw s y * acc s y + \sum_x draw s x * (1 - acc s x) * tgt (next s x) y = tgt s y) ->
  forall n s, good n s -> exact n s (tgt s).
Proof.
move=> good_fin good_next good_mass good_step; elim=> [|n IH] s good_s y.
  by rewrite output0 good_fin.
rewrite outputS => [|x]; last exact: good_mass.
rewrite -(good_step n s y good_s); congr (_ + _); apply: eq_bigr => x _.
have [->|NE] := eqVneq (draw s x * (1 - acc s x)) 0; first by rewrite !mul0r.
by rewrite IH //; apply: good_next NE.
Qed.

End Procedure.

Section Iid.
Variables (R : realFieldType) (V : finType) (q : V -> R).
Hypothesis q1 : \sum_x q x = 1.
Variable M : procedure R V.
Hypothesis iid : forall s : state M, draw s =1 q.

Lemma iid_weight (s : state M) xs : weight s xs = \prod_(x <- xs) q x.
Proof. by elim: xs s => [|x xs IH] s; rewrite ?big_nil // big_cons /= iid IH. Qed.

Lemma iid_mass n (s : state M) : mass n s = 1.
Proof.
by rewrite -[RHS](sum_tuple_prod n q1); apply: eq_bigr => t _; rewrite iid_weight.
Qed.

Lemma iid_outputS n (s : state M) y :
  output n.+1 s y = q y * acc s y + \sum_x q x * (1 - acc s x) * output n (next s x) y.
Proof.
rewrite outputS => [|x _]; last exact: iid_mass.
by rewrite iid; congr (_ + _); apply: eq_bigr => x _; rewrite iid.
Qed.

Lemma iid_acceptanceS n (s : state M) :
  acceptance n.+1 s = \sum_x q x * acc s x + \sum_x q x * (1 - acc s x) * acceptance n (next s x).
Proof.
rewrite acceptanceS => [|x _]; last exact: iid_mass.
by congr (_ + _); apply: eq_bigr => x _; rewrite iid.
Qed.

End Iid.

"""Faults planted in a tree step, as engines have them, and in the joint-law audit: each must be noticed.

A step is audited as any engine's would be: every draft tree and every coin, on tables whose rows differ between
contexts. Whole-sequence laws are needed: most of these faults leave the first token alone.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from resispec_core.audit.replay import replay_step
from resispec_core.audit.replay.tables import Markov, hard_pair
from resispec_core.audit.verdict import Verdict
from resispec_core.drafts import draw_mode
from resispec_core.laws import inverse_cdf
from resispec_core.rules import Autoregressive, SpecInfer, TargetMatch
from resispec_core.rules.base import Outcome, Stage
from resispec_core.trees import (
    ABSENT,
    DraftTree,
    Topology,
    audit_tree,
    chain,
    complete,
    draft_tree,
    joint,
    replay_tree,
    walk,
)

BRANCH = Topology((-1, 0, 0, 1))
"""Two candidates; the first is continued: small, and every kind of node is there."""
WIDE = tuple(
    Markov(row, [row] * 3)
    for row in (
        [Fraction(1, 5), Fraction(2, 5), Fraction(2, 5)],
        [Fraction(3, 5), Fraction(3, 10), Fraction(1, 10)],
    )
)
"""One token drafted too often and two too seldom, so that a residual depends on how many candidates were refused."""
NARROW = tuple(Markov(table.rows[0], table.rows) for table in hard_pair(3))
"""The draft gives two of three tokens: the third slot of a draw without replacement stays empty."""


class Step:
    """A correct step. Subclasses override one thing each, and do it wrong."""

    draw = "iid"
    rule = SpecInfer()
    topology = BRANCH
    tables = hard_pair(3)

    def __call__(self, target, draft, prefix, rng):
        prompt = tuple(prefix)
        tree = self.drafted(draft, prompt, rng)

        def rows(node):
            return target(prompt + tree.prefix(node)), draft(prompt + tree.prefix(node))

        return list(self.walked(tree, rows, rng))

    def drafted(self, draft, prompt, rng):
        propose = lambda so_far, nodes: [draft(prompt + so_far.prefix(node)) for node in nodes]  # noqa: E731
        return draft_tree(self.topology, propose, rng, draw=self.draw)

    def walked(self, tree, rows, rng):
        return walk(tree, rows, self.rule, rng, draw=self.draw).tokens


class TargetRowOfParent(Step):
    """The child's candidates are verified against the target row of its parent."""

    topology = chain(2)

    def walked(self, tree, rows, rng):
        above = lambda node: tree.topology.parents[node] if tree.children(node) and node else node  # noqa: E731
        return super().walked(tree, lambda node: (rows(above(node))[0], rows(node)[1]), rng)


class DraftRowOfParent(Step):
    """The child's candidates are verified with the draft law of its parent."""

    topology = chain(2)

    def walked(self, tree, rows, rng):
        above = lambda node: max(tree.topology.parents[node], 0)  # noqa: E731
        return super().walked(tree, lambda node: (rows(node)[0], rows(above(node))[1]), rng)


class BonusFromParent(Step):
    """The bonus token comes from the row before the last accepted token."""

    def walked(self, tree, rows, rng):
        def shifted(node):
            return rows(node if tree.children(node) else tree.topology.parents[node])

        return super().walked(tree, shifted, rng)


class BonusFromLastNode(Step):
    """The bonus token comes from the last row of the batch, whichever leaf was reached."""

    def walked(self, tree, rows, rng):
        last = len(tree.topology) - 1
        return super().walked(tree, lambda node: rows(node if tree.children(node) else last), rng)


class RowsOfFirstSibling(Step):
    """After the second candidate is accepted, rows of the first are read: an index that forgot the rejections."""

    topology = complete(3, 2)
    tables = hard_pair(2)

    def walked(self, tree, rows, rng):
        def first(node):
            if node == 0:
                return rows(0)
            siblings = tree.topology.children(tree.topology.parents[node])
            return rows(siblings[0])

        return super().walked(tree, first, rng)


class StaleResidual(Step):
    """The residual left by rejected siblings is carried down to the accepted child instead of the child's own row."""

    topology = complete(3, 2)
    tables = hard_pair(2)

    def walked(self, tree, rows, rng):
        mode = draw_mode(self.draw)
        node, tokens, residual = 0, [], None
        while True:
            p, q = rows(node)
            residual = p if residual is None else residual
            children = tree.children(node)
            if not children:
                return [*tokens, inverse_cdf(p, rng.random())]
            was_rejected = False
            for index, child in enumerate(children):
                drawn = np.array([tree.tokens[other] for other in children[:index]], dtype=int)
                stage = Stage(p, mode.conditional(q, drawn, len(children)), residual, index, len(children))
                token = tree.tokens[child]
                if rng.random() < self.rule.accept(stage)[token]:
                    tokens, node = [*tokens, token], child
                    residual = residual if was_rejected else None
                    break
                residual, was_rejected = self.rule.reject(stage, np.array(token)), True
            else:
                return [*tokens, inverse_cdf(residual, rng.random())]


class LongestPath(Step):
    """Every path is verified with coins of its own, and the longest accepted one is taken."""

    def walked(self, tree, rows, rng):
        found = []
        for leaf in range(len(tree.topology)):
            if not tree.children(leaf):
                path = tree.topology.path(leaf)
                tokens = list(tree.tokens)
                for node in range(len(tokens)):
                    tokens[node] = tokens[node] if node in path else ABSENT
                only = DraftTree(tree.topology, tuple(tokens))
                found.append(super().walked(only, rows, rng))
        return max(found, key=len)


class DeepestFirst(Step):
    """The tree is walked from every accepted first candidate, and the continuation that got further is kept."""

    topology = Topology((-1, 0, 0, 1, 2))
    tables = hard_pair(2)

    def walked(self, tree, rows, rng):
        first = super().walked(tree, rows, rng)
        return first if len(first) > 1 else super().walked(tree, rows, rng)


class DropsUnlikelyTokens(Step):
    """A candidate is left out if the draft finds it unlikely: truncation that depends on the sampled token."""

    topology = chain(1)
    least = Fraction(1, 3)

    def drafted(self, draft, prompt, rng):
        tree = super().drafted(draft, prompt, rng)
        tokens = list(tree.tokens)
        for node in range(1, len(tokens)):
            above = tree.topology.parents[node]
            orphan = above and tokens[above] == ABSENT
            if orphan or draft(prompt + tree.prefix(above))[tree.tokens[node]] < self.least:
                tokens[node] = ABSENT
        return DraftTree(tree.topology, tuple(tokens))


class KeepsTheBestOfSampled(DropsUnlikelyTokens):
    """EAGLE-2's re-ranking applied to sampled candidates: the likelier of two is kept."""

    topology = complete(2, 2)

    def drafted(self, draft, prompt, rng):
        tree = Step.drafted(self, draft, prompt, rng)
        row = draft(prompt)
        kept = max((1, 2), key=lambda node: row[tree.tokens[node]])
        return DraftTree(
            tree.topology, tuple(t if n in (0, kept) else ABSENT for n, t in enumerate(tree.tokens))
        )


class RemovesDuplicates(Step):
    """Of independent siblings with one token only the first is kept, so that fewer candidates are verified."""

    topology = complete(2, 3)
    tables = WIDE

    def drafted(self, draft, prompt, rng):
        tree = super().drafted(draft, prompt, rng)
        tokens = [t if t not in tree.tokens[1:n] else ABSENT for n, t in enumerate(tree.tokens)]
        return DraftTree(tree.topology, tuple(tokens))


class SortsSampledSiblings(Step):
    """Siblings drawn without replacement are verified likeliest first, not in the order of the draws."""

    draw = "without-replacement"
    topology = complete(2, 2)

    def drafted(self, draft, prompt, rng):
        tree = super().drafted(draft, prompt, rng)
        row = draft(prompt)
        drawn = sorted(tree.tokens[1:], key=lambda token: -row[token] if token != ABSENT else 1)
        return DraftTree(tree.topology, (ABSENT, *drawn))


class VerifiesPlaceholders(Step):
    """Empty slots hold token 0 and are verified like any other."""

    draw = "without-replacement"
    topology = complete(2, 3)
    tables = NARROW

    def drafted(self, draft, prompt, rng):
        tree = super().drafted(draft, prompt, rng)
        return DraftTree(tree.topology, tuple(max(t, 0) if n else t for n, t in enumerate(tree.tokens)))

    def walked(self, tree, rows, rng):
        return walk(tree, rows, Tolerant(), rng, draw=self.draw).tokens


class Tolerant(SpecInfer):
    """Divides by the law of a draw that cannot have happened, as a kernel would: accepts what has no draft mass."""

    def decide(self, row, tokens, coins):
        residual = row.target
        for index, token in enumerate(tokens):
            draft = row.mode.conditional(row.draft, np.array(tokens[:index], dtype=int), len(tokens))
            stage = Stage(row.target, draft, residual, index, len(tokens))
            if draft[token] == 0 or coins[index] < self.accept(stage)[token]:
                return Outcome(token, index)
            residual = self.reject(stage, np.array(token))
        return Outcome(inverse_cdf(residual, coins[-1]), -1)


class OneCoinForAll(Step):
    """One coin decides every node of the step."""

    topology = chain(2)

    def walked(self, tree, rows, rng):
        coin = rng.random()
        return walk(
            tree, rows, self.rule, lambda count: [*([coin] * (count - 1)), rng.random()], draw=self.draw
        ).tokens


class NoBonusAfterFullAcceptance(Step):
    """A fully accepted path ends without a bonus token: harmless, and must not be called a fault."""

    topology = chain(2)

    def walked(self, tree, rows, rng):
        found = walk(tree, rows, self.rule, rng, draw=self.draw)
        return found.tokens if found.visits[-1].candidates else found.tokens[:-1]


class ForgetsTheResample(Step):
    """After all candidates were rejected, the token comes from the target row, not from the residual."""

    topology = complete(2, 2)

    def walked(self, tree, rows, rng):
        found = walk(tree, rows, self.rule, rng, draw=self.draw)
        last = found.visits[-1]
        if last.how == "resampled":
            return (*found.tokens[:-1], inverse_cdf(rows(last.node)[0], rng.random()))
        return found.tokens


class TopKVerifiedAsSampled(Step):
    """EAGLE-2's likeliest tokens are verified by dividing by the draft's probabilities, as if they had been sampled."""

    draw = "top-k"
    topology = complete(2, 2)

    def walked(self, tree, rows, rng):
        return walk(tree, rows, self.rule, rng, draw="iid").tokens


FAULTS = [
    TargetRowOfParent, DraftRowOfParent, BonusFromParent, BonusFromLastNode, RowsOfFirstSibling, StaleResidual,
    LongestPath, DeepestFirst, DropsUnlikelyTokens, KeepsTheBestOfSampled, RemovesDuplicates, SortsSampledSiblings,
    VerifiesPlaceholders, OneCoinForAll, ForgetsTheResample, TopKVerifiedAsSampled,
]  # fmt: skip


def verdict(step, horizon=2):
    return replay_step(step, *step.tables, horizon=horizon, numbers="rational", monte_carlo=0)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_fault_is_found_and_the_same_step_without_it_is_exact(fault):
    report = verdict(fault())
    assert report.verdict is Verdict.BIASED
    assert report.total_variation > 0
    assert not report.crashes

    class Clean(Step):
        draw, topology, tables = fault.draw, fault.topology, fault.tables

    assert verdict(Clean()).verdict is Verdict.EXACT


@pytest.mark.parametrize(
    "fault",
    [TargetRowOfParent, BonusFromParent, BonusFromLastNode, RowsOfFirstSibling, StaleResidual, OneCoinForAll],
)
def test_these_faults_leave_the_first_token_alone(fault):
    """Why single positions are not enough."""
    assert verdict(fault(), horizon=1).verdict is Verdict.EXACT


def test_a_step_without_a_bonus_token_is_no_fault():
    assert verdict(NoBonusAfterFullAcceptance()).verdict is Verdict.EXACT


class StopsBeforeDrawing(Step):
    """As ``DropsUnlikelyTokens``, but decided before the token is drawn: what a legal stop may know."""

    topology = chain(2)

    def drafted(self, draft, prompt, rng):
        propose = lambda so_far, nodes: [draft(prompt + so_far.prefix(node)) for node in nodes]  # noqa: E731

        def stop(prefix, probabilities, row):
            return bool(row.max() < Fraction(1, 2)) or any(
                chance < Fraction(1, 3) for chance in probabilities
            )

        return draft_tree(self.topology, propose, rng, draw=self.draw, stop=stop)


def test_stopping_by_draft_information_alone_is_exact():
    assert verdict(StopsBeforeDrawing(), horizon=3).verdict is Verdict.EXACT


def test_duplicates_may_be_removed_where_the_residual_only_loses_the_token():
    """Not every rule minds: for target-match a repeated candidate adds nothing, so dropping it changes nothing."""

    class Harmless(RemovesDuplicates):
        rule = TargetMatch()

    assert verdict(Harmless()).verdict is Verdict.EXACT


# The sum over subtrees: a fault in it parts from the walk.


def agrees():
    summed = audit_tree("resispec", *hard_pair(3), BRANCH, horizon=2)
    return summed.law == replay_tree("resispec", *hard_pair(3), BRANCH, horizon=2).law


def parents_row(whole):
    return lambda self, prefix: whole(self, prefix[:-1])


def first_shape(whole):
    """Every child has the shape of the first."""

    def shape(topology):
        found = whole(topology)
        return tuple(found[:1] * len(found))

    return shape


def one_candidate_fewer(whole):
    return lambda mode, row, slots: max(1, whole(mode, row, slots) - 1)


def no_resample(whole):
    return lambda *given: (*whole(*given)[:-1], 0 * whole(*given)[-1])


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [
        (joint._Steps, "_rows", parents_row),
        (joint, "_shape", first_shape),
        (joint, "candidates_of", one_candidate_fewer),
        (joint, "_node_parts", no_resample),
    ],
)
def test_a_fault_in_the_sum_parts_from_the_walk(monkeypatch, owner, name, fault):
    """On a biased rule, whose law depends on every step: an exact one hides faults that only draft less."""
    assert agrees()
    monkeypatch.setattr(owner, name, fault(getattr(owner, name)))
    assert not agrees()


def test_a_walk_that_forgets_its_candidates_is_seen_through():
    """A rule that ignores every draft is exact and accepts nothing: exactness alone is no proof of speculation."""
    report = audit_tree(Autoregressive(), *hard_pair(3), complete(3, 2))
    assert (report.verdict, report.accepted_length) == (Verdict.EXACT, 1)

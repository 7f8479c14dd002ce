"""EAGLE-2's dynamic tree: what is kept, its draw mode, and that only the draft decides."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resispec_core import InputError
from resispec_core.audit.replay import replay_step
from resispec_core.audit.verdict import Verdict
from resispec_core.drafts import draw_mode, top_tokens
from resispec_core.rules import ResiSpec
from resispec_core.rules import rule as named_rule
from resispec_core.rules.resispec import REDISTRIBUTIONS
from resispec_core.testing import markov_tables
from resispec_core.trees import ABSENT, audit_tree, chain, complete, eagle, walk


def proposer(draft, prompt=()):
    return lambda tree, nodes: [draft(prompt + tree.prefix(node)) for node in nodes]


def grown(draft, depth, top_k):
    """All candidates before the re-ranking, as prefixes with their scores: by definition, without the tree code."""
    level, everything = [()], []

    def score(prefix):
        return prod(draft(prefix[:place])[token] for place, token in enumerate(prefix))

    for _ in range(depth + 1):
        children = [
            (*prefix, token) for prefix in sorted(level) for token in top_tokens(draft(prefix), top_k)
        ]
        everything += [(child, score(child)) for child in children]
        level = sorted(children, key=score, reverse=True)[:top_k]
    return everything


@settings(max_examples=100)
@given(markov_tables(2, 3), st.integers(1, 8), st.integers(0, 2), st.integers(1, 3))
def test_the_best_positions_are_kept(tables, total_token, depth, top_k):
    draft = tables[1]
    tree = eagle(proposer(draft), total_token=total_token, depth=depth, top_k=top_k)
    assert tree.topology.cost <= total_token
    assert tree.topology.depth <= depth + 2
    kept = [tree.prefix(node) for node in range(1, len(tree.topology))]
    assert len(set(kept)) == len(kept)
    candidates = dict(grown(draft, depth, top_k))
    assert len(kept) == min(total_token - 1, len(candidates))
    scores = sorted((prod(tree.probabilities(node)) for node in range(1, len(kept) + 1)), reverse=True)
    if len(set(candidates.values())) == len(candidates):  # without ties the choice is unique
        best = sorted(candidates, key=candidates.get, reverse=True)[: total_token - 1]
        assert sorted(kept) == sorted(best)
        assert scores == [candidates[prefix] for prefix in best]


@settings(max_examples=100)
@given(markov_tables(2, 3), st.integers(1, 8))
def test_siblings_are_the_top_k_draw_mode(tables, total_token):
    """Each parent keeps its likeliest children, in order: what a rule for deterministic candidates assumes."""
    draft = tables[1]
    tree = eagle(proposer(draft), total_token=total_token, depth=2, top_k=3)
    for node in range(len(tree.topology)):
        children = tree.children(node)
        if children:
            row = draft(tree.prefix(node))
            drawn = draw_mode("top-k").draw(row, len(children), [0] * len(children))
            assert tuple(tree.tokens[child] for child in children) == drawn
            assert tree.draft_rows[node].tolist() == row.tolist()


def plan(draft, **settings):
    return lambda prompt: eagle(proposer(draft, prompt), **settings).topology


@pytest.mark.parametrize(
    "rule",
    [
        *map(named_rule, ("deterministic", "target-match", "specinfer")),
        *(ResiSpec(redistribution) for redistribution in REDISTRIBUTIONS),
    ],
    ids=lambda rule: f"{rule.name} {getattr(rule, 'redistribution', '')}".strip(),
)
def test_the_joint_law_on_dynamic_trees(rule):
    """Also of the published rule: given a point mass, its residual is p without the token, as for ``deterministic``."""

    @settings(max_examples=40)
    @given(markov_tables(2, 3))
    def check(tables):
        trees = plan(tables[1], total_token=6, depth=1, top_k=2)
        report = audit_tree(rule, *tables, trees, draw="top-k", horizon=3)
        assert report.verdict is Verdict.EXACT
        assert report.accepted_length == audit_tree("deterministic", *tables, trees).accepted_length

    check()


def test_a_step_with_its_own_tree_is_replayed_exactly(hard_pair):
    """The walk on the tree that ``eagle`` itself drafted, every coin."""

    def step(target, draft, prefix, rng):
        prompt = tuple(prefix)
        tree = eagle(proposer(draft, prompt), total_token=5, depth=1, top_k=2)

        def rows(node):
            return (target(prompt + tree.prefix(node)), tree.draft_rows.get(node))

        return list(walk(tree, rows, named_rule("specinfer"), rng, draw="top-k").tokens)

    report = replay_step(step, *hard_pair, horizon=3, numbers="rational", monte_carlo=0)
    assert report.verdict is Verdict.EXACT
    summed = audit_tree(
        "specinfer", *hard_pair, plan(hard_pair[1], total_token=5, depth=1, top_k=2), draw="top-k"
    )
    assert summed.verdict is Verdict.EXACT
    assert summed.accepted_length > 1


def test_ties_keep_the_earlier_node_and_its_parent():
    def flat(tree, nodes):
        return [np.full(4, 0.25) for _ in nodes]

    tree = eagle(flat, total_token=4, depth=2, top_k=2)
    assert tree.topology.parents == (-1, 0, 0, 1)
    assert tree.tokens == (ABSENT, 0, 1, 0)

    def certain(tree, nodes):
        return [np.array([1.0, 0.0]) for _ in nodes]

    assert eagle(certain, total_token=4, depth=5, top_k=1).topology == chain(3)
    assert eagle(certain, total_token=1, depth=0, top_k=1).topology == chain(0)


def test_it_asks_the_draft_once_a_level_and_never_for_more_than_top_k_nodes():
    calls = []

    def propose(tree, nodes):
        calls.append(len(nodes))
        return [np.array([0.4, 0.3, 0.2, 0.1]) for _ in nodes]

    tree = eagle(propose, total_token=60, depth=3, top_k=2)
    assert calls == [1, 2, 2, 2]
    assert tree.topology.cost == 1 + 2 + 3 * 4
    assert eagle(propose, total_token=100, depth=1, top_k=9).topology == complete(3, 4)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [({"total_token": 0}, "total_token is 0"), ({"depth": -1}, "depth is -1"), ({"top_k": 0}, "top_k is 0")],
)
def test_bad_parameters_are_refused(settings_, message):
    with pytest.raises(InputError, match=message):
        eagle(lambda tree, nodes: [], **settings_)


def test_a_draft_that_gives_too_few_rows_is_refused():
    with pytest.raises(InputError, match="the draft gave 0 rows for 1 nodes"):
        eagle(lambda tree, nodes: [])
    with pytest.raises(InputError, match="draft row of node 0: "):
        eagle(lambda tree, nodes: [[0.5, float("nan")]])

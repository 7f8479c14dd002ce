"""The walk, node by node: which rows it reads, which coins it takes, and what it refuses."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_cases import EXACT

from resispec_core import InputError, parse_law
from resispec_core.audit.replay.tables import hard_pair
from resispec_core.rules import Autoregressive, Optimal, SpecInfer
from resispec_core.rules import rule as named_rule
from resispec_core.testing import draft_trees, generators, markov_tables
from resispec_core.trees import (
    ABSENT,
    DraftTree,
    Topology,
    chain,
    complete,
    draft_tree,
    tree_of,
    unlikely,
    walk,
)

HALF = parse_law("1/2,1/2")
ONE, ZERO = Fraction(999, 1000), Fraction(0)
"""A coin that accepts nothing short of certainty, and one that accepts anything possible."""


def rows_of(tables, tree, prompt=()):
    target, draft = tables
    return lambda node: (target(prompt + tree.prefix(node)), draft(prompt + tree.prefix(node)))


def test_the_walk_follows_the_accepted_child_with_its_own_rows():
    """By hand: p and q after the prompt, after 1, after 1 0."""
    tree = tree_of([(-1, 0), (-1, 1), (1, 0), (1, 1), (2, 1)])
    assert tree.topology.parents == (-1, 0, 0, 2, 2, 3)
    seen = []

    def rows(node):
        seen.append(node)
        return HALF, (parse_law("3/4,1/4") if node == 0 else HALF if node != 3 else parse_law("0,1"))

    # Root: 0 with 2/3 fails at coin .9; the residual is (0, 1), so 1 is accepted. Node 2: p = q accepts its first
    # child. Node 3: 1 is accepted with (1/2)/1 or not. Node 5: bonus.
    accepting = [Fraction(9, 10), ZERO, ONE, ONE, ONE, ONE, ZERO, ONE, ONE]
    found = walk(tree, rows, SpecInfer(), iter(accepting))
    assert found.tokens == (1, 0, 1, 1)
    assert found.path == (0, 2, 3, 5) == tuple(seen)
    assert found.accepted_length == 4
    assert [(visit.candidates, visit.accepted, visit.how) for visit in found.visits] == [
        ((1, 2), 1, "accepted"), ((3, 4), 0, "accepted"), ((5,), 0, "accepted"), ((), -1, "bonus"),
    ]  # fmt: skip
    rejecting = [*accepting[:6], Fraction(1, 2), ONE]
    found = walk(tree, rows, SpecInfer(), iter(rejecting))
    assert found.tokens == (1, 0, 0)  # norm((1/2, −1/2)+)
    assert found.visits[-1].how == "resampled"
    assert found.path == (0, 2, 3)


@st.composite
def drafted(draw):
    """Tables and a draft tree over their vocabulary: repeated siblings, and some slots left empty."""
    tables = draw(markov_tables(2, 3))
    nodes = draw(draft_trees(7, tables[0].size))
    full = tree_of(nodes)
    tokens = list(full.tokens)
    for node in range(1, len(tokens)):
        above = full.topology.parents[node]
        if (above and tokens[above] == ABSENT) or draw(st.integers(0, 4)) == 0:
            tokens[node] = ABSENT
    return tables, DraftTree(full.topology, tuple(tokens))


WHATEVER = [
    named_rule(name)
    for name in ("specinfer", "target-match", "autoregressive", "resispec", "typical", "shaped")
]


@settings(max_examples=200)
@given(drafted(), st.sampled_from(WHATEVER), generators())
def test_every_walk_is_a_path_of_the_tree(case, rule, rng):
    tables, tree = case
    read, taken = [], []

    def rows(node):
        read.append(node)
        return rows_of(tables, tree)(node)

    def coins(count):
        taken.append(count)
        return [rng.random() for _ in range(count)]

    found = walk(tree, rows, rule, coins)
    assert tuple(read) == found.path  # each node once, nothing off the path
    assert found.path == tree.topology.path(found.path[-1])
    assert found.tokens[:-1] == tree.prefix(found.path[-1])
    assert ABSENT not in found.tokens
    assert [visit.how for visit in found.visits[:-1]] == ["accepted"] * (len(found.path) - 1)
    assert found.visits[-1].how == ("resampled" if tree.children(found.path[-1]) else "bonus")
    assert taken == [rule.coins(len(visit.candidates)) if visit.candidates else 1 for visit in found.visits]
    for visit in found.visits:
        assert visit.candidates == tree.children(visit.node)


@settings(max_examples=100)
@given(drafted(), generators())
def test_empty_slots_change_nothing(case, rng):
    """A tree with placeholders walks as the tree without them."""
    tables, tree = case
    coins = [rng.random() for _ in range(40)]
    small, old = tree.compact()
    one = walk(tree, rows_of(tables, tree), SpecInfer(), iter(coins))
    other = walk(small, rows_of(tables, small), SpecInfer(), iter(coins))
    assert one.tokens == other.tokens
    assert one.path == tuple(old[node] for node in other.path)


@pytest.mark.parametrize(("name", "draw"), EXACT)
def test_one_coin_source_is_as_good_as_another(name, draw):
    """A generator, a function and an iterator over the same stream; every rule runs in floats through the same walk."""
    tables = [
        type(table)(table.start.astype(float), [row.astype(float) for row in table.rows])
        for table in hard_pair(4)
    ]
    topology = chain(3) if name == "single-draft" else complete(3, 2)
    rule = named_rule(name)

    def propose(so_far, nodes):
        return [tables[1](so_far.prefix(node)) for node in nodes]

    def streams():
        rng = np.random.default_rng(7)
        return [rng.random() for _ in range(200)]

    one, other = iter(streams()), iter(streams())
    found = []
    for source in (np.random.default_rng(7), one, lambda count: [next(other) for _ in range(count)]):
        tree = draft_tree(topology, propose, source, draw=draw)
        found.append((tree.tokens, walk(tree, rows_of(tables, tree), rule, source, draw=draw)))
    assert found[0] == found[1] == found[2]


def test_rows_may_be_a_sequence_and_a_leaf_needs_no_draft_row():
    tree = tree_of([(-1, 0)])
    found = walk(tree, [(HALF, HALF), (HALF, None)], SpecInfer(), iter([ZERO, ZERO, ONE]))
    assert found.tokens == (0, 1)
    alone = walk(DraftTree(chain(0), (ABSENT,)), [(HALF, None)], SpecInfer(), iter([ZERO]))
    assert (alone.tokens, alone.path, alone.visits[0].how) == ((0,), (0,), "bonus")


def test_drafting_asks_once_a_level_and_leaves_out_what_cannot_be_drawn():
    calls = []

    def propose(so_far, nodes):
        calls.append([so_far.prefix(node) for node in nodes])
        return [parse_law("0,1/2,1/2") if node == 0 else parse_law("0,0,1") for node in nodes]

    tree = draft_tree(complete(3, 3), propose, np.random.default_rng(1), draw="without-replacement")
    assert len(calls) == 2
    assert calls[0] == [()]
    assert sorted(calls[1]) == [(1,), (2,)]
    assert sorted(tree.tokens[1:4]) == [ABSENT, 1, 2]
    assert tree.tokens[3] == ABSENT
    assert tree.tokens[4:] == (2, ABSENT, ABSENT, 2, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT)
    assert set(tree.draft_rows) == {0, 1, 2}
    assert tree.compact()[0].tokens == (ABSENT, *tree.tokens[1:3], 2, 2)


def test_stopping_leaves_leaves():
    draft = hard_pair(2)[1]

    def propose(so_far, nodes):
        return [draft(so_far.prefix(node)) for node in nodes]

    for bar in (0, Fraction(1, 3), Fraction(1, 2), 1):
        tree = draft_tree(complete(4, 2), propose, np.random.default_rng(3), stop=unlikely(bar))
        for node in range(len(tree.topology)):
            if node and tree.tokens[node] == ABSENT:
                continue
            likely = np.prod(np.array(tree.probabilities(node), dtype=object)) >= bar
            assert bool(tree.children(node)) == bool(likely and tree.topology.children(node))
    with pytest.raises(InputError, match="threshold is 2; it is a probability"):
        unlikely(2)


@pytest.mark.parametrize(
    ("rows", "coins", "message"),
    [
        ([(HALF, None)], [ZERO] * 3, "tree node 0: 1 children were drafted, but no draft row is given"),
        ([(HALF, HALF), ([0.5, 0.4], None)], [ZERO] * 3, "tree node 1: target: probabilities sum to 0.9"),
        (
            [(HALF, HALF), (HALF, None)],
            [ZERO, ZERO],
            "tree node 1: the coins ended: 1 were needed and 0 left",
        ),
        ([(HALF, parse_law("1"))], [ZERO] * 3, "tree node 0: target has 2 tokens and draft has 1"),
        ([(HALF, HALF)], [Fraction(3, 2), ZERO], "tree node 0: coin 0 is 3/2"),
    ],
)
def test_bad_input_names_the_node(rows, coins, message):
    with pytest.raises(InputError) as error:
        walk(tree_of([(-1, 0)]), rows, SpecInfer(), iter(coins))
    assert message in str(error.value)


def test_tokens_and_draw_modes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="tree node 0: candidate 0 is token 5, outside the vocabulary"):
        walk(tree_of([(-1, 5)]), [(HALF, HALF)], SpecInfer(), iter([ZERO] * 2))
    with pytest.raises(InputError, match="tree node 0: rule 'optimal' is meant for candidates drawn iid"):
        walk(tree_of([(-1, 0)]), [(HALF, HALF)], Optimal(), iter([ZERO] * 3), draw="top-k")
    with pytest.raises(InputError, match="the draft gave 2 rows for 1 nodes"):
        draft_tree(chain(2), lambda so_far, nodes: [HALF, HALF], iter([ZERO]))
    with pytest.raises(InputError, match="draft row of node 0"):
        draft_tree(chain(2), lambda so_far, nodes: [[1.0, 1.0]], iter([ZERO]))


def test_the_target_alone_emits_one_token_a_step():
    tree = tree_of([(-1, 0), (0, 1)])
    for coin, token in ((ZERO, 0), (ONE, 1)):
        found = walk(tree, [(HALF, HALF)] * 3, Autoregressive(), iter([ZERO, coin]))
        assert (found.tokens, found.accepted_length) == ((token,), 1)


def test_a_row_is_read_only_when_its_node_is_reached():
    """Rows of nodes off the path may be missing: nothing is computed for them."""
    tree = DraftTree(Topology((-1, 0, 0, 1, 2)), (ABSENT, 0, 1, 0, 0))
    for first in itertools.islice(itertools.product((0, 1)), 2):
        law = parse_law("1,0") if first == (0,) else parse_law("0,1")
        taken = tree.children(0)[first[0]]
        leaf = tree.children(taken)[0]
        known = {0: (law, HALF), taken: (HALF, HALF), leaf: (HALF, None)}
        found = walk(
            tree,
            lambda node, known=known: known[node],
            SpecInfer(),
            iter([ZERO, ZERO, ZERO, ZERO, ZERO, ZERO]),
        )
        assert found.path == (0, taken, leaf)

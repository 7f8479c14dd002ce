"""Sequoia's dynamic program against every tree of a small budget, in rationals."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_cases import ordered_trees, topologies

from resispec_core import InputError, audit, parse_law
from resispec_core.trees import Topology, chain, complete, expected_tokens, measured_acceptance, sequoia

TREES = {nodes: list(ordered_trees(nodes)) for nodes in range(1, 8)}


@st.composite
def acceptances(draw: st.DrawFn) -> list[Fraction]:
    """Positional acceptances that sum to at most 1, zeros and increasing ones among them."""
    weights = draw(st.lists(st.integers(0, 6), min_size=1, max_size=6))
    total = sum(weights) + draw(st.integers(0, 6)) or 1
    return [Fraction(weight, total) for weight in weights]


def best_by_search(budget, acceptance, max_depth):
    return max(
        expected_tokens(tree, acceptance)
        for nodes in range(1, budget + 1)
        for tree in TREES[nodes]
        if (max_depth is None or tree.depth <= max_depth) and tree.branching <= len(acceptance)
    )


@settings(max_examples=100)
@given(st.integers(1, 7), acceptances(), st.sampled_from([None, 1, 2, 3, 4]))
def test_no_tree_of_the_budget_beats_it(budget, acceptance, max_depth):
    found = sequoia(budget, acceptance, max_depth)
    assert found.cost <= budget
    assert max_depth is None or found.depth <= max_depth
    assert found.branching <= len(acceptance)
    assert expected_tokens(found, acceptance) == best_by_search(budget, acceptance, max_depth)


def test_the_search_notices_a_worse_tree():
    """The check above can fail: a complete tree or a chain of the same budget is beaten."""
    acceptance = [Fraction(3, 5), Fraction(1, 5), Fraction(1, 10)]
    best = best_by_search(7, acceptance, None)
    assert expected_tokens(sequoia(7, acceptance), acceptance) == best
    for other in (complete(3, 2), chain(6)):
        assert expected_tokens(other, acceptance) < best


@given(topologies(8, 8), acceptances())
def test_expected_tokens_sums_the_paths(topology, acceptance):
    acceptance = acceptance + [Fraction(0)] * 9
    ranks = topology.ranks()
    paths = [topology.path(node)[1:] for node in range(len(topology))]
    assert expected_tokens(topology, acceptance) == sum(
        prod((acceptance[ranks[node]] for node in path), start=Fraction(1)) for path in paths
    )


def test_expected_tokens_of_a_memoryless_pair_is_the_walks():
    """With one row everywhere the positional model is no approximation: it is what the joint audit sums."""
    from resispec_core.audit.replay.tables import Markov
    from resispec_core.trees import audit_tree

    p, q = parse_law("1/2,3/10,1/5"), parse_law("1/5,3/10,1/2")
    table = Markov(p, [p, p, p]), Markov(q, [q, q, q])
    for topology in (complete(3, 2), chain(3)):
        measured = audit("specinfer", p, q, topology.branching).acceptance_by_candidate
        assert (
            expected_tokens(topology, measured) == audit_tree("specinfer", *table, topology).accepted_length
        )


def test_known_trees():
    assert sequoia(1, [1.0]) == Topology((-1,))
    assert sequoia(5, [0.0, 0.0]) == Topology((-1,))  # nothing to gain: the smallest tree
    assert sequoia(6, [1.0, 0.0]) == chain(5)
    assert sequoia(6, [Fraction(1, 5)] * 5) == complete(2, 5)
    assert sequoia(150, [1.0]).depth == 150


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, [0.5]), "budget is 0"),
        ((2049, [0.5]), "1 to 2048"),
        ((5, []), "acceptance is empty"),
        ((5, [0.5, -0.1]), "acceptance of candidate 1 is -0.1"),
        ((5, [0.5, float("nan")]), "acceptance of candidate 1 is nan"),
        ((5, [0.9, 0.5]), "the acceptances sum to 1.4"),
        ((5, [0.5], 0), "max_depth is 0"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(InputError) as error:
        sequoia(*arguments)
    assert message in str(error.value)


def test_expected_tokens_wants_an_acceptance_for_every_sibling():
    with pytest.raises(
        InputError, match="the topology has 3 siblings under one parent, but acceptance has 2"
    ):
        expected_tokens(complete(2, 3), [0.5, 0.1])


def test_measured_acceptance_is_the_mean_of_the_audits():
    pairs = [(parse_law("1/2,3/10,1/5"), parse_law("1/5,3/10,1/2")), (parse_law("1/2,1/4,1/4"),) * 2]
    found = measured_acceptance("specinfer", pairs, 2)
    own = [audit("specinfer", *pair, 2).acceptance_by_candidate for pair in pairs]
    assert found == pytest.approx([float(one + other) / 2 for one, other in zip(*own, strict=True)])
    assert own[1] == (1, 0)
    assert sequoia(4, found).cost == 4


def test_acceptance_that_is_only_bounded_is_refused():
    p, q = np.random.default_rng(1).dirichlet(np.ones(300), size=2)
    with pytest.raises(
        InputError, match="pair 0: the acceptance of specinfer under without-replacement draws"
    ):
        measured_acceptance("specinfer", [(p, q)], 4, draw="without-replacement")
    assert len(measured_acceptance("specinfer", [(p, q)], 4)) == 4
    with pytest.raises(InputError, match="no pair of laws"):
        measured_acceptance("specinfer", [], 4)

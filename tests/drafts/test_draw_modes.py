"""How candidates are drawn: weights, limits, ties, and sampling against the weights."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resispec_core import InputError, parse_law
from resispec_core.drafts import DRAW_MODES, draw_mode, top_tokens
from resispec_core.testing.strategies import float_laws, verification_cases

Q = parse_law("1/2,1/3,1/6")


@pytest.mark.parametrize("name", DRAW_MODES)
def test_tuple_weights_sum_to_one_and_none_is_zero(name):
    mode = draw_mode(name)

    @settings(max_examples=100)
    @given(verification_cases(5, 3, draws=name))
    def check(case):
        weights = dict(mode.tuples(case.draft, case.candidates))
        assert sum(weights.values()) == 1
        assert all(weight > 0 for weight in weights.values())

    check()


def test_hand_weights():
    iid = dict(draw_mode("iid").tuples(Q, 2))
    assert iid[0, 1] == Fraction(1, 6)
    assert iid[0, 0] == Fraction(1, 4)
    without = dict(draw_mode("without-replacement").tuples(Q, 2))
    assert set(without) == set(permutations(range(3), 2))
    assert without[0, 1] == Fraction(1, 2) * Fraction(1, 3) / Fraction(1, 2)
    assert dict(draw_mode("top-k").tuples(Q, 2)) == {(0, 1): 1}
    # Greedy: one draw outside the top n − 1 = {0}, first, then those tokens.
    assert dict(draw_mode("greedy").tuples(Q, 2)) == {(1, 0): Fraction(2, 3), (2, 0): Fraction(1, 3)}


@pytest.mark.parametrize("name", DRAW_MODES)
def test_the_batched_conditional_is_the_conditional_of_each_row(name):
    mode = draw_mode(name)
    drawn = np.array([[0], [1], [2]])
    rows = np.broadcast_to(mode.conditional(Q, drawn, 2), (3, 3))
    for row, before in zip(rows, drawn, strict=True):
        assert row.tolist() == mode.conditional(Q, before, 2).tolist()


@pytest.mark.parametrize("name", DRAW_MODES)
def test_drawing_with_coins_follows_the_weights(name):
    """The coins of a grid finer than every step: the share of each tuple is its weight, exactly."""
    mode, grid = draw_mode(name), 60
    counts = {}
    for first in range(grid):
        for second in range(grid):
            coins = [Fraction(first, grid), Fraction(second, grid)]
            tokens = mode.draw(Q, 2, coins)
            counts[tokens] = counts.get(tokens, 0) + Fraction(1, grid**2)
    assert counts == dict(mode.tuples(Q, 2))


@settings(max_examples=300)
@given(float_laws(1, 12), st.integers(0, 12))
def test_top_tokens_breaks_ties_by_the_lower_id(row, count):
    expected = sorted(range(row.size), key=lambda token: (-row[token], token))[:count]
    assert top_tokens(row, count) == expected
    exact = np.array([Fraction(x) for x in row.tolist()], dtype=object)
    assert top_tokens(exact, count) == expected


def test_limits_are_named():
    narrow = parse_law("1/2,1/2,0")
    for name in ("without-replacement", "greedy"):
        with pytest.raises(InputError, match=f"candidates is 3, but drawing {name} .* gives at most 2"):
            list(draw_mode(name).tuples(narrow, 3))
    assert list(draw_mode("top-k").tuples(narrow, 3)) == [((0, 1, 2), 1)]
    with pytest.raises(InputError, match="gives at most 3"):
        draw_mode("top-k").check(narrow, 4)
    with pytest.raises(InputError, match="candidates is 0"):
        draw_mode("iid").check(narrow, 0)
    with pytest.raises(InputError, match="unknown draw mode 'beam'; known: iid"):
        draw_mode("beam")


def test_too_few_or_too_many_coins_are_an_error():
    with pytest.raises(ValueError, match="shorter"):
        draw_mode("iid").draw(Q, 2, [Fraction(0)])
    with pytest.raises(ValueError, match="longer"):
        draw_mode("iid").draw(Q, 1, [Fraction(0), Fraction(0)])

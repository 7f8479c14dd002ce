"""Water-filling under a cap: min(c·w, capacity) with the sum asked for."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resispec_core.rules.resispec import capped_fill
from resispec_core.testing.strategies import law_pairs


def check_fill(weights, capacity, amount, filled):
    """What the docstring claims, without solving for c again."""
    attainable = min(amount, capacity[weights > 0].sum())
    assert filled.sum() == attainable
    assert (filled >= 0).all()
    assert (filled <= capacity).all()
    assert (filled[weights == 0] == 0).all()
    below = (filled < capacity) & (weights > 0)
    levels = {filled[token] / weights[token] for token in np.flatnonzero(below)}
    assert len(levels) <= 1, "every token with room left stands at the same level c"
    for c in levels:
        full = (weights > 0) & ~below
        assert all(capacity[token] <= c * weights[token] for token in np.flatnonzero(full))


@settings(max_examples=500)
@given(law_pairs(1, 6), st.fractions(0, 1, max_denominator=40))
def test_the_fill_is_what_it_claims_in_rationals(pair, amount):
    weights, capacity = pair
    check_fill(weights, capacity, amount, capped_fill(weights, capacity, np.array(amount)))


def test_an_unfair_fill_is_caught():
    """The planted fault: a proportional fill has the right sum and stays under the cap, but no common level."""
    weights = np.array([Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)])
    capacity = np.array([Fraction(1, 10), Fraction(1, 5), Fraction(7, 10)])
    amount = Fraction(1, 2)
    check_fill(weights, capacity, amount, capped_fill(weights, capacity, np.array(amount)))
    with pytest.raises(AssertionError, match="same level"):
        check_fill(weights, capacity, amount, capacity * amount)


@settings(max_examples=1000)
@given(law_pairs(1, 6, rational=False), st.floats(0, 1))
def test_floats_reach_the_sum_whatever_the_weights(pair, amount):
    weights, capacity = pair
    filled = capped_fill(weights, capacity, np.array(amount))
    attainable = min(amount, capacity[weights > 0].sum())
    # Each of the V terms is rounded a few times; both cumulative sums run over V terms of total mass ≤ 1.
    assert abs(filled.sum() - attainable) <= 8 * weights.size * np.finfo(float).eps
    assert (filled <= capacity).all()


def test_subnormal_weights_do_not_overflow():
    weights, capacity = np.array([1.0, 5e-324, 1e-323]), np.array([0.0, 0.1, 0.5])
    assert capped_fill(weights, capacity, np.array(0.15)).tolist() == pytest.approx([0, 0.05, 0.1])
    assert capped_fill(weights, capacity, np.array(0.5)).tolist() == pytest.approx([0, 0.1, 0.4])


def test_rows_are_filled_independently():
    rows = np.array([[0.5, 0.5], [0.25, 0.75]])
    capacity = np.array([[0.1, 0.9], [0.6, 0.4]])
    amounts = np.array([0.5, 0.2])
    together = capped_fill(rows, capacity, amounts)
    apart = [capped_fill(rows[i], capacity[i], np.array(amounts[i])) for i in range(2)]
    assert together.tolist() == [row.tolist() for row in apart]


def test_rounding_never_empties_a_full_token():
    """All but a subnormal capacity is asked for: amount − held rounds to 0, and c = 0 would fill nothing."""
    weights = np.array([0.7483333333333333, 5.45143095e-314, 0.0])
    capacity = np.array([0.75, 5.56268465e-314, 0.0])
    filled = capped_fill(weights, capacity, capacity.sum())
    assert filled.sum() == pytest.approx(0.75, rel=8 * np.finfo(float).eps)

"""Distances against SciPy, hand values, and the corners where a float formula goes wrong."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import rel_entr

from resispec_core import parse_law
from resispec_core.audit.distances import (
    chi_square,
    distances,
    kl_divergence,
    total_variation,
    worst_relative_error,
)
from resispec_core.testing.strategies import law_pairs

EPS = np.finfo(float).eps


def test_hand_values():
    law, target = parse_law("1/2,1/2"), parse_law("1/4,3/4")
    found = distances(law, target)
    assert found.total_variation == Fraction(1, 4)
    assert found.kl == pytest.approx(math.log(1 / 2) / 4 + 3 / 4 * math.log(3 / 2), rel=8 * EPS)
    assert found.kl_reverse == pytest.approx(math.log(2) / 2 + math.log(2 / 3) / 2, rel=8 * EPS)
    assert found.chi_square == pytest.approx(1 / 4 + 1 / 12, rel=8 * EPS)
    assert found.worst_relative_error == 1.0


@settings(max_examples=1000)
@given(law_pairs(1, 6, rational=False))
def test_kl_agrees_with_scipy(pair):
    first, second = pair
    expected = rel_entr(first, second).sum()
    # SciPy's terms cancel down to the result, so each of the V terms may be off by a few eps·(1 + |term|);
    # |log| is below 745 for float64 masses.
    assert kl_divergence(first, second) == pytest.approx(expected, rel=64 * EPS, abs=first.size * 64 * EPS)


@settings(max_examples=500)
@given(law_pairs(1, 6))
def test_total_variation_is_exact_and_symmetric_and_bounds_kl(pair):
    first, second = pair
    tv = total_variation(first, second)
    assert isinstance(tv, (Fraction, int))
    assert tv == total_variation(second, first) == np.maximum(first - second, 0).sum()
    assert (tv == 0) == (first.tolist() == second.tolist())
    # Pinsker, and KL ≤ log(1 + chi²): inequalities of the true values, so float error needs its own room.
    kl = kl_divergence(first, second)
    assert 2 * float(tv) ** 2 <= kl * (1 + 64 * EPS) + 64 * EPS
    assert kl <= chi_square(first, second) * (1 + 64 * EPS) + 64 * EPS


@pytest.mark.parametrize(
    ("law", "target"), [("1/2,1/2", "1,0"), ("0,1", "1,0"), ("1/3,1/3,1/3", "1/2,0,1/2")]
)
def test_mass_where_the_target_has_none_is_infinitely_far(law, target):
    law, target = parse_law(law), parse_law(target)
    assert kl_divergence(law, target) == math.inf
    assert chi_square(law, target) == math.inf
    assert worst_relative_error(law, target) == math.inf


def test_mass_missing_from_the_law_is_finite_in_the_reverse_direction_only():
    law, target = parse_law("1,0"), parse_law("1/2,1/2")
    found = distances(law, target)
    assert found.kl == math.inf
    assert found.kl_reverse == pytest.approx(math.log(2), rel=8 * EPS)
    assert found.chi_square == 1.0
    assert found.worst_relative_error == 1.0


def test_close_laws_keep_their_digits():
    """KL of laws 1e-10 apart is 2e-20, far below the eps at which Σ f·log(f/s) cancels."""
    gap = Fraction(1, 10**10)
    half = Fraction(1, 2)
    first, second = np.array([half + gap, half - gap]), np.array([half, half])
    assert kl_divergence(first, second) == pytest.approx(2e-20, rel=1e-6)


@pytest.mark.parametrize("tiny", [1e-17, 1e-300, 5e-324])
def test_a_quotient_that_rounds_to_nothing_is_not_log_zero(tiny):
    first, second = np.array([tiny, 1.0]), np.array([0.5, 0.5])
    assert kl_divergence(first, second) == pytest.approx(math.log(2), rel=64 * EPS, abs=100 * tiny)
    # The other way round the quotient overflows where tiny is subnormal.
    expected = 0.5 * (math.log(0.5) - math.log(tiny)) + 0.5 * math.log(0.5)
    assert kl_divergence(second, first) == pytest.approx(expected, rel=64 * EPS)
    assert worst_relative_error(second, first) > 1e16


@settings(max_examples=500)
@given(law_pairs(1, 6, rational=False))
def test_no_pair_of_laws_warns_or_gives_a_negative(pair):
    found = distances(*pair)
    assert found.total_variation <= 1 + 16 * EPS
    for value in (found.kl, found.kl_reverse, found.chi_square, found.worst_relative_error):
        assert value >= 0

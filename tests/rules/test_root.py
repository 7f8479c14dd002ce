"""The scalar search: on the safe side of the root, within noise of it, whatever the slopes say."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resispec_core.rules.root import MAX_STEPS, root_of

NOISE = 1e-14


@given(st.floats(1, 3), st.sampled_from([1.0, 1e-3, 0.0, -1.0, 1e6]), st.sampled_from([1.0, 2.0, 3.0]))
def test_float_roots_are_on_the_safe_side(root, claimed_slope, start):
    """x − root, with the true slope, a rough one, none, or a wrong one, from any start."""
    found, steps = root_of(lambda x: (x - root, claimed_slope), 1.0, 3.0, start=start, noise=NOISE)
    assert 0 <= found - root <= NOISE or (found == 3.0 and root > 3 - NOISE)
    assert steps < MAX_STEPS


@pytest.mark.parametrize(
    ("value", "taken"), [(0.0, True), (NOISE, True), (1.1 * NOISE, False), (-1e-30, False)]
)
def test_the_start_is_taken_where_its_value_is_noise(value, taken):
    found, steps = root_of(lambda x: (value if x == 2 else x - 2, 1.0), 1.0, 3.0, start=2.0, noise=NOISE)
    assert (found == 2.0 and steps == 1) == taken


@pytest.mark.parametrize("noise", [None, NOISE])
def test_a_value_below_zero_is_never_taken(noise):
    """A step up at 2, with nothing in between: the bracket closes from above it."""
    found, _ = root_of(
        lambda x: (-1 if x < 2 else 1, 0), Fraction(1), Fraction(3), start=Fraction(3), noise=noise
    )
    assert 2 <= found <= 2 + Fraction(1, 10**15)


def test_rational_roots_of_piecewise_linear_functions_are_exact():
    kinks = [(Fraction(3, 2), Fraction(1, 3)), (Fraction(5, 2), Fraction(2, 7))]

    def at(x):
        value = Fraction(-2, 5) + sum(slope * max(x - at_, 0) for at_, slope in kinks)
        return value, sum((slope for at_, slope in kinks if x > at_), Fraction(0))

    found, steps = root_of(at, Fraction(1), Fraction(4), start=Fraction(4), noise=None)
    assert at(found)[0] == 0
    assert steps <= 4

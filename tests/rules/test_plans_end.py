"""Plans that search for a scalar end on every law, however badly the scalar is conditioned."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings

from resispec_core import audit, law, parse_law
from resispec_core.arrays import as_float
from resispec_core.rules import KSeq, Shaped
from resispec_core.rules.root import float_noise
from resispec_core.testing.strategies import verification_cases


def test_shaped_ends_where_the_shortfall_is_below_an_ulp():
    """T once stayed where it was for ever: its shortfall, twice over, did not move it."""
    p, q = as_float(parse_law("4/23,9/23,10/23")), as_float(parse_law("10/23,9/23,4/23"))
    plan = Shaped().plan(p, q, 3)
    exact = Shaped().plan(parse_law("4/23,9/23,10/23"), parse_law("10/23,9/23,4/23"), 3)
    assert plan.left[-1] >= 0
    # What is left at the end is aimed at half the noise of the sums, and T is that much higher over a slope of 0.6.
    assert 0 <= plan.total - float(exact.total) <= 2 * float_noise(3)


def test_k_seq_ends_where_the_overlap_is_below_eps():
    """With β = 1e-30, 1 − (1 − β)³ is 0 in float64 and the float root is 1; the true one is nearly 3."""
    tiny = Fraction(1, 10**30)
    p, q = law([1 - tiny, tiny]), law([0, 1])
    plan = KSeq().plan(p, q, 3)
    assert 2 < plan.gamma <= 3
    assert audit("k-seq", p, q, 3).verdict == "EXACT"


@settings(max_examples=1000)
@given(verification_cases(5, 4, rational=False))
def test_float_plans_end_and_are_valid(case):
    plan = Shaped().plan(case.target, case.draft, case.candidates)
    # In units of rounding of the sums: 1 ≤ T ≤ n.
    room = 64 * np.finfo(float).eps
    assert 1 - room <= plan.total <= case.candidates + room
    assert plan.left[-1] >= 0
    assert 1 <= KSeq().plan(case.target, case.draft, case.candidates).gamma <= case.candidates

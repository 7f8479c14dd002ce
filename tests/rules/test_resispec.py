"""The per-rejection invariants of the published proxy, and what Eq. 13 breaks."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from resispec_core import InputError, audit, parse_law
from resispec_core.rules import ResiSpec
from resispec_core.rules.resispec import REDISTRIBUTIONS
from resispec_core.testing.strategies import verification_cases


def broken_invariants(shaped, p, q, token):
    """Names of the invariants of theory, Definition 1 and Proposition 1, that fail."""
    r, s, k, z = shaped.residual_mass, shaped.slack, shaped.proxy, shaped.budget
    holds = {
        "proxy sums to 1": k.sum() == 1,
        "proxy is non-negative": (k >= 0).all(),
        "proxy meets the draft at the rejected token": k[token] == q[token],
        "residual within [0, p]": (r >= 0).all() and (r <= p).all(),
        "residual sums to Z": r.sum() == z,
        "slack sums to Z": s.sum() == z,
        "disjoint supports": (r * s == 0).all(),
        "r = (p - k)+": (np.maximum(p - k, 0) == r).all(),
    }
    return [name for name, true in holds.items() if not true]


@pytest.mark.parametrize("redistribution", REDISTRIBUTIONS)
def test_invariants_hold_for_every_rejection(redistribution):
    rule, seen = ResiSpec(redistribution), []

    @settings(max_examples=400)
    @given(verification_cases(6, 1))
    def check(case):
        for token in np.flatnonzero(case.draft > case.target):
            shaped = rule.shape(case.target, case.draft, token)
            assert broken_invariants(shaped, case.target, case.draft, token) == []
            seen.append(token)

    check()
    assert len(seen) > 300


def test_the_invariants_catch_a_proxy_that_keeps_the_rejected_token():
    p, q = parse_law("1/3,1/3,1/3"), parse_law("1/2,2/5,1/10")
    shaped = ResiSpec().shape(p, q, 0)
    shaped.residual_mass[0] = Fraction(1, 100)
    assert "residual sums to Z" in broken_invariants(shaped, p, q, 0)
    assert "disjoint supports" in broken_invariants(shaped, p, q, 0)


def test_eq13_breaks_the_sums_and_nothing_else_here():
    p, q = parse_law("9/10,1/10"), parse_law("19/20,1/20")
    shaped = ResiSpec("waterfill", "eq13").shape(p, q, 0)
    assert shaped.budget == Fraction(18, 19)
    assert broken_invariants(shaped, p, q, 0) == ["proxy sums to 1", "residual sums to Z", "slack sums to Z"]


def test_redistributions_differ():
    p, q = parse_law("1/5,2/5,2/5"), parse_law("3/5,3/10,1/10")
    laws = {tuple(audit(ResiSpec(kind), p, q).law) for kind in REDISTRIBUTIONS}
    assert len(laws) == 3


@pytest.mark.parametrize("options", [{"redistribution": "even"}, {"budget": "global"}])
def test_unknown_options_are_named(options):
    with pytest.raises(InputError, match=next(iter(options.values()))):
        ResiSpec(**options)

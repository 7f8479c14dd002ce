"""Cases for the certified bracket, and what each is held against: the rational enumeration."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from resispec_core import rules
from resispec_core.arrays import as_float
from resispec_core.audit.certify import Budget, certify, groups
from resispec_core.audit.enumerate import enumerate_paths
from resispec_core.drafts import draw_mode
from resispec_core.laws import as_rational
from resispec_core.testing.strategies import law_pairs

REDISTRIBUTIONS = ("proportional", "waterfill", "uniform")
WHOLE = Budget(pairs=10**6, cells=10**7, heavy=10**4)
SMALL = (
    Budget(0, 0, 0),
    Budget(3, 4, 1),
    Budget(8, 6, 0),
    Budget(100, 2, 0),
    Budget(100, 12, 2),
    Budget(2, 1000, 9),
)
"""Tails, chords and groups on the smallest rows."""
SLACK = 1e-15
"""A float of the rational total variation is off by this much at most."""


class Truth(NamedTuple):
    total_variation: Fraction
    parts: tuple[np.ndarray, ...]


def budgets():
    return st.sampled_from(SMALL)


def published_cases():
    """(target, draft, n): V ≤ 8; fewer tokens where there are more candidates, for the rational paths' sake."""
    sizes = st.sampled_from([(8, 1), (8, 2), (4, 3), (5, 3), (6, 2)])
    return sizes.flatmap(
        lambda size: st.tuples(law_pairs(1, size[0], rational=False), st.booleans()).map(
            lambda drawn: (sharpened(drawn[0][0]) if drawn[1] else drawn[0][0], drawn[0][1], size[1])
        )
    )


def sharpened(law):
    """Most of the mass moved to the last token: then every other token has a small p/q, and paths are long."""
    law = law / 16
    law[-1] += 15 / 16
    return law


def truth(redistribution, target, draft, candidates):
    """The law of the rule on the float laws' exact values, every path summed in rationals."""
    iid = draw_mode("iid")
    exact = as_rational(target)
    rule = rules.ResiSpec(redistribution)
    found = enumerate_paths(
        rule, exact, as_rational(draft), candidates, drawn_as=iid, assumed=iid, max_cells=10**9
    )
    return Truth(abs(found.law - exact).sum() / 2, found.parts)


def assert_holds(redistribution, target, draft, candidates, budget, true):
    """The true value lies in the bracket, and the true law above the sub-law.

    Under the whole budget; under ``budget``; and once more with pairs of any probability in one group, which on so few
    tokens the budget alone seldom asks for.
    """
    for given, coarseness in ((WHOLE, None), (budget, None), (budget, (60,))):
        with pytest.MonkeyPatch.context() as patch:
            if coarseness is not None:
                patch.setattr(groups, "COARSENESS", coarseness)
            found = certify(rules.ResiSpec(redistribution), target, draft, candidates, budget=given)
        assert found.low <= true.total_variation + SLACK, (given, found, true)
        assert true.total_variation <= found.high + SLACK, (given, found, true)
        law = as_float(sum(true.parts[1:], true.parts[0]))
        assert np.maximum(found.law_at_least - law, 0).sum() <= found.rounding, (given, found, law)
        assert found.law_at_least.sum() + found.unexplored <= 1 + found.rounding

"""Brackets on the shipped logits (V = 49,152): as narrow as docs/certified.md says, and inside what paths alone give.

By default the positions with the most and the fewest over-drafted pairs; RESISPEC_SLOW=1 takes all 28 (minutes).
"""

import os

import numpy as np
import pytest

from resispec_core import law_from_logits, rules
from resispec_core.audit import certify, closed_form
from resispec_core.audit.certify import Budget
from resispec_core.audit.certify.forms import published_rounding
from resispec_core.audit.distances import total_variation
from resispec_core.audit.enumerate import enumerate_paths
from resispec_core.audit.marginal import rounding_bound
from resispec_core.drafts import draw_mode
from resispec_core.llama.store import sample_store

EVERY = os.environ.get("RESISPEC_SLOW") == "1"
WIDEST = 13
PLACES = range(28) if EVERY else (0, 11, WIDEST, 17)
WIDTHS = {1: 1e-8, 2: 1e-3, 3: 1e-2}
IID = draw_mode("iid")
every_position = pytest.mark.skipif(
    not EVERY, reason="minutes: set RESISPEC_SLOW=1 to run on all 28 positions"
)


def laws(place):
    return tuple(law_from_logits(row) for row in sample_store().row(place))


@pytest.mark.parametrize("redistribution", ["proportional", "waterfill"])
@pytest.mark.parametrize("place", PLACES)
def test_the_width_at_every_n(place, redistribution):
    p, q = laws(place)
    for candidates, allowed in WIDTHS.items():
        found = certify(rules.ResiSpec(redistribution), p, q, candidates)
        assert 0 <= found.low <= found.high <= 1
        assert found.width <= allowed, (candidates, found.width)


@pytest.mark.parametrize("redistribution", ["proportional", "waterfill"])
@pytest.mark.parametrize("place", PLACES)
def test_one_candidate_agrees_with_the_closed_form(place, redistribution):
    """docs/closed_forms.md, by other sums in another order."""
    p, q = laws(place)
    found = certify(rules.ResiSpec(redistribution), p, q, 1)
    law = closed_form.first_stage_law(p, q, redistribution)
    assert abs(law - found.law_at_least).sum() < 1e-11
    true = total_variation(law, p)
    assert found.low <= true <= found.high


@pytest.mark.parametrize("redistribution", ["proportional", "waterfill", "uniform"])
@pytest.mark.parametrize("place", PLACES[::2] if EVERY else (9,))
def test_the_bracket_lies_inside_that_of_the_heaviest_paths(place, redistribution):
    """The paths run through the rule itself: an implementation that shares no line with the sums."""
    p, q = laws(place)
    rule = rules.ResiSpec(redistribution)
    for candidates in (2, 3) if EVERY else (3,):
        paths = enumerate_paths(
            rule, p, q, candidates, drawn_as=IID, assumed=IID, max_cells=64 * p.size, partial=True
        )
        found = certify(rule, p, q, candidates)
        excess = np.maximum(paths.law - p, 0).sum()
        allowed = found.rounding + paths.rounding
        if redistribution != "uniform":
            assert excess <= found.high + allowed
            assert np.maximum(paths.law - found.law_at_least, 0).sum() <= found.unexplored + allowed
        assert found.low <= excess + paths.unexplored + allowed


def test_a_larger_budget_narrows_the_widest_position():
    p, q = laws(WIDEST)
    small, usual = (certify("resispec", p, q, 2, budget=b) for b in (Budget(pairs=2**14), Budget()))
    assert usual.width < small.width / 2
    assert small.low <= usual.low + usual.rounding
    assert usual.high <= small.high + usual.rounding


@every_position
def test_the_two_brackets_of_an_exact_rule_meet_at_zero():
    for place in PLACES:
        for name in ("specinfer", "shaped", "k-seq"):
            found = certify(name, *laws(place), 3)
            assert found.low == 0
            assert found.high <= 4 * rounding_bound(49_152, 3, np.zeros(1))


def test_the_stated_rounding_is_far_below_the_widths():
    assert published_rounding(49_152 + 2**18, 2) < 1e-8
    assert published_rounding(49_152 + 2**18 + 2**20, 3) < 1e-7

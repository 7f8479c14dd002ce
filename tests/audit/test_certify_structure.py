"""Which structure each rule is certified by: exact rules come out at rounding level where a form is documented."""

import numpy as np
import pytest

from resispec_core.audit import certify
from resispec_core.audit.certify.bracket import outward

MERGED = "paths merged by stage (the residual ignores the rejected token)"
SELECTED = "law of the selected candidate"
PAIR = "closed form for two candidates without replacement"
FORMS = [
    ("specinfer", "iid", 2, MERGED),
    ("specinfer", "top-k", 2, MERGED),
    ("specinfer", "greedy", 2, MERGED),
    ("k-seq", "iid", 3, MERGED),
    ("shaped", "iid", 2, MERGED),
    ("specinfer", "without-replacement", 2, PAIR),
    ("shaped-without-replacement", "without-replacement", 2, PAIR),
    ("optimal", "iid", 1, SELECTED),
    ("optimal", "iid", 3, SELECTED),
    ("ranked", "without-replacement", 2, SELECTED),
]


@pytest.mark.parametrize(("rule", "draw", "candidates", "method"), FORMS)
def test_exact_rules_are_certified_exact_at_any_vocabulary(rule, draw, candidates, method):
    p, q = np.random.default_rng(1).dirichlet(np.full(300, 0.3), size=2)
    found = certify(rule, p, q, candidates, draw=draw)
    assert found.method == method
    assert found.unexplored == 0
    assert found.low == 0
    assert found.high < 1e-12
    assert np.abs(found.law_at_least - p).sum() <= 2 * found.rounding
    assert found.width == found.high - found.low


def test_a_rule_without_a_form_has_its_heaviest_paths_counted():
    p, q = np.random.default_rng(1).dirichlet(np.full(300, 0.3), size=2)
    found = certify("target-match", p, q, 2)
    assert found.method == "the 32 heaviest rejection paths of each stage"
    assert found.low == 0
    assert found.high == pytest.approx(found.unexplored, abs=1e-12)
    assert found.law_at_least.sum() == pytest.approx(1 - found.unexplored, abs=1e-12)


def test_both_ends_move_outwards_within_zero_and_one():
    assert outward(0.25, 0.5, 0.125) == (0.125, 0.625)
    assert outward(0.0625, 0.9375, 0.125) == (0.0, 1.0)

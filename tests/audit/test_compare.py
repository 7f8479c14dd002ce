"""Comparisons: every number is that of the audits, and what relates rows to one another is right."""

from fractions import Fraction

import numpy as np
import pytest

from resispec_core import audit, parse_law
from resispec_core.audit.compare import baselines, compare, relate
from resispec_core.rules import rule

PAIRS = [
    (parse_law("1/3,1/3,1/3"), parse_law("1/2,2/5,1/10")),
    (parse_law("1/10,1/5,3/10,2/5"), parse_law("2/5,3/10,1/5,1/10")),
]
RULES = ("specinfer", "shaped", "optimal", "resispec", "deterministic")


@pytest.fixture(scope="module")
def rows():
    return {(row.rule, row.candidates): row for row in compare(RULES, PAIRS, (1, 2, 3))}


def test_acceptance_and_verdict_are_those_of_the_audits(rows):
    for (name, n), row in rows.items():
        reports = [audit(name, *pair, n) for pair in PAIRS]
        assert row.law.mean_acceptance == pytest.approx(
            np.mean([float(r.acceptance) for r in reports]), abs=1e-15
        )
        assert row.law.verdict == ("BIASED" if name == "resispec" else "EXACT")


def test_the_gap_runs_from_specinfer_to_the_ceiling(rows):
    assert rows["specinfer", 2].gap_closed == 0
    assert rows["optimal", 2].gap_closed == pytest.approx(1, abs=1e-12)
    assert 0.5 < rows["shaped", 3].gap_closed < 1
    assert rows["resispec", 2].gap_closed > 1
    assert rows["shaped", 1].gap_closed is None
    assert rows["deterministic", 2].gap_closed is None


def test_efficiency_is_the_gain_per_added_candidate(rows):
    gain = rows["shaped", 3].law.mean_acceptance - rows["shaped", 2].law.mean_acceptance
    assert rows["shaped", 3].efficiency == pytest.approx(gain, abs=1e-15)
    assert rows["shaped", 1].efficiency is None
    skipped = compare(["shaped"], PAIRS, (1, 3))
    assert skipped[1].efficiency == pytest.approx(
        (rows["shaped", 3].law.mean_acceptance - rows["shaped", 1].law.mean_acceptance) / 2, abs=1e-15
    )


def test_a_wrong_baseline_would_show(rows):
    """The planted fault: the ceiling of another n as the lower end."""
    base = baselines(PAIRS, (1, 2, 3))
    wrong = relate([rows["shaped", 2]], {2: base[1]})[0]
    assert wrong.gap_closed != rows["shaped", 2].gap_closed


@pytest.mark.parametrize("name", RULES)
def test_verify_takes_the_stated_number_of_coins(name):
    kind = rule(name)
    coins = [Fraction(1, 3)] * kind.coins(2)
    assert 0 <= kind.verify(*PAIRS[0], [0, 1], coins).token < 3
    with pytest.raises(ValueError, match="coins given"):
        kind.verify(*PAIRS[0], [0, 1], [*coins, Fraction(1, 3)])

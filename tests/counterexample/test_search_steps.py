"""The steps of the search and of shrinking, against their definitions."""

from fractions import Fraction
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resispec_core.audit.search import Case, _merged, _scaled, _smaller, rounded, shrink, worsen
from resispec_core.audit.verdict import Verdict
from resispec_core.errors import InputError
from resispec_core.testing.strategies import law_pairs


@settings(max_examples=100)
@given(law_pairs(1, 6), st.integers(2, 12))
def test_a_rounded_law_is_the_nearest_one(pair, denominator):
    """No other law in multiples of 1/d is closer in TV: moving one unit between two tokens does not help."""
    for row in pair:
        found = rounded(tuple(row), denominator)
        assert sum(found) == 1
        assert all(entry >= 0 and (entry * denominator).denominator == 1 for entry in found)
        gap = sum(abs(a - b) for a, b in zip(found, row, strict=True))
        for giver in range(len(found)):
            for taker in range(len(found)):
                if giver != taker and found[giver] > 0:
                    other = list(found)
                    other[giver] -= Fraction(1, denominator)
                    other[taker] += Fraction(1, denominator)
                    assert sum(abs(a - b) for a, b in zip(other, row, strict=True)) >= gap


@settings(max_examples=60)
@given(law_pairs(2, 5), st.integers(1, 3))
def test_every_step_gives_two_laws_and_no_more_candidates(pair, candidates):
    case = Case(tuple(pair[0]), tuple(pair[1]), candidates, None)
    steps = list(_smaller(case))
    assert (steps[0] == (case.target, case.draft, candidates - 1)) == (candidates > 1)
    sizes = {len(p) for p, _, _ in steps}
    assert sizes == ({len(pair[0]), len(pair[0]) - 1} if len(pair[0]) > 2 else {len(pair[0])})
    for p, q, n in steps:
        assert len(p) == len(q)
        assert sum(p) == sum(q) == 1
        assert min(*p, *q) >= 0
        assert 1 <= n <= candidates


def test_merging_and_scaling():
    row = tuple(Fraction(k, 10) for k in (1, 2, 3, 4))
    assert _merged(row, 1) == (Fraction(1, 10), Fraction(1, 2), Fraction(2, 5))
    assert _scaled(row[1:]) == tuple(Fraction(k, 9) for k in (2, 3, 4))


def report(gap, verdict=Verdict.BIASED):
    return SimpleNamespace(total_variation=gap, verdict=verdict)


def case_of(audit, p, q, n):
    return Case(p, q, n, audit(p, q, n))


UNEVEN = tuple(Fraction(k, 20) for k in (3, 4, 6, 7))


def test_shrinking_ends_at_the_smallest_case_that_keeps_a_quarter():
    """A fault of constant size shrinks to two tokens, one candidate and halves or one-hot rows."""

    def audit(p, q, n):
        return report(Fraction(1, 2))

    best = shrink(audit, case_of(audit, UNEVEN, UNEVEN[::-1], 3))
    assert best.size[:2] == (2, 1)
    assert best.size[2] <= 2


@pytest.mark.parametrize(("left", "kept"), [(Fraction(1, 8), 1), (Fraction(1, 9), 3)])
def test_what_keeps_less_than_a_quarter_is_not_taken(left, kept):
    def audit(p, q, n):
        return report(Fraction(1, 2) if n == 3 else left)

    assert shrink(audit, case_of(audit, UNEVEN, UNEVEN, 3)).candidates == kept


def test_what_is_not_biased_or_refused_is_not_taken():
    def audit(p, q, n):
        if len(p) == 2:
            raise InputError("too few tokens")
        return report(Fraction(1, 2), Verdict.BIASED if n > 1 else Verdict.INCONCLUSIVE)

    best = shrink(audit, case_of(audit, UNEVEN, UNEVEN, 3))
    assert best.size[:2] == (3, 2)


def test_worsening_never_loses_and_finds_more():
    """The fault's size is the target's first entry: from 3/20 it must grow, and the result is one of its audits."""

    def audit(p, q, n):
        assert sum(p) == sum(q) == 1
        return report(p[0])

    start = case_of(audit, UNEVEN, UNEVEN, 2)
    best = worsen(audit, start)
    assert best.report.total_variation == best.target[0] > Fraction(3, 20)
    assert best.candidates == 2
    assert worsen(audit, start).target == best.target
    assert worsen(audit, start, trials=0) is start
    assert worsen(audit, start, seed=1).target != best.target

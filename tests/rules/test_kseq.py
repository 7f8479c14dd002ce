"""K-SEQ's plan: γ is the root, β the acceptance of one candidate, and both number systems agree."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from resispec_core import audit, parse_law, rules
from resispec_core.audit import Verdict
from resispec_core.rules import kseq

PAIRS = [
    ("1/3,1/3,1/3", "1/2,2/5,1/10"),
    ("1/10,2/10,3/10,4/10", "4/10,3/10,2/10,1/10"),
    ("1/2,1/4,1/4", "0,1/2,1/2"),
    ("1/2,1/2", "1/2,1/2"),
]


@pytest.mark.parametrize(("target", "draft"), PAIRS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_plan(target: str, draft: str, n: int) -> None:
    p, q = parse_law(target), parse_law(draft)
    exact = rules.KSeq().plan(p, q, n)
    near = rules.KSeq().plan(p.astype(float), q.astype(float), n)
    assert exact.beta == np.minimum(q, p / exact.gamma).sum()
    assert 1 <= exact.gamma <= n
    # The definition: n candidates are worth γ of one, 1 − (1 − β)^n ≤ γβ, and a smaller γ is not enough.
    assert 1 - (1 - exact.beta) ** n <= exact.gamma * exact.beta
    smaller = exact.gamma - Fraction(1, 2**30)
    beta = np.minimum(q, p / smaller).sum()
    assert smaller < 1 or 1 - (1 - beta) ** n > smaller * beta
    # γ is an n-fold root where p = q: in floats far from sharp, though its acceptance is good to a few eps.
    assert abs(float(exact.gamma) - near.gamma) < (1e-7 if target == draft else 1e-11)
    assert near.gamma - (1 - (1 - near.beta) ** n) / near.beta >= -1e-15
    assert abs(float((1 - exact.beta) ** n) - (1 - near.beta) ** n) < 1e-11


@pytest.mark.parametrize(("target", "draft"), PAIRS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_grid_is_searched_from_any_guess(target: str, draft: str, n: int) -> None:
    p, q = parse_law(target), parse_law(draft)
    gamma = rules.KSeq().plan(p, q, n).gamma
    assert {kseq._on_grid(p, q, guess, n) for guess in (1.0, 1 + 1e-9, 1 + (n - 1) / 3, float(n))} == {gamma}
    assert kseq.GRID % gamma.denominator == 0


@pytest.mark.parametrize(("target", "draft"), PAIRS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_law_and_acceptance(target: str, draft: str, n: int) -> None:
    p, q = parse_law(target), parse_law(draft)
    report = audit("k-seq", p, q, n)
    beta = rules.KSeq().plan(p, q, n).beta
    assert report.verdict is Verdict.EXACT
    assert list(report.acceptance_by_candidate) == [beta * (1 - beta) ** index for index in range(n)]

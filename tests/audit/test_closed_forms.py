"""The O(V log V) forms of the published rule equal full enumeration, in rationals."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings

from resispec_core import audit
from resispec_core.audit import closed_form
from resispec_core.audit.enumerate import enumerate_paths
from resispec_core.drafts import draw_mode
from resispec_core.rules import ResiSpec
from resispec_core.testing.strategies import verification_cases

IID = draw_mode("iid")


def enumerated(case, candidates, redistribution, budget="local"):
    rule = ResiSpec(redistribution, budget)
    return enumerate_paths(rule, case.target, case.draft, candidates, drawn_as=IID, assumed=IID)


@pytest.mark.parametrize("redistribution", ["proportional", "waterfill"])
def test_the_law_at_one_candidate(redistribution):
    @settings(max_examples=400)
    @given(verification_cases(6, 1))
    def check(case):
        form = closed_form.first_stage_law(case.target, case.draft, redistribution)
        assert form.tolist() == enumerated(case, 1, redistribution).law.tolist()

    check()


@pytest.mark.parametrize("redistribution", ["proportional", "waterfill", "uniform"])
def test_the_acceptance_of_candidate_two(redistribution):
    @settings(max_examples=300)
    @given(verification_cases(6, 1))
    def check(case):
        form = closed_form.second_acceptance(case.target, case.draft)
        assert form.tolist() == enumerated(case, 2, redistribution).parts[1].tolist()

    check()


@settings(max_examples=300)
@given(verification_cases(6, 1))
def test_eq13_leaves_out_exactly_what_it_says(case):
    left = closed_form.rejections(case.target, case.draft, "eq13").left_out
    form = closed_form.first_stage_law(case.target, case.draft, "waterfill", "eq13")
    full = enumerated(case, 1, "waterfill", "eq13").law
    assert form.sum() + left == 1
    assert (full >= form).all()


def test_forgetting_the_zeroed_entry_is_caught(monkeypatch):
    """The planted fault: prefix sums that forget x ≠ y."""
    whole = closed_form._minimum_sums

    def forgetful(target, draft, found, levels, weights):
        own = weights * np.minimum(levels * draft[found.tokens], target[found.tokens])
        sums = whole(target, draft, found, levels, weights)
        sums[found.tokens] = sums[found.tokens] + own
        return sums

    monkeypatch.setattr(closed_form, "_minimum_sums", forgetful)
    p = np.array([Fraction(1, 3)] * 3)
    q = np.array([Fraction(1, 2), Fraction(2, 5), Fraction(1, 10)])
    assert closed_form.second_acceptance(p, q).sum() != Fraction(89, 100) - Fraction(23, 30)


@settings(max_examples=300)
@given(verification_cases(5, 3))
def test_a_partial_sum_brackets_the_true_law(case):
    assume(case.target.size > 1)
    rule = ResiSpec("proportional")
    options = {"drawn_as": IID, "assumed": IID}
    full = enumerate_paths(rule, case.target, case.draft, case.candidates, **options)
    part = enumerate_paths(
        rule, case.target, case.draft, case.candidates, max_cells=case.target.size, partial=True, **options
    )
    assert (part.law <= full.law).all()
    assert part.law.sum() + part.unexplored == 1


@pytest.mark.parametrize("redistribution", ["proportional", "waterfill"])
def test_the_law_at_one_candidate_is_complete_at_a_real_vocabulary(redistribution):
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.full(49_152, 0.05), size=2)
    report = audit(ResiSpec(redistribution), p, q, 1)
    assert report.unexplored == 0
    assert report.distances is not None
    # The law is a law to within the stated rounding; a lost or doubled sum would show here.
    assert abs(report.law.sum() - 1) <= 2 * report.rounding < 1e-9

"""The strategies reach the corners they promise, and what they find shrinks to something readable."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from resispec_core import InputError, audit, law, parse_law, rules
from resispec_core.drafts import DRAW_MODES, draw_mode
from resispec_core.laws import law as checked_law
from resispec_core.testing import VerificationCase, float_laws, law_pairs, rational_laws, verification_cases

SEARCH = settings(
    max_examples=500, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@settings(max_examples=500)
@given(rational_laws(1, 6, max_weight=12))
def test_rational_laws_are_laws_with_small_denominators(row):
    assert checked_law(row) is not None
    assert all(isinstance(x, Fraction) and x.denominator <= 6 * 12 for x in row)


@settings(max_examples=500)
@given(float_laws(1, 6))
def test_float_laws_are_laws(row):
    assert row.dtype == np.float64
    assert law(row).tolist() == row.tolist()


@settings(max_examples=200)
@given(rational_laws(1, 6, allow_zeros=False), float_laws(1, 6, allow_zeros=False))
def test_full_support_on_request(exact, floating):
    assert (exact > 0).all()
    # A subnormal weight beside others may round to zero when divided by their sum; anything larger may not.
    assert (floating > 0).sum() >= 1


@pytest.mark.parametrize("rational", [True, False])
@pytest.mark.parametrize(
    "corner",
    [
        lambda p, q: p.size == 1,
        lambda p, q: p.size > 1 and (p == q).all(),
        lambda p, q: p.size > 1 and 0 < abs(p - q).sum() < 1e-9,
        lambda p, q: p.size > 1 and (p * q == 0).all(),
        lambda p, q: p.size > 2 and (q == 1).any() and not (p == q).all(),
        lambda p, q: p.size > 2 and (p == 1).any() and not (p == q).all(),
        lambda p, q: p.size > 2 and (p == q[::-1]).all() and not (p == q).all(),
        lambda p, q: p.size > 2 and ((p == 0) & (q > 0)).any() and ((q == 0) & (p > 0)).any(),
        lambda p, q: p.size == 5 and np.unique(p).size < 5 and (p > 0).all(),
    ],
    ids=[
        "one token",
        "equal",
        "near",
        "disjoint",
        "point draft",
        "point target",
        "reversed",
        "zeros",
        "ties",
    ],
)
def test_every_corner_is_reached(rational, corner):
    find(law_pairs(1, 5, rational=rational), lambda pair: bool(corner(*pair)), settings=SEARCH)


def test_the_search_can_fail():
    """The planted fault: a corner that does not exist is not found."""
    with pytest.raises(NoSuchExample):
        find(law_pairs(2, 3), lambda pair: pair[0].size == 4, settings=SEARCH)


def test_subnormal_masses_are_reached():
    found = find(float_laws(2, 4), lambda row: bool(((row > 0) & (row < 1e-308)).any()), settings=SEARCH)
    assert found.size == 2


@pytest.mark.parametrize("name", DRAW_MODES)
def test_cases_ask_for_no_more_candidates_than_the_draft_gives(name):
    mode = draw_mode(name)

    @settings(max_examples=200)
    @given(verification_cases(4, 4, draws=name))
    def check(case):
        mode.check(case.draft, case.candidates)
        assert case.target.size == case.draft.size <= 4
        assert 1 <= case.candidates <= 4

    check()


def test_the_bias_of_the_published_rule_shrinks_to_a_readable_case():
    case = find(
        verification_cases(5, 3),
        lambda case: audit("resispec", case.target, case.draft, case.candidates).verdict == "BIASED",
        settings=SEARCH,
    )
    assert case.candidates == 1
    assert case.target.size <= 3
    assert max(x.denominator for x in [*case.target, *case.draft]) <= 6


class Lenient(rules.SpecInfer):
    """Accepts one percent too much."""

    name = "lenient"

    def accept(self, stage):
        return np.minimum(super().accept(stage) * Fraction(101, 100), Fraction(1))


@pytest.mark.parametrize("rational", [True, False])
def test_a_one_percent_fault_is_found_within_a_hundred_examples(rational):
    def biased(case):
        rule = Lenient()
        if not rational:
            rule.accept = lambda stage: np.minimum(rules.SpecInfer.accept(rule, stage) * 1.01, 1.0)
        return audit(rule, case.target, case.draft, case.candidates).verdict == "BIASED"

    find(
        verification_cases(5, 3, rational=rational),
        biased,
        settings=settings(SEARCH, max_examples=100, phases=[Phase.generate]),
    )


def test_a_case_prints_as_something_to_paste():
    case = VerificationCase(parse_law("1/3,2/3"), parse_law("1/2,1/2"), 2)
    assert repr(case) == "VerificationCase(parse_law('1/3,2/3'), parse_law('1/2,1/2'), candidates=2)"
    again = eval(repr(case), {"VerificationCase": VerificationCase, "parse_law": parse_law})
    assert again.target.tolist() == case.target.tolist()
    floats = VerificationCase(law([0.25, 0.75]), law([0.5, 0.5]), 1)
    assert repr(floats) == "VerificationCase(law([0.25, 0.75]), law([0.5, 0.5]), candidates=1)"


@settings(max_examples=50)
@given(st.sampled_from([(0, 3), (3, 2), (-1, 1)]))
def test_impossible_sizes_are_refused_at_once(sizes):
    for strategy in (rational_laws, float_laws, law_pairs):
        with pytest.raises(InputError, match="pass 1 <= min_size <= max_size"):
            strategy(*sizes)

"""Budgets: a refusal that says what is needed, or a bracket that holds the true value; never silence."""

from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings

from resispec_core import BudgetExceededError, audit, parse_law, rules
from resispec_core.audit import Verdict
from resispec_core.audit.enumerate import can_merge, enumerate_paths
from resispec_core.drafts import draw_mode
from resispec_core.errors import InputError
from resispec_core.testing.strategies import verification_cases

IID = draw_mode("iid")
P, Q = parse_law("1/10,1/5,3/10,2/5"), parse_law("2/5,3/10,1/5,1/10")


def test_the_refusal_says_what_was_needed():
    with pytest.raises(BudgetExceededError) as refused:
        enumerate_paths(rules.ResiSpec(), P, Q, 3, drawn_as=IID, assumed=IID, max_cells=4)
    message = str(refused.value)
    assert "2 rejection paths are live after candidate 1 of 3 at V = 4" in message
    assert "8 cells, over the budget of 4" in message
    assert "partial=True" in message


def test_audit_refuses_when_no_partial_answer_is_wanted(monkeypatch):
    monkeypatch.setattr(import_module("resispec_core.audit.pair"), "HEAVY_PATHS", 1)
    with pytest.raises(BudgetExceededError, match="over the budget of 4"):
        audit(rules.ResiSpec("uniform"), P, Q, 3, max_cells=4, partial=False)


@pytest.mark.parametrize("redistribution", ["proportional", "waterfill", "uniform"])
@pytest.mark.parametrize("budget", ["local", "eq13"])
def test_a_bracket_holds_the_true_total_variation(redistribution, budget, monkeypatch):
    """Only one path is followed a stage, so that nearly every case leaves mass unexplored."""
    monkeypatch.setattr(import_module("resispec_core.audit.pair"), "HEAVY_PATHS", 1)
    rule, brackets = rules.ResiSpec(redistribution, budget), []

    @settings(max_examples=200)
    @given(verification_cases(5, 3, min_vocab=2))
    def check(case):
        full = audit(rule, case.target, case.draft, case.candidates)
        part = audit(rule, case.target, case.draft, case.candidates, max_cells=1)
        low, high = part.total_variation_bracket
        assert low <= full.total_variation <= high
        assert (part.law <= full.law).all()
        assert part.acceptance <= full.acceptance
        assert part.law.sum() + part.unexplored == 1
        assert part.verdict is not Verdict.EXACT or full.verdict is Verdict.EXACT
        if part.unexplored > 0:
            brackets.append((low, high))
            assert part.distances is None
            assert part.verdict in (Verdict.BIASED, Verdict.INCONCLUSIVE)

    check()
    assert len(brackets) >= 20


def test_a_rational_bracket_is_rational_however_small_the_distance():
    """A total variation of 1e-400 is zero in float64, and must not be called EXACT for that."""

    class Nudge(rules.SpecInfer):
        name = "nudge"

        def reject(self, stage, token):
            residual = super().reject(stage, token)
            tiny = Fraction(1, 10**400)
            return residual * (1 - tiny) + tiny / stage.target.shape[-1]

    report = audit(Nudge(), P, Q, 1)
    assert report.verdict is Verdict.BIASED
    assert report.total_variation_bracket == (report.total_variation, report.total_variation)
    assert 0 < report.total_variation < Fraction(1, 10**400)
    assert report.bound == report.total_variation


def test_light_dropped_paths_are_not_rounded_to_none():
    """Two rejections of mass 1/4 and 1e-17: dropping the second must show, though 1/4 + 1e-17 = 1/4."""
    p, q = np.array([0.25, 0.75, 1e-17]), np.array([0.5, 0.5, 2e-17])
    found = enumerate_paths(rules.ResiSpec(), p, q, 2, drawn_as=IID, assumed=IID, max_cells=3, partial=True)
    assert found.unexplored == pytest.approx(1e-17, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("specinfer", "iid"),
        ("specinfer", "top-k"),
        ("specinfer", "greedy"),
        ("shaped", "iid"),
        ("k-seq", "iid"),
    ],
)
def test_merged_paths_give_the_full_sum(name, draw):
    rule, mode = rules.rule(name), draw_mode(draw)

    @settings(max_examples=150)
    @given(verification_cases(5, 3, draws=draw))
    def check(case):
        options = {"drawn_as": mode, "assumed": mode}
        full = enumerate_paths(rule, case.target, case.draft, case.candidates, **options)
        merged = enumerate_paths(rule, case.target, case.draft, case.candidates, merge=True, **options)
        assert merged.law.tolist() == full.law.tolist()
        assert merged.accepted == full.accepted
        assert merged.reached == full.reached

    check()


def test_rules_that_look_at_the_rejected_token_are_not_merged():
    with pytest.raises(InputError, match="its paths cannot be merged"):
        enumerate_paths(rules.ResiSpec(), P, Q, 2, drawn_as=IID, assumed=IID, merge=True)
    without = draw_mode("without-replacement")
    assert not can_merge(rules.SpecInfer(), without, without)


class TokenReader(rules.SpecInfer):
    """Declares that its residual ignores the rejected token, and leans towards it."""

    name = "token-reader"

    def reject(self, stage, token):
        rejected = np.asarray(token)[..., None] == np.arange(stage.target.shape[-1])
        return (stage.target + np.where(rejected, Fraction(1), Fraction(0))) / 2


def test_a_false_declaration_is_refused_where_it_would_be_used():
    with pytest.raises(InputError, match="declares residual_uses_token = False"):
        audit(TokenReader(), P, Q, 2, max_cells=1)
    assert audit(TokenReader(), P, Q, 2).verdict is Verdict.BIASED


def test_fewer_than_one_candidate_is_refused():
    for wrong in (0, -1):
        with pytest.raises(InputError, match=f"candidates is {wrong}; at least one token must be drafted"):
            audit("specinfer", P, Q, wrong)

"""The certified bracket holds the rational value, whatever the budget, and closes as the budget grows."""

import numpy as np
import pytest
from certify_cases import REDISTRIBUTIONS, WHOLE, assert_holds, budgets, published_cases, truth
from hypothesis import given, settings
from hypothesis import strategies as st

from resispec_core import InputError, audit, parse_law, rules
from resispec_core.arrays import as_float
from resispec_core.audit import Verdict, certify
from resispec_core.audit.certify import groups
from resispec_core.audit.certify.chain import chain_marginal
from resispec_core.audit.certify.row import row_of
from resispec_core.audit.certify.spread import Spread
from resispec_core.audit.enumerate import enumerate_paths
from resispec_core.drafts import draw_mode
from resispec_core.laws import as_rational
from resispec_core.testing.strategies import law_pairs, verification_cases

IID = draw_mode("iid")


@pytest.mark.parametrize("redistribution", REDISTRIBUTIONS)
def test_the_bracket_holds_the_rational_value(redistribution):
    """700 pairs a redistribution, V ≤ 8, n ≤ 3, each under the whole budget and under one that is too small."""

    @settings(max_examples=700)
    @given(published_cases(), budgets())
    def check(case, budget):
        target, draft, candidates = case
        assert_holds(redistribution, target, draft, candidates, budget, truth(redistribution, *case))

    check()


@pytest.mark.parametrize("redistribution", ["proportional", "waterfill"])
def test_the_width_is_rounding_under_the_whole_budget(redistribution):
    """Subnormal q are left out: a water level above 2^1000 is not followed (docs/certified.md)."""

    @settings(max_examples=300)
    @given(law_pairs(1, 8, rational=False), st.integers(1, 3))
    def check(pair, candidates):
        if pair[1][pair[1] > 0].min() < 1e-290:
            return
        found = certify(rules.ResiSpec(redistribution), *pair, candidates, budget=WHOLE)
        assert found.unexplored == 0
        assert found.width <= 2 * found.rounding + 1e-15

    check()


@pytest.mark.parametrize("redistribution", ["proportional", "waterfill"])
@pytest.mark.parametrize("field", ["pairs", "cells", "heavy"])
def test_the_width_shrinks_with_every_part_of_the_budget(redistribution, field):
    """Over a ladder from nothing to enough, on softmax laws of 200 tokens whose whole budget is not small."""
    ladder = {"pairs": (0, 300, 3000, 10**6), "cells": (0, 300, 30_000, 10**7), "heavy": (0, 2, 20, 200)}[
        field
    ]
    whole = WHOLE if field != "heavy" else WHOLE._replace(cells=3000)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        p, q = rng.dirichlet(np.full(200, 0.05), size=2)
        p, q = (0.9 * law + 0.1 / 200 for law in (p, q))
        rule = rules.ResiSpec(redistribution)
        limit = certify(rule, p, q, 3, budget=WHOLE)
        found = [certify(rule, p, q, 3, budget=whole._replace(**{field: size})) for size in ladder]
        for part in found:
            assert np.maximum(part.law_at_least - limit.law_at_least, 0).sum() <= limit.rounding
            assert part.low - part.rounding <= limit.low <= limit.high <= part.high + part.rounding
        widths = [bracket.width for bracket in found]
        assert widths[-1] < widths[0] or widths[0] < 1e-8, widths
        if field != "heavy":
            assert widths[-1] < 1e-8


def test_the_acceptance_of_every_candidate_is_the_same_for_all_redistributions():
    """docs/certified.md, in rationals: r ≥ min(W·q, p) with equality where ρ < W, so only W counts."""

    @settings(max_examples=80)
    @given(verification_cases(5, 3))
    def check(case):
        found = [audit(rules.ResiSpec(name), case.target, case.draft, 3) for name in REDISTRIBUTIONS]
        assert found[0].acceptance_by_candidate == found[1].acceptance_by_candidate
        assert found[0].acceptance_by_candidate == found[2].acceptance_by_candidate

    check()


@settings(max_examples=150)
@given(law_pairs(1, 8, rational=False), st.lists(st.tuples(st.floats(0, 4), st.floats(0, 1)), max_size=6))
def test_a_spread_is_the_sum_written_out(pair, levels):
    row = row_of(*pair)
    spread = Spread(row)
    level, weight = (np.array([entry[place] for entry in levels]) for place in (0, 1))
    spread.add(level, weight)
    spread.add_target(0.25)
    spread.remove(np.array([0]), np.array([0.125]))
    p, q = row.target[:-1], row.draft[:-1]
    expected = sum((w * np.minimum(c * q, p) for c, w in zip(level, weight, strict=True)), 0.25 * p)
    expected[0] -= 0.125
    assert spread.law() == pytest.approx(np.maximum(expected, 0), abs=1e-14)


@pytest.mark.parametrize("name", ["specinfer", "k-seq", "shaped", "typical", "autoregressive"])
def test_the_chain_law_is_that_of_the_enumeration(name):
    """Against every path in floats: both are within the rounding bound of the true law."""

    @settings(max_examples=150)
    @given(law_pairs(1, 8, rational=False), st.integers(1, 3))
    def check(pair, candidates):
        rule = rules.rule(name)
        found = chain_marginal(rule, *pair, candidates, IID, IID)
        listed = enumerate_paths(rule, *pair, candidates, drawn_as=IID, assumed=IID)
        assert abs(found.law - listed.law).sum() / 2 <= found.rounding + listed.rounding
        assert found.accepted == pytest.approx(listed.accepted, abs=2 * found.rounding)

    check()


@pytest.mark.parametrize("name", ["specinfer", "k-seq", "shaped", "optimal", "typical"])
def test_other_rules_hold_the_rational_value_too(name):
    @settings(max_examples=60)
    @given(law_pairs(2, 5, rational=False), st.integers(1, 2))
    def check(pair, candidates):
        rule = rules.rule(name)
        found = certify(rule, *pair, candidates)
        # A lossy rule compares p with a threshold; rounding p may move it across, so floats are its reference.
        exact = pair if rule.lossy else tuple(map(as_rational, pair))
        true = float(audit(rule, *exact, candidates).total_variation)
        assert found.low <= true + 1e-15
        assert true <= found.high + 1e-15
        assert found.unexplored == 0

    check()


def test_a_rule_without_structure_is_followed_along_its_heaviest_paths():
    rng = np.random.default_rng(4)
    p, q = rng.dirichlet(np.full(30, 0.3), size=2)
    true = audit("target-match", p, q, 2).total_variation
    few, many = (certify("target-match", p, q, 2, budget=WHOLE._replace(paths=n)) for n in (2, 40))
    assert 0 < many.unexplored < few.unexplored or many.unexplored == 0 < few.unexplored
    for found in (few, many):
        assert found.low <= true + 1e-15 <= found.high + 2e-15
    assert few.method == "the 2 heaviest rejection paths of each stage"


def test_a_false_declaration_is_refused():
    class Liar(rules.ResiSpec):
        name = "liar"
        residual_uses_token = False

    p, q = (as_float(parse_law(text)) for text in ("1/3,1/3,1/3", "1/2,2/5,1/10"))
    with pytest.raises(InputError, match="declares residual_uses_token = False"):
        certify(Liar(), p, q, 2)


def test_a_subclass_of_the_published_rule_is_not_taken_for_it():
    class Other(rules.ResiSpec):
        name = "other"

        def reject(self, stage, token):
            return stage.target

    p, q = (as_float(parse_law(text)) for text in ("1/3,1/3,1/3", "1/2,2/5,1/10"))
    assert certify(Other(), p, q, 2).method == "every path"
    assert certify(rules.ResiSpec(), p, q, 2).method == "structure of the published rule"


def test_rational_laws_are_sent_to_the_audit():
    with pytest.raises(InputError, match=r"audit\(\.\.\.\) is exact on rational ones"):
        certify("resispec", parse_law("1/2,1/2"), parse_law("1/3,2/3"))


def test_the_audit_uses_it_past_its_budget():
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.full(60, 0.2), size=2)
    whole, cut = audit("resispec", p, q, 3), audit("resispec", p, q, 3, max_cells=100)
    assert cut.method.startswith("structure of the published rule")
    assert cut.verdict is Verdict.BIASED
    assert cut.unexplored < 1e-8
    assert cut.bound - cut.total_variation_bracket[0] < 1e-7
    assert cut.total_variation == pytest.approx(whole.total_variation, abs=1e-8)
    assert cut.witness is not None


def test_blocks_do_not_change_the_sum(monkeypatch):
    """The third rejections are worked on in stretches; their length is no part of the result."""
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.full(50, 0.2), size=2)
    whole = certify("resispec", p, q, 3).law_at_least
    monkeypatch.setattr(groups, "BLOCK", 7)
    assert certify("resispec", p, q, 3).law_at_least == pytest.approx(whole, abs=1e-14)

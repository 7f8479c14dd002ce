"""Rankings over draws without replacement: exact whatever they are, and near the ceiling on real rows."""

import numpy as np
import pytest
from hypothesis import given, settings

from resispec_core import InputError, audit, law_from_logits, parse_law, rules
from resispec_core.audit.ceiling import without_replacement_ceiling
from resispec_core.audit.pair_form import pair_marginal
from resispec_core.drafts import draw_mode
from resispec_core.inclusion import top_ranked_law
from resispec_core.llama.store import sample_store
from resispec_core.rules import ranked
from resispec_core.testing.strategies import verification_cases


def every_case_is_exact(examples=1000):
    @settings(max_examples=examples, report_multiple_bugs=False)
    @given(verification_cases(5, 4, draws="without-replacement"))
    def check(case):
        report = audit("ranked", case.target, case.draft, case.candidates)
        assert report.method == "every path"
        assert report.verdict == "EXACT"
        assert report.law.tolist() == case.target.tolist()
        assert report.acceptance <= report.ceiling
        plan = rules.Ranked().plan(case.target, case.draft, case.candidates)
        assert report.acceptance == np.minimum(case.target, plan.proxy).sum()

    check()


def test_every_case_is_exact():
    every_case_is_exact()


def test_a_wrong_selection_law_is_biased(monkeypatch):
    whole = ranked.top_ranked_law

    def of_one_fewer(draft, order, candidates):
        return whole(draft, order, max(1, candidates - 1))

    monkeypatch.setattr(ranked, "top_ranked_law", of_one_fewer)
    with pytest.raises(AssertionError):
        every_case_is_exact(examples=100)


@settings(max_examples=300)
@given(verification_cases(5, 4, draws="without-replacement"))
def test_the_law_of_the_highest_ranked(case):
    order = np.flatnonzero(case.draft > 0)[::-1]
    ranks = {token: place for place, token in enumerate(order.tolist())}
    listed = 0 * case.draft
    for tokens, weight in draw_mode("without-replacement").tuples(case.draft, case.candidates):
        listed[max(tokens, key=ranks.__getitem__)] += weight
    assert top_ranked_law(case.draft, order, case.candidates).tolist() == listed.tolist()


@settings(max_examples=500)
@given(verification_cases(6, 4, draws="without-replacement", rational=False))
def test_floats_keep_the_target_to_rounding(case):
    report = audit("ranked", case.target, case.draft, case.candidates)
    assert report.verdict == "EXACT_WITHIN"
    assert report.total_variation <= report.rounding + 1e-12  # quadrature: 1e-13 an end of W, at n = 3 and 4
    assert report.acceptance <= report.ceiling + report.rounding + 1e-12


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.95), (0.6, 0.9)])
def test_real_rows_close_nearly_the_whole_gap(temperature, share):
    store, found = sample_store(), []
    for row in range(0, len(store), 2):
        p, q = (law_from_logits(side, temperature=temperature) for side in store.row(row))
        base = pair_marginal(rules.SpecInfer(), p, q).acceptance
        plan = rules.Ranked().plan(p, q, 2)
        assert plan.proxy.sum() == pytest.approx(1, abs=1e-11)
        found.append((base, np.minimum(p, plan.proxy).sum(), without_replacement_ceiling(p, q, 2)))
    base, reached, top = np.mean(found, axis=0)
    assert all(row[1] <= row[2] + 1e-11 for row in found)
    assert (reached - base) / (top - base) >= share


def test_a_real_row_is_audited_in_closed_form():
    p, q = (law_from_logits(side) for side in sample_store().row(3))
    report = audit("ranked", p, q, 2)
    assert report.verdict == "EXACT_WITHIN"
    assert report.acceptance <= report.ceiling
    assert "random order" in report.method


def test_one_ranking_is_enough_to_be_exact():
    p, q = parse_law("1/10,1/5,3/10,2/5"), parse_law("2/5,3/10,1/5,1/10")
    assert audit(rules.Ranked(orders=1), p, q, 2).verdict == "EXACT"
    with pytest.raises(InputError, match="at least one ranking"):
        rules.Ranked(orders=0)


def test_too_many_rational_sets_are_refused():
    law = parse_law(",".join(["1/800"] * 800))
    with pytest.raises(InputError, match="pass float laws"):
        rules.Ranked().plan(law, law, 3)

"""Two candidates without replacement: the closed form against every path, and at real vocabularies."""

import numpy as np
import pytest
from hypothesis import given, settings

from resispec_core import audit, law_from_logits, rules
from resispec_core.audit import pair_form
from resispec_core.audit.enumerate import enumerate_paths
from resispec_core.drafts import draw_mode
from resispec_core.llama.store import sample_store
from resispec_core.testing.strategies import verification_cases

WITHOUT = draw_mode("without-replacement")
RULES = (rules.SpecInfer, rules.ShapedWithoutReplacement)


def form_equals_enumeration(rule, examples=400):
    seen = []

    @settings(max_examples=examples, report_multiple_bugs=False)
    @given(verification_cases(6, 2, min_vocab=2, draws="without-replacement"))
    def check(case):
        if np.count_nonzero(case.draft) < 2:
            return
        form = pair_form.pair_marginal(rule, case.target, case.draft)
        full = enumerate_paths(rule, case.target, case.draft, 2, drawn_as=WITHOUT, assumed=WITHOUT)
        for ours, listed in zip(form.parts, full.parts, strict=True):
            assert ours.tolist() == listed.tolist()
        assert form.accepted == full.accepted
        assert sum(form.reached) == sum(full.reached)
        seen.append(case)

    check()
    assert len(seen) > examples / 3


@pytest.mark.parametrize("rule", RULES)
def test_the_form_equals_enumeration(rule):
    form_equals_enumeration(rule())


@pytest.mark.parametrize("wrong", ["sums_before", "sums_from"])
def test_a_wrong_sum_is_noticed(monkeypatch, wrong):
    whole = getattr(pair_form, wrong)

    def forgets_one(values):
        return whole(np.where(np.arange(values.size) == values.size // 2, 0 * values, values))

    monkeypatch.setattr(pair_form, wrong, forgets_one)
    with pytest.raises(AssertionError):
        form_equals_enumeration(rules.SpecInfer())


def test_subclasses_are_not_taken_for_their_parents():
    class Other(rules.SpecInfer):
        name = "other"

    q = np.array([0.5, 0.3, 0.2])
    assert pair_form.pair_marginal(Other(), q, q) is None


@pytest.mark.parametrize("rule", [kind.name for kind in RULES])
@pytest.mark.parametrize("row", range(0, 28, 9))
def test_exact_on_real_rows(rule, row):
    p, q = (law_from_logits(side) for side in sample_store().row(row))
    report = audit(rule, p, q, 2, draw="without-replacement")
    assert report.verdict == "EXACT_WITHIN"
    assert report.unexplored == 0
    assert report.total_variation < 1e-12
    assert report.acceptance <= report.ceiling + report.rounding

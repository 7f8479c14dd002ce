"""The checks check: planted faults in the published rule and in the auditors must be noticed."""

from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings

from resispec_core import audit, parse_law
from resispec_core.arrays import as_float, at, column, normalise
from resispec_core.audit import Verdict, closed_form, enumerate_paths
from resispec_core.audit.marginal import rounding_bound
from resispec_core.drafts import draw_mode
from resispec_core.laws import as_rational
from resispec_core.rules import ResiSpec, SpecInfer
from resispec_core.testing.strategies import law_pairs, verification_cases

CEILING = import_module("resispec_core.audit.ceiling")  # the function of that name shadows the module
IID = draw_mode("iid")
THIRDS = (parse_law("1/3,1/3,1/3"), parse_law("1/2,2/5,1/10"))
CAPPED = (parse_law("1/5,1/10,7/10"), parse_law("3/5,3/10,1/10"))  # Z·q exceeds p at token 1
STATED = {  # theory, section 2
    "proportional": parse_law("107/282,46/105,1801/9870").tolist(),
    "waterfill": parse_law("7/18,7/15,13/90").tolist(),
}


# The published rule. It is biased already, so a verdict alone cannot tell a twin from the original: each twin
# must break an invariant of Proposition 1, or miss the laws the theory states.


def broken(rule, p, q):
    """Invariants of Definition 1 and Proposition 1 that fail after some rejection on (p, q)."""
    names = set()
    for token in np.flatnonzero(q > p):
        shaped = rule.shape(p, q, token)
        r, s, k, z = shaped.residual_mass, shaped.slack, shaped.proxy, q[token] - p[token]
        holds = {
            "Σk = 1": k.sum() == 1,
            "k ≥ 0": (k >= 0).all(),
            "k(x₀) = q(x₀)": k[token] == q[token],
            "0 ≤ r ≤ p": (r >= 0).all() and (r <= p).all(),
            "Σr = Z": r.sum() == z,
            "r·s = 0": (r * s == 0).all(),
            "Σs = Z": s.sum() == z,
        }
        names |= {name for name, true in holds.items() if not true}
    return names


class KeepsTheToken(ResiSpec):
    """Redistributes into the rejected token too."""

    def shape(self, target, draft, token):
        shaped = super().shape(target, draft, token)
        kept = np.minimum(shaped.budget * at(draft, token), at(target, token))
        np.put_along_axis(shaped.residual_mass, column(token), column(kept), axis=-1)
        return type(shaped)(**{**vars(shaped), "proxy": target - shaped.residual_mass + shaped.slack})


class NoSlack(ResiSpec):
    """Forgets s: the proxy lacks what the rejected token should have."""

    def shape(self, target, draft, token):
        shaped = super().shape(target, draft, token)
        return type(shaped)(
            **{**vars(shaped), "slack": 0 * shaped.slack, "proxy": target - shaped.residual_mass}
        )


class NoRedistribution(ResiSpec):
    """Stops after the projection: the deficit is lost."""

    def _redistribute(self, projected, capacity, weights, attainable, missing):
        return projected


class IgnoresCapacity(ResiSpec):
    """The ideal residual Z·q without the cap p."""

    def _redistribute(self, projected, capacity, weights, attainable, missing):
        return np.asarray(attainable)[..., None] * normalise(weights, fallback=weights)


class WrongShare(ResiSpec):
    """Shares the deficit in proportion to p, not to the capacity left."""

    def _redistribute(self, projected, capacity, weights, attainable, missing):
        return projected + np.asarray(missing)[..., None] * normalise(capacity, fallback=capacity)


class DoubleBudget(ResiSpec):
    """Z twice what the rejection leaves."""

    def shape(self, target, draft, token):
        shaped = super().shape(target, draft, token)
        return type(shaped)(**{**vars(shaped), "slack": 2 * shaped.slack})


TWINS = [KeepsTheToken, NoSlack, NoRedistribution, IgnoresCapacity, WrongShare, DoubleBudget]


def test_the_original_breaks_nothing_and_has_the_stated_laws():
    for redistribution, stated in STATED.items():
        rule = ResiSpec(redistribution)
        assert broken(rule, *THIRDS) == broken(rule, *CAPPED) == set()
        assert audit(rule, *THIRDS).law.tolist() == stated


@pytest.mark.parametrize("redistribution", STATED)
@pytest.mark.parametrize("twin", TWINS)
def test_a_twin_of_the_published_rule_breaks_an_invariant_or_a_stated_law(twin, redistribution):
    rule = twin(redistribution)
    report = audit(rule, *THIRDS)
    assert report.verdict is Verdict.BIASED
    assert broken(rule, *CAPPED) or report.law.tolist() != STATED[redistribution]


@pytest.mark.parametrize(
    ("twin", "invariant"),
    [
        (KeepsTheToken, "r·s = 0"),
        (NoSlack, "k(x₀) = q(x₀)"),
        (NoRedistribution, "Σr = Z"),
        (IgnoresCapacity, "0 ≤ r ≤ p"),
        (DoubleBudget, "Σs = Z"),
    ],
)
def test_the_invariant_that_breaks_is_the_one_that_should(twin, invariant):
    assert invariant in broken(twin(), *CAPPED)


class GlobalAccept(ResiSpec):
    """Compares every candidate with the target's row, not with the residual of its own path."""

    def accept(self, stage):
        return super().accept(type(stage)(**{**vars(stage), "residual": stage.target}))


def test_a_twin_that_reads_the_wrong_row_differs_from_the_second_candidate_on():
    assert audit(GlobalAccept(), *THIRDS, 1).law.tolist() == audit(ResiSpec(), *THIRDS, 1).law.tolist()
    assert audit(GlobalAccept(), *THIRDS, 2).law.tolist() != parse_law("691/1786,16/35,9749/62510").tolist()


# SpecInfer twins that are wrong in ways a mean acceptance rate does not show.


class WrongDraftRow(SpecInfer):
    """Uses the first candidate's draft law at every stage, though candidates are drawn w/o replacement."""

    name = "wrong-draft-row"

    def plan(self, target, draft, candidates):
        return draft

    def reject(self, stage, token):
        first = np.broadcast_to(stage.plan, stage.residual.shape)
        return super().reject(type(stage)(**{**vars(stage), "draft": first}), token)


class AbsoluteResidual(SpecInfer):
    name = "absolute-residual"

    def reject(self, stage, token):
        return normalise(np.abs(stage.residual - stage.draft), fallback=stage.residual)


class TargetOverTwo(SpecInfer):
    """Halves every acceptance: fewer tokens accepted, and the residual no longer fits."""

    name = "half-acceptance"

    def accept(self, stage):
        return super().accept(stage) / 2


class RemovesTheToken(SpecInfer):
    """Zeroes the rejected token in the residual, as is right only for deterministic candidates."""

    name = "removes-the-token"

    def accept(self, stage):
        return stage.residual


@pytest.mark.parametrize("twin", [WrongDraftRow, AbsoluteResidual, TargetOverTwo, RemovesTheToken])
def test_twins_of_specinfer_are_biased_and_the_original_is_not(twin):
    p, q = parse_law("1/10,1/5,3/10,2/5"), parse_law("2/5,3/10,1/5,1/10")
    report = audit(twin(), p, q, 3, draw="without-replacement")
    assert report.verdict is Verdict.BIASED
    assert 0 < report.total_variation_bracket[0] == report.total_variation
    assert audit(SpecInfer(), p, q, 3, draw="without-replacement").verdict is Verdict.EXACT


def test_a_bias_of_one_in_a_million_is_found_in_rationals_and_in_floats():
    """The smallest fault planted here; float64 sees it because the bound is a thousand million times smaller."""

    class Slight(SpecInfer):
        name = "slight"

        def accept(self, stage):
            return super().accept(stage) * (1 - stage.residual[..., :1] * 0 - 2**-20)

    p, q = parse_law("1/10,1/5,3/10,2/5"), parse_law("2/5,3/10,1/5,1/10")
    for pair in ((p, q), (as_float(p), as_float(q))):
        report = audit(Slight(), *pair, 2)
        assert report.verdict is Verdict.BIASED
        assert 1e-8 < float(report.total_variation) < 1e-5


# The auditors.


def assert_noticed(monkeypatch, module, name, fault, check):
    """``check`` passes, and fails once ``module.name`` is the faulty version."""
    check()
    with monkeypatch.context() as patch:
        patch.setattr(module, name, fault)
        with pytest.raises(AssertionError):
            check()


def closed_form_agrees():
    @settings(max_examples=100)
    @given(verification_cases(5, 1))
    def check(case):
        for redistribution in ("proportional", "waterfill"):
            form = closed_form.first_stage_law(case.target, case.draft, redistribution)
            rule = ResiSpec(redistribution)
            full = enumerate_paths(rule, case.target, case.draft, 1, drawn_as=IID, assumed=IID)
            assert form.tolist() == full.law.tolist()

    check()


def test_closed_forms_with_a_planted_fault_disagree(monkeypatch):
    whole = closed_form._minimum_sums

    def forgets_own(target, draft, found, levels, weights):
        own = weights * np.minimum(levels * draft[found.tokens], target[found.tokens])
        sums = whole(target, draft, found, levels, weights)
        sums[found.tokens] = sums[found.tokens] + own
        return sums

    def splits_late(table, levels, side="right"):
        return np.full(np.shape(levels), len(table))

    assert_noticed(monkeypatch, closed_form, "_minimum_sums", forgets_own, closed_form_agrees)
    assert_noticed(monkeypatch, closed_form.np, "searchsorted", splits_late, closed_form_agrees)


def ceiling_has_its_known_values():
    """SpecInfer at n = 1 is optimal, so its acceptance is the ceiling: neither below nor above."""

    @settings(max_examples=100)
    @given(law_pairs(1, 5))
    def check(pair):
        assert CEILING.acceptance_ceiling(*pair, 1) == np.minimum(*pair).sum()
        assert CEILING.acceptance_ceiling(*THIRDS, 2) == Fraction(257, 300)

    check()


def test_a_ceiling_with_a_planted_fault_is_noticed(monkeypatch):
    def unsorted(target, draft, candidates):
        gaps = np.concatenate([0 * target[:1], np.cumsum(target) - np.cumsum(draft) ** candidates])
        return gaps.min(), np.arange(0)

    def one_fewer(target, draft, candidates, whole=CEILING.prefix_gap):
        return whole(target, draft, max(1, candidates - 1))

    for fault in (unsorted, one_fewer):
        assert_noticed(monkeypatch, CEILING, "prefix_gap", fault, ceiling_has_its_known_values)


@pytest.mark.parametrize("twin", [*TWINS, GlobalAccept])
def test_the_paper_check_passes_every_twin_while_the_law_is_wrong(twin):
    """Why it is no evidence: KL exactly 0 for rules with planted faults, whose true TV is positive."""
    for pair in (THIRDS, CAPPED):
        report = audit(twin(), *pair, 2)
        assert report.paper_check_kl == 0.0
        assert report.total_variation > 0


def float_error_is_within(bound, rule):
    """The float law against the rational law of the same rule, on moderately sized vocabularies."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p, q = rng.dirichlet(np.full(12, 0.3), size=2)
        found = audit(rule, p, q, 2).law
        true = audit(ResiSpec(), as_rational(p), as_rational(q), 2).law
        if float(abs(as_float(true) - found).sum() / 2) > bound(12, 2, p):
            return False
    return True


class SinglePrecision(ResiSpec):
    """Rounds every residual to float32, as a kernel might."""

    def reject(self, stage, token):
        rows = super().reject(stage, token)
        if rows.dtype == object:
            return rows
        rows = rows.astype(np.float32).astype(np.float64)
        return rows / rows.sum(axis=-1, keepdims=True)


def test_the_rounding_bound_is_neither_broken_nor_blind():
    assert float_error_is_within(rounding_bound, ResiSpec())
    assert not float_error_is_within(rounding_bound, SinglePrecision())
    assert not float_error_is_within(lambda *sizes: rounding_bound(*sizes) / 1e4, ResiSpec())


def test_the_witness_path_can_be_replayed_by_hand():
    """The mass of the reported path, recomputed from the rule alone."""

    @settings(max_examples=100)
    @given(verification_cases(4, 2))
    def check(case):
        rule = ResiSpec()
        report = audit(rule, case.target, case.draft, case.candidates)
        path = report.witness
        if path is None:
            assert report.verdict is Verdict.EXACT
            return
        residual, mass = case.target, Fraction(1)
        for token in path.rejected:
            assert case.draft[token] > residual[token]
            mass *= case.draft[token] - residual[token]
            residual = rule.shape(residual, case.draft, token).residual_mass / at(
                case.draft - residual, np.array(token)
            )
        end = min(case.draft[path.token], residual[path.token]) if path.accepted else residual[path.token]
        assert path.mass == mass * end
        assert report.law[path.token] > case.target[path.token]

    check()

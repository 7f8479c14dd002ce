"""Residual shaping without replacement: exact, and for two candidates the best sequential rule."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from resispec_core import audit, law_from_logits, parse_law, rules
from resispec_core.audit.ceiling import without_replacement_ceiling
from resispec_core.audit.pair_form import pair_marginal
from resispec_core.llama.store import sample_store
from resispec_core.rules import shaped_without
from resispec_core.rules.base import Stage
from resispec_core.testing.strategies import verification_cases

NAME = "shaped-without-replacement"


def every_case_is_exact(examples=1000):
    @settings(max_examples=examples, report_multiple_bugs=False)
    @given(verification_cases(5, 4, draws="without-replacement"))
    def check(case):
        p, q, n = case.target, case.draft, case.candidates
        report = audit(NAME, p, q, n)
        assert report.verdict == "EXACT"
        assert report.law.tolist() == p.tolist()
        assert report.acceptance <= report.ceiling
        if n == 2:
            assert report.acceptance >= audit("specinfer", p, q, 2, draw="without-replacement").acceptance
        if n > 1:
            assert report.acceptance >= audit(NAME, p, q, n - 1).acceptance

    check()


def test_every_case_is_exact():
    every_case_is_exact()


def test_broken_twins_are_biased(monkeypatch):
    whole = shaped_without.shape_pair

    def takes_too_much(target, draft):
        pair = whole(target, draft)
        return pair and pair._replace(second=0 * pair.second + 1)

    def ends_at_target(target, draft):
        pair = whole(target, draft)
        return pair and pair._replace(rest=target)

    def waits_too_little(target, draft):
        pair = whole(target, draft)
        return pair and pair._replace(refused=pair.refused / 2)

    for twin in (takes_too_much, ends_at_target, waits_too_little):
        monkeypatch.setattr(shaped_without, "shape_pair", twin)
        with pytest.raises(AssertionError):
            every_case_is_exact(examples=200)


def best_sequential(p, q):
    """The linear program over every rule that decides on the first candidate before it sees the second."""
    size = p.size
    pairs = [(x, y) for x in range(size) for y in range(size) if x != y]
    # Variables: accepted first mass of x, then accepted second mass of y after x.
    limits, sides = [], []
    for place, (x, y) in enumerate(pairs):
        row = np.zeros(size + len(pairs))
        row[size + place], row[x] = 1, q[y] / (1 - q[x])
        limits.append(row)
        sides.append(q[x] * q[y] / (1 - q[x]))
    for y in range(size):
        row = np.zeros(size + len(pairs))
        row[y] = 1
        row[size:] = [seen == y for _, seen in pairs]
        limits.append(row)
        sides.append(p[y])
    bounds = [(0, mass) for mass in q] + [(0, None)] * len(pairs)
    return -linprog(-np.ones(size + len(pairs)), A_ub=limits, b_ub=sides, bounds=bounds).fun


def test_no_sequential_rule_accepts_more_of_two_candidates():
    rng = np.random.default_rng(8)
    below = 0
    for _ in range(80):
        size = int(rng.integers(2, 7))
        p, q = rng.dirichlet(np.full(size, rng.choice([0.3, 1, 4])), size=2)
        q = (q + 1e-6) / (q + 1e-6).sum()
        best = best_sequential(p, q)
        # HiGHS solves to a feasibility of 1e-7 a constraint at worst.
        assert abs(audit(NAME, p, q, 2).acceptance - best) < 1e-6
        below += audit("specinfer", p, q, 2, draw="without-replacement").acceptance < best - 1e-3
    assert below > 20


@settings(max_examples=1000)
@given(verification_cases(6, 4, draws="without-replacement", rational=False))
def test_floats_keep_the_target_to_rounding(case):
    report = audit(NAME, case.target, case.draft, case.candidates)
    assert report.verdict == "EXACT_WITHIN"
    assert report.total_variation <= report.rounding
    assert report.acceptance <= report.ceiling + report.rounding


def test_a_known_value():
    p, q = parse_law("1/10,1/5,3/10,2/5"), parse_law("2/5,3/10,1/5,1/10")
    report = audit(NAME, p, q, 2)
    assert report.verdict == "EXACT"
    assert (report.acceptance, report.ceiling) == (Fraction(277, 336), Fraction(701, 840))
    assert audit("specinfer", p, q, 2, draw="without-replacement").acceptance == Fraction(107, 140)


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.65), (0.6, 0.5)])
def test_real_rows_close_most_of_the_gap_for_two_candidates(temperature, share):
    store, found = sample_store(), []
    for row in range(len(store)):
        p, q = (law_from_logits(side, temperature=temperature) for side in store.row(row))
        accepted = [
            pair_marginal(rule(), p, q).acceptance
            for rule in (rules.SpecInfer, rules.ShapedWithoutReplacement)
        ]
        found.append((*accepted, without_replacement_ceiling(p, q, 2)))
    base, shaped, top = np.mean(found, axis=0)
    assert all(row[0] <= row[1] + 1e-12 and row[1] <= row[2] + 1e-12 for row in found)
    assert (shaped - base) / (top - base) >= share


def test_a_batch_is_what_its_paths_are_one_by_one():
    """Paths A, B, A: a plan is used again only where the path before has the same rows."""
    rule, draft = rules.rule(NAME), parse_law("4/10,3/10,2/10,1/10")
    laws = [parse_law(f"1/10,{rest}") for rest in ("2/10,3/10,4/10", "4/10,4/10,1/10", "2/10,3/10,4/10")]
    rows = np.stack(laws)
    batch = rule.reject(Stage(rows, np.stack([draft] * 3), rows, 0, 3), np.array([0, 0, 0]))
    alone = [rule.reject(Stage(law, draft, law, 0, 3), np.array(0)) for law in laws]
    assert batch.tolist() == [row.tolist() for row in alone]
    assert alone[0].tolist() != alone[1].tolist()

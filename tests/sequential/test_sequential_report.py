"""Figures of a session worked out by hand, and how draws are asked for."""

import math

import numpy as np
import pytest

from resispec_core.audit import Verdict
from resispec_core.audit.sequential import (
    AlphaLedger,
    SequentialTest,
    evidence,
    log_e_values,
    sequential_audit,
    tv_bounds,
)

EVEN = np.array([0.5, 0.5])


def e_value(counts, target):
    """The mixture as it is documented, with factorials of real numbers from math.gamma."""
    total, terms = sum(counts), []
    for power in range(15):
        kappa = 4.0**power
        term = math.lgamma(kappa) - math.lgamma(kappa + total)
        for count, p in zip(counts, target, strict=True):
            if count:
                term += math.lgamma(kappa * p + count) - math.lgamma(kappa * p) - count * math.log(p)
        terms.append(math.exp(term))
    return sum(terms) / 15


@pytest.mark.parametrize("counts", [(1, 0, 0), (3, 1, 0), (0, 0, 9), (20, 30, 50)])
def test_the_mixture_written_out(counts):
    target = np.array([0.2, 0.3, 0.5])
    found = float(log_e_values(np.array(counts), target))
    assert found == pytest.approx(math.log(e_value(counts, target)), abs=1e-4)


@pytest.mark.parametrize("counts", [(3, 1), (40, 60), (500, 500)])
def test_the_bound_written_out(counts):
    """TV(f, p) + sqrt((KL(f | p) + (log(1/alpha) - log E) / t) / 2), at most 1."""
    total = sum(counts)
    f = np.array(counts) / total
    radius = float((f * np.log(f / EVEN)).sum()) + (math.log(100) - math.log(e_value(counts, EVEN))) / total
    expected = min(1.0, float(np.abs(f - EVEN).sum()) / 2 + math.sqrt(max(radius, 0) / 2))
    assert float(tv_bounds(np.array(counts), EVEN, 0.01)) == pytest.approx(expected, abs=1e-4)


def test_nothing_is_known_without_draws():
    report = SequentialTest(EVEN, 0.01).report("a note")
    assert (report.samples, report.refuted_above, report.total_variation) == (0, 1.0, 0.0)
    assert report.log_e == pytest.approx(0, abs=1e-6)
    assert report.verdict is Verdict.NOT_REFUTED
    assert report.notes == ("a note",)


def test_the_figures_of_a_report():
    test = SequentialTest([0.5, 0.5, 0.0], 0.01, name="it")
    assert not test.update([[0, 1], [0, 0]])
    report = test.report()
    assert report.counts == (3, 1, 0)
    assert report.samples == 4
    assert report.total_variation == 0.25
    assert report.e_value == pytest.approx(e_value((3, 1), EVEN), rel=1e-4)
    assert (report.exit_code, report.zero_mass) == (3, 0)
    assert str(report) == f"NOT REFUTED above TV {report.refuted_above:.2g}, e = {report.e_value:.2g}, n = 4"
    assert test.update([2])
    report = test.report()
    assert str(report) == "BIASED, 1 of 5 draws where the target has no mass"
    data = report.to_json()
    assert (data["e_value"], data["verdict"], data["counts"], data["zero_mass"]) == (
        "inf",
        "BIASED",
        [3, 1, 1],
        1,
    )
    assert report.exit_code == 1


def test_a_biased_report_names_the_level():
    test = SequentialTest(EVEN, 0.01)
    assert test.update(np.zeros(64, dtype=int))
    report = test.report()
    assert str(report) == f"BIASED at level 0.01, TV about 0.5, e = {report.e_value:.2g}, n = 64"
    assert report.e_value >= 100
    assert evidence([report, report]) == 2 * report.log_e
    assert evidence([]) == 0


def test_shares_of_a_family():
    ledger = AlphaLedger(0.06)
    assert [ledger.spend() for _ in range(3)] == pytest.approx([0.03, 0.01, 0.005], rel=1e-14)
    assert ledger.test(EVEN, name="fourth").alpha == pytest.approx(0.003, rel=1e-14)
    assert len(ledger.spent) == 4


def test_batches_grow_with_the_draws_made_and_end_at_the_limit():
    asked, seen = [], []

    def sample(count):
        asked.append(count)
        return np.arange(count) % 2

    report = sequential_audit(
        sample, EVEN, samples=1000, batch=100, progress=lambda r: seen.append(r.samples)
    )
    assert sum(asked) == report.samples == 1000
    assert asked[0] == 100
    assert min(asked[:-1]) >= 100
    assert max(asked) <= 250
    assert seen == np.cumsum(asked).tolist()
    assert report.subject == "sample"
    asked.clear()
    assert sequential_audit(sample, EVEN, samples=7, name="x").samples == 7
    assert asked == [7]

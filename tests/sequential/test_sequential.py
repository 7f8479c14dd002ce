"""The sequential test: a martingale of mean 1, false alarms within α at every stop, power, and what it says."""

from __future__ import annotations

import itertools
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from resispec_core.audit import Verdict
from resispec_core.audit.sequential import (
    AlphaLedger,
    SequentialTest,
    evidence,
    log_e_values,
    sequential_audit,
    tv_bounds,
)
from resispec_core.errors import InputError

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import sequential_power as benchmark

P = np.array([0.1, 0.2, 0.3, 0.4])
SESSIONS, ALPHA = 10_000, 0.01
MOST_ALARMS = int(stats.binom.isf(1e-9, SESSIONS, ALPHA))
"""More false alarms than this happen with probability 1e-9 where each session's rate is at most ALPHA."""


def outcomes(total: int, size: int):
    """Every vector of counts with this total."""
    for cuts in itertools.combinations(range(total + size - 1), size - 1):
        edges = (-1, *cuts, total + size - 1)
        yield [b - a - 1 for a, b in itertools.pairwise(edges)]


def null_mean(log_e, law: np.ndarray, total: int) -> float:
    counts = np.array(list(outcomes(total, law.size)))
    return float(np.sum(stats.multinomial.pmf(counts, total, law) * np.exp(log_e(counts, law))))


@pytest.mark.parametrize("law", [P, np.array([0.5, 0.5]), np.array([1e-9, 0.3, 0.7 - 1e-9])], ids=str)
@pytest.mark.parametrize("total", [1, 2, 7, 25])
def test_the_e_value_has_mean_1_under_the_target(law: np.ndarray, total: int) -> None:
    # 15 terms, each a few gammaln of values up to 1e10 with relative error 1e-16: 1e-5 with room.
    assert null_mean(log_e_values, law, total) == pytest.approx(1, abs=1e-5)


def test_the_check_of_the_mean_sees_a_maximised_likelihood_ratio() -> None:
    """The planted fault: the usual likelihood ratio, with the alternative fitted to the draws."""

    def fitted(counts: np.ndarray, law: np.ndarray) -> np.ndarray:
        share = counts / counts.sum(axis=1, keepdims=True)
        return np.where(counts > 0, counts * np.log(np.maximum(share, 1e-300) / law), 0).sum(axis=1)

    assert null_mean(fitted, P, 7) > 2


@pytest.mark.parametrize(
    "law",
    [P, np.array([0, 0.01, 0.0, 0.99]), np.append(np.full(49, 0.01), 0.51)],
    ids=["four", "masked", "fifty"],
)
def test_false_alarms_at_every_stop_stay_within_alpha(law: np.ndarray) -> None:
    rng = np.random.default_rng(5)
    highest, counts = np.zeros(SESSIONS), np.zeros((SESSIONS, law.size), dtype=np.int64)
    for step in (1, 1, 2, 4, 8, 30, 200, 2_000, 50_000, 10**6):
        counts += rng.multinomial(step, law, size=SESSIONS)
        highest = np.maximum(highest, log_e_values(counts, law))
    assert (highest >= math.log(1 / ALPHA)).sum() <= MOST_ALARMS


def test_the_same_check_sees_that_a_chi_square_test_may_not_be_looked_at_again() -> None:
    rates = benchmark.null_rates(SESSIONS, seed=3)
    assert rates["e-process, looked at every time"] * SESSIONS <= MOST_ALARMS
    assert rates["χ², looked at once, at the end"] * SESSIONS <= 2 * MOST_ALARMS
    assert rates["χ², looked at every time"] * SESSIONS > 5 * MOST_ALARMS


def test_the_bound_on_tv_holds_at_all_times_together() -> None:
    rng, q = np.random.default_rng(6), np.array([0.15, 0.2, 0.3, 0.35])
    wrong, counts = np.zeros(SESSIONS, dtype=bool), np.zeros((SESSIONS, 4), dtype=np.int64)
    for step in (1, 5, 20, 100, 1_000, 10_000, 100_000):
        counts += rng.multinomial(step, q, size=SESSIONS)
        bounds = tv_bounds(counts, P, ALPHA)
        wrong |= bounds < 0.05
    assert wrong.sum() <= MOST_ALARMS
    assert bounds.max() < 0.07  # and is narrow: TV is 0.05, the rest is what 111,126 draws leave open


@pytest.mark.parametrize("size", [0.1, 0.01, 0.001])
def test_draws_needed_are_those_of_a_chi_square_test_that_knows_the_bias(size: float) -> None:
    found = benchmark.power(size, 200, seed=4)
    assert found["median"] < 1.5 * found["χ² size"]
    assert found["90 %"] < 3 * found["χ² size"]
    assert found["χ² power"] > 0.8


@pytest.mark.parametrize(("mass", "alpha"), [(0.9999, 0.9), (0.99, 0.99), (0.95, 0.8)])
def test_the_bound_after_a_single_draw_is_known_in_closed_form(mass: float, alpha: float) -> None:
    """E = 1, the frequencies are a point mass, KL = -log p(x): so 1 - p(x) + sqrt((log(1/alpha) - log p(x)) / 2)."""
    bound = tv_bounds(np.array([1, 0]), np.array([mass, 1 - mass]), alpha)
    expected = 1 - mass + math.sqrt((math.log(1 / alpha) - math.log(mass)) / 2)
    assert expected < 1
    assert float(bound) == pytest.approx(expected, abs=1e-4)  # log E is right to 1e-4


def test_one_draw_of_a_masked_token_is_a_proof() -> None:
    test = SequentialTest([0.5, 0.5, 0.0], alpha=1e-9)
    assert not test.update([0, 1, 1])
    assert test.update([2])
    report = test.report()
    assert (report.verdict, report.e_value, report.zero_mass) == (Verdict.BIASED, math.inf, 1)
    assert str(report) == "BIASED, 1 of 4 draws where the target has no mass"
    assert report.to_json()["e_value"] == "inf"


def test_a_good_sampler_is_not_refuted_and_never_more() -> None:
    rng = np.random.default_rng(8)
    report = sequential_audit(lambda count: rng.choice(4, size=count, p=P), P, name="good")
    assert (report.verdict, report.exit_code, report.samples) == (Verdict.NOT_REFUTED, 3, 2**17)
    assert report.refuted_above < 0.01
    assert str(report).startswith(f"NOT REFUTED above TV {report.refuted_above:.2g}, e = ")
    assert "n = 131072" in str(report)


def test_a_biased_sampler_is_stopped_early() -> None:
    rng = np.random.default_rng(9)
    report = sequential_audit(lambda count: rng.choice(4, size=count, p=P[::-1]), P)
    assert (report.verdict, report.exit_code) == (Verdict.BIASED, 1)
    assert report.samples == 2**10
    assert "BIASED at level 0.001" in str(report)


def test_rejected_stays_rejected() -> None:
    test = SequentialTest([0.5, 0.5], alpha=0.01)
    assert test.update([0] * 30)
    test.update([1] * 30)
    assert test.rejected
    assert test.report().log_e < math.log(100)


def test_it_stops_where_every_bias_of_interest_would_have_been_seen() -> None:
    rng = np.random.default_rng(10)
    report = sequential_audit(lambda count: rng.choice(4, size=count, p=P), P, smallest=0.05)
    assert report.refuted_above <= 0.05
    assert report.samples < 2**14


def test_an_interrupt_leaves_a_valid_result() -> None:
    calls = []

    def sample(count: int) -> np.ndarray:
        calls.append(count)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return np.random.default_rng(11).choice(4, size=count, p=P)

    report = sequential_audit(sample, P)
    assert report.samples == sum(calls[:2])
    assert "interrupted" in report.notes[0]


def test_the_family_spends_no_more_than_alpha() -> None:
    ledger = AlphaLedger(0.01)
    shares = [ledger.test(P).alpha for _ in range(1000)]
    assert shares[:2] == [0.005, 0.01 / 6]
    assert 0.009 < sum(shares) < 0.01
    assert evidence([SequentialTest(P).report()] * 3) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: SequentialTest(P, alpha=0), "alpha is 0"),
        (lambda: AlphaLedger(2), "alpha is 2"),
        (lambda: SequentialTest([0.5, 0.4]), "target: probabilities sum to"),
        (lambda: SequentialTest(P).update([0, 4]), "token 4 is outside the target's vocabulary of 4"),
        (lambda: SequentialTest(P).update([-1]), "token -1 is outside"),
        (lambda: SequentialTest(P).update([0.5]), "dtype float64; give integer token ids"),
        (lambda: sequential_audit(lambda count: [0], P), r"sample\(1024\) returned 1 tokens"),
        (lambda: sequential_audit(lambda count: [0] * count, P, samples=0), "samples is 0"),
    ],
)
def test_bad_input_is_named(act, message: str) -> None:
    with pytest.raises(InputError, match=message):
        act()


def test_the_page_shows_a_real_run() -> None:
    page = benchmark.PAGE.read_text(encoding="utf-8")
    shown = page.partition("<!-- measured -->\n")[2].partition("<!-- /measured -->")[0]
    number = re.compile(r"\d[\d,]*(?:\.\d+)?")
    real = benchmark.tables()
    assert number.sub("#", shown) == number.sub("#", real)
    for one, other in zip(number.findall(shown), number.findall(real), strict=True):
        # Another NumPy may draw other sessions: a tenth is 3 standard errors of the mean of 1,000 stopping times.
        assert float(one.replace(",", "")) == pytest.approx(float(other.replace(",", "")), rel=0.1, abs=0.2)

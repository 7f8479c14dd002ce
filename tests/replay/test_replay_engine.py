"""The replay engine on exact samplers, on planted faults, and against the exhaustive audit of the rules."""

import os
from fractions import Fraction

import numpy as np
import pytest
import samplers_numpy
import samplers_torch

from resispec_core import audit, rules
from resispec_core.audit import Verdict
from resispec_core.audit.replay import Budget, LeakError, draw, replay_step, replay_verify
from resispec_core.audit.replay.patches import controlled
from resispec_core.audit.replay.tables import Markov, hard_pair
from resispec_core.errors import BudgetExceededError, InputError

P, Q = [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]
RATIONAL_P = [Fraction(k, 10) for k in (1, 2, 3, 4)]
RATIONAL_Q = RATIONAL_P[::-1]


@pytest.mark.parametrize("sampler", samplers_numpy.STYLES, ids=lambda sampler: sampler.__name__)
def test_exact_numpy_styles(sampler):
    report = replay_verify(sampler, P, Q)
    assert report.verdict in (Verdict.EXACT, Verdict.EXACT_WITHIN), str(report)
    assert report.total_variation < 1e-15
    assert report.monte_carlo > 0


@pytest.mark.parametrize("sampler", samplers_torch.STYLES, ids=lambda sampler: sampler.__name__)
@pytest.mark.parametrize("numbers", ["float32", "float64"])
def test_exact_torch_styles(sampler, numbers):
    report = replay_verify(sampler, P, Q, library="torch", numbers=numbers)
    assert report.verdict is Verdict.EXACT_WITHIN, str(report)
    assert report.total_variation < (1e-7 if numbers == "float32" else 1e-15)


def test_rational_rows_prove_exactness_with_difference_zero():
    report = replay_verify(samplers_numpy.recursive, RATIONAL_P, RATIONAL_Q, 2)
    assert report.verdict is Verdict.EXACT
    assert report.numbers == "rational"
    assert report.total_variation == 0


@pytest.mark.parametrize("rule", [rules.ResiSpec(), rules.SpecInfer()], ids=lambda rule: rule.name)
@pytest.mark.parametrize("candidates", [1, 2])
def test_replayed_rules_have_the_law_of_the_exhaustive_audit(rule, candidates):
    p, q = [Fraction(1, 3)] * 3, [Fraction(1, 2), Fraction(2, 5), Fraction(1, 10)]

    def verify(target, draft, drawn, rng):
        return rule.verify(target, draft, drawn, [rng.random() for _ in range(candidates + 1)]).token

    report = replay_verify(verify, p, q, candidates, numbers="rational", monte_carlo=0)
    exhaustive = audit(rule, p, q, candidates)
    assert [report.law.get((token,), 0) for token in range(3)] == exhaustive.law.tolist()
    assert report.verdict is exhaustive.verdict


def test_known_faulty_law_in_rationals():
    def verify(target, draft, drawn, rng):
        return rules.ResiSpec().verify(target, draft, drawn, [rng.random(), rng.random()]).token

    report = replay_verify(verify, [Fraction(1, 3)] * 3, [Fraction(1, 2), Fraction(2, 5), Fraction(1, 10)])
    assert report.total_variation == Fraction(1489, 9870)


# planted faults


def test_reused_coin_is_found_and_named():
    def verify(target, draft, candidates, rng):
        coin, x = rng.random(), candidates[0]
        if coin * draft[x] < target[x]:
            return x
        return int(np.searchsorted(np.cumsum(samplers_numpy.residual(target, draft)), coin, side="right"))

    report = replay_verify(verify, P, Q)
    assert report.verdict is Verdict.BIASED
    assert report.total_variation == pytest.approx(0.1)
    assert any("reused randomness" in note for note in report.notes)
    assert report.witness is not None
    assert report.witness.found > report.witness.expected


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6, 1e-10])
def test_additive_epsilon_stays_when_rounding_does_not(epsilon):
    def verify(target, draft, candidates, rng):
        x = candidates[0]
        if rng.random() < target[x] / (draft[x] + Fraction(epsilon) * draft[x] ** 0):
            return x
        left = np.maximum(target - draft, 0 * target)
        return int(rng.choice(len(target), p=left / left.sum()))

    report = replay_verify(verify, RATIONAL_P, RATIONAL_Q, numbers="rational", monte_carlo=0)
    assert report.verdict is Verdict.BIASED
    assert epsilon / 10 < report.total_variation < 10 * epsilon


def test_greedy_bonus_token_is_exact_in_the_first_token_only():
    target, draft = hard_pair(3)

    def step(target_model, draft_model, prefix, rng):
        x = int(rng.choice(3, p=draft_model(prefix)))
        p, q = target_model(prefix), draft_model(prefix)
        if rng.random() * q[x] < p[x]:
            return [x, int(np.argmax(target_model([*prefix, x])))]
        return [int(rng.choice(3, p=samplers_numpy.residual(p, q)))]

    report = replay_step(step, target, draft, horizon=2)
    assert report.first_token == 0 or report.first_token < 1e-12
    assert report.verdict is Verdict.BIASED
    assert report.total_variation > 0.1


def exact_chain(drafted):
    def step(target_model, draft_model, prefix, rng):
        prefix = list(prefix)
        tokens = []
        for _ in range(drafted):
            row = draft_model([*prefix, *tokens])
            tokens.append(int(rng.choice(len(row), p=row)))
        for place, x in enumerate(tokens):
            p, q = target_model([*prefix, *tokens[:place]]), draft_model([*prefix, *tokens[:place]])
            if rng.random() * q[x] >= p[x]:
                return [*tokens[:place], int(rng.choice(len(p), p=samplers_numpy.residual(p, q)))]
        row = target_model([*prefix, *tokens])
        return [*tokens, int(rng.choice(len(row), p=row))]

    return step


@pytest.mark.parametrize("extend", ["step", "target"])
def test_exact_chain_keeps_the_sequence_law(extend):
    report = replay_step(exact_chain(2), *hard_pair(3), horizon=3, extend=extend)
    assert report.verdict is Verdict.EXACT
    assert sum(report.law.values()) == 1


def test_wrong_row_for_the_second_token_is_found():
    target, draft = hard_pair(3)

    def step(target_model, draft_model, prefix, rng):
        return exact_chain(2)(
            lambda context: target_model(context[: len(prefix) + 1]), draft_model, prefix, rng
        )

    report = replay_step(step, target, draft, horizon=3, extend="target")
    assert report.first_token < 1e-12
    assert report.verdict is Verdict.BIASED


def test_crash_is_an_outcome_with_its_probability():
    def verify(target, draft, candidates, rng):
        if rng.random() < 0.25:
            raise KeyError("lost")
        return int(rng.choice(len(target), p=target))

    report = replay_verify(verify, P, Q)
    assert report.verdict is Verdict.BIASED
    assert report.crash_mass == Fraction(1, 4)
    assert "KeyError" in next(iter(report.crashes))


@pytest.mark.parametrize(
    ("returned", "name"),
    [
        (-1, "token -1"),
        (9, "vocabulary 4"),
        *[(wrong, "not a token") for wrong in (0.5, "token", None, float("inf"), float("nan"))],
    ],
)
def test_invalid_tokens_are_outcomes(returned, name):
    report = replay_verify(lambda target, draft, candidates, rng: returned, P, Q)
    assert report.crash_mass == 1
    assert name in next(iter(report.crashes))


def test_zero_mass_is_reported():
    report = replay_verify(
        lambda target, draft, candidates, rng: candidates[0], [0, 0.5, 0.5], [0.5, 0.25, 0.25]
    )
    assert report.zero_mass == Fraction(1, 2)


def test_budget_is_refused_with_counts_per_call_site():
    def verify(target, draft, candidates, rng):
        return sum(int(rng.random() < 0.5) for _ in range(30)) % 4

    with pytest.raises(BudgetExceededError, match=r"500 runs.*forks at test_replay_engine\.py:\d+"):
        replay_verify(verify, P, Q, budget=Budget(runs=500))


def test_thirty_two_tokens_are_refused_with_counts_per_call_site():
    with pytest.raises(
        BudgetExceededError, match=r"1500 runs.*\d+ forks at test_replay_engine\.py:\d+; \d+ forks"
    ):
        replay_step(exact_chain(2), *hard_pair(32), extend="target", budget=Budget(runs=1500))


@pytest.mark.skipif(
    os.environ.get("RESISPEC_SLOW") != "1", reason="49,037 paths twice; RESISPEC_SLOW=1 runs it"
)
def test_thirty_two_tokens_and_two_drafts_finish_within_the_default_budget():
    report = replay_step(exact_chain(2), *hard_pair(32), extend="target")
    assert (report.verdict, report.paths) == (Verdict.EXACT, 49_037)


def test_rational_rows_end_with_a_monte_carlo_on_floats():
    """NumPy's ``choice`` refuses ``Fraction`` rows; the closing run hands the sampler floats."""
    report = replay_step(exact_chain(1), *hard_pair(3), horizon=2, numbers="rational")
    assert report.verdict is Verdict.EXACT
    assert report.monte_carlo > 0
    report = replay_verify(samplers_numpy.leviathan, RATIONAL_P, RATIONAL_Q, numbers="rational")
    assert report.verdict is Verdict.EXACT
    assert report.monte_carlo > 0


def test_weights_that_change_between_runs_are_not_remembered():
    """Rows are normalised once for all runs; a row that the sampler itself changes must be read anew."""
    row = np.array([0.5, 0.25, 0.25])

    def verify(target, draft, candidates, rng):
        row[:] = np.roll(row, 1)
        return int(rng.choice(3, p=row))

    with pytest.raises(LeakError):
        replay_verify(verify, [0.5, 0.25, 0.25], [0.5, 0.25, 0.25])


def test_draw_helper_serves_both_replay_and_sampling():
    assert draw([0, 1, 0]) == 1
    report = replay_step(
        lambda target, draft, prefix, rng: [draw(target(prefix).tolist())], *hard_pair(3), horizon=1
    )
    assert report.exit_code == 0


def test_bad_arguments_name_the_value():
    with pytest.raises(InputError, match="horizon is 0"):
        replay_step(exact_chain(1), *hard_pair(3), horizon=0)
    with pytest.raises(InputError, match="precision is 'half'"):
        replay_verify(samplers_numpy.leviathan, P, Q, precision="half")
    with pytest.raises(InputError, match="2 rows given"):
        Markov([0.5, 0.25, 0.25], [[1, 0, 0], [1, 0, 0]])


def test_no_false_alarm_on_ten_thousand_random_cases():
    """Exact rules on random rational rows with zeros and ties: the difference is zero in every one."""
    rng = np.random.default_rng(2024)
    cases = []
    while len(cases) < 10_000:
        size = int(rng.integers(2, 5))
        weights = rng.integers(0, 6, size=(2, size)) * (rng.random((2, size)) < 0.8)
        if weights.sum(axis=1).min() > 0:
            cases.append([[Fraction(int(w), int(row.sum())) for w in row] for row in weights])
    with controlled():
        for p, q in cases:
            report = replay_verify(samplers_numpy.leviathan, p, q, numbers="rational", monte_carlo=0)
            assert report.verdict is Verdict.EXACT, (p, q, str(report))

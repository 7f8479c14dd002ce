"""The tape on kernels with known laws, narrow cells and boundary faults."""

import numpy as np
import pytest

from resispec_core.audit import Verdict
from resispec_core.audit.tape import tape_audit
from resispec_core.errors import BudgetExceededError, InputError

P, Q = [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]


def inverse_cdf(row, coin):
    token = int(np.searchsorted(np.cumsum(row), coin, side="right"))
    return token if token < len(row) and row[token] > 0 else int(np.flatnonzero(row)[-1])


def exact(target, draft, candidates, uniforms):
    for coin, x in zip(uniforms, candidates, strict=False):
        if coin * draft[x] < target[x]:
            return x
        target = np.maximum(target - draft, 0)
        target /= target.sum()
    return inverse_cdf(target, uniforms[-1])


@pytest.mark.parametrize("candidates", [1, 2])
@pytest.mark.parametrize("bits", [24, 53])
def test_exact_kernel_is_not_refuted(candidates, bits):
    report = tape_audit(exact, P, Q, candidates, bits=bits)
    assert report.verdict is Verdict.NOT_REFUTED
    assert report.exit_code == 3
    assert report.total_variation <= report.rounding
    assert "measured" in str(report)
    assert report.to_json()["calls"] == report.calls > 100


def test_masked_rows_are_clean():
    assert tape_audit(exact, [0, 0.5, 0.5, 0], [0.4, 0.3, 0.2, 0.1]).verdict is Verdict.NOT_REFUTED


def test_shared_coin_is_biased_by_its_known_amount():
    def kernel(target, draft, candidates, uniforms):
        return exact(target, draft, candidates, uniforms[[0, 0]])

    report = tape_audit(kernel, P, Q)
    assert report.verdict is Verdict.BIASED
    assert report.total_variation == pytest.approx(0.1, abs=1e-6)


def test_inclusive_comparison_is_found_at_zero():
    def kernel(target, draft, candidates, uniforms):
        x = candidates[0]
        if uniforms[0] * draft[x] <= target[x]:
            return x
        return exact(target, draft, candidates, uniforms)

    report = tape_audit(kernel, [0, 0.5, 0.5], [0.5, 0.25, 0.25])
    assert report.verdict is Verdict.BIASED
    assert "probability zero" in report.findings[0]


def test_index_past_the_end_is_found():
    """An inverse CDF without a guard, on a row whose float32 sum rounds below the largest coin."""

    def kernel(target, draft, candidates, uniforms):
        row = np.array(target, dtype=np.float32) * np.float32(1 - 2**-22)
        return int(np.searchsorted(np.cumsum(row), uniforms[0], side="right"))

    report = tape_audit(kernel, P, Q, coins=1)
    assert report.verdict is Verdict.BIASED
    assert "outside the vocabulary" in report.findings[0]


def test_exception_is_a_finding():
    def kernel(target, draft, candidates, uniforms):
        if uniforms[0] == 0:
            raise ZeroDivisionError("log of zero")
        return inverse_cdf(target, uniforms[0])

    report = tape_audit(kernel, P, Q, coins=1)
    assert any("ZeroDivisionError" in finding for finding in report.findings)


def test_a_narrow_cell_at_a_corner_is_seen():
    """A cell of width 2^−20 in the second coordinate that interior probes of the first would miss."""

    def kernel(target, draft, candidates, uniforms):
        if uniforms[0] < 0.5 and uniforms[1] > 1 - 2**-20:
            return 0
        return inverse_cdf(target, uniforms[0])

    report = tape_audit(kernel, [0.25, 0.25, 0.25, 0.25], Q)
    assert report.total_variation == pytest.approx(0.25 * 2**-20, rel=0.1)


def test_budget_and_arguments():
    with pytest.raises(BudgetExceededError, match="more than 50 kernel calls"):
        tape_audit(exact, P, Q, max_calls=50)
    with pytest.raises(InputError, match="coins is 9"):
        tape_audit(exact, P, Q, coins=9)


def test_agrees_with_the_replay_on_a_biased_kernel():
    from resispec_core.audit.replay import replay_verify

    def kernel(target, draft, candidates, uniforms):
        x = candidates[0]
        return x if uniforms[0] * draft[x] < target[x] else inverse_cdf(target, uniforms[1])

    replayed = replay_verify(lambda p, q, drawn, rng: kernel(p, q, drawn, rng.random(2)), P, Q)
    assert float(replayed.total_variation) == pytest.approx(
        tape_audit(kernel, P, Q).total_variation, abs=1e-6
    )

"""transformers' verification step, as stated: exact to rounding, and what the real coin grid adds."""

from fractions import Fraction

import pytest
import torch
import transformers.generation.utils as utils

from resispec_core.adapters import audit_package
from resispec_core.adapters.transformers import audit_speculative, speculative_step
from resispec_core.audit import Verdict
from resispec_core.audit.replay import draw, replay_step
from resispec_core.audit.replay.tables import Markov, fractions, hard_pair
from resispec_core.errors import InputError


@pytest.mark.parametrize("drafted", [1, 2, 3])
@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e-7), ("float64", 1e-15)])
def test_exact_to_rounding_over_the_sequence(drafted, dtype, size):
    report = audit_speculative(drafted, dtype=dtype)
    assert report.verdict is Verdict.EXACT_WITHIN
    assert report.total_variation < size
    assert report.horizon == drafted + 1


@pytest.mark.parametrize(
    ("dtype", "at_zero"),
    [("float32", 2.0**-24), ("float16", 2.0**-12 + 2.0**-24), ("bfloat16", 2.0**-9 + 2.0**-24)],
)
def test_the_coin_grid_accepts_a_masked_token_at_zero(dtype, at_zero):
    """q(x)·P(u = 0); after token 2 of the table the target masks token 1 and q(1) = 1/3."""
    report = audit_speculative(1, dtype=dtype, start=2, grid=True)
    assert report.verdict is Verdict.BIASED
    assert float(report.zero_mass) == pytest.approx(at_zero / 3, rel=1e-3)
    ideal = audit_speculative(1, dtype=dtype, start=2)
    assert ideal.zero_mass == 0
    assert ideal.verdict is Verdict.EXACT_WITHIN


def test_a_residual_that_rounds_to_zero_crashes():
    """Target row below the draft row in every entry: a rejection, possible in rounding alone, has nothing to draw."""

    def step(target_model, draft_model, prefix, rng):
        lower = torch.tensor([[[0.0, 1.0], [0.0, 1.0]]])
        drafted = torch.tensor([[draw([1])]])
        chosen, _ = utils._speculative_sampling(drafted, Rows([[1.0, 1.0]]), 1, Rows(lower[0].tolist()))
        return chosen[0, :1]

    same = Markov(fractions(1, 1), [fractions(1, 1)] * 2)
    report = replay_step(step, same, same, horizon=1, library="torch", numbers="float32")
    assert report.crash_mass == 1
    assert "probability tensor" in next(iter(report.crashes))


class Rows:
    """Logits whose softmax gives exactly these rows."""

    def __init__(self, rows):
        self.rows = torch.tensor(rows)[None]
        self.shape = self.rows.shape

    def softmax(self, dim):
        return self.rows


def test_planted_fault_in_the_library_is_found(monkeypatch):
    """The residual without its subtraction, written into transformers' own function."""
    real = torch.clamp

    def keeps_target(value, *args, **kwargs):
        return real(value + 0.05, *args, **kwargs)

    monkeypatch.setattr(torch, "clamp", keeps_target)
    target, draft = hard_pair(3)
    report = replay_step(
        speculative_step(1),
        target,
        draft,
        horizon=1,
        extend="target",
        library="torch",
        numbers="float32",
        monte_carlo=0,
    )
    assert report.verdict is Verdict.BIASED
    assert report.total_variation > Fraction(1, 1000)


def test_audit_package_prints_functions_with_the_version():
    lines = [str(item) for item in audit_package("transformers")]
    assert all("_speculative_sampling" in line for line in lines)
    assert any("bfloat16" in line and "[real coin grid]" in line for line in lines)
    with pytest.raises(InputError, match="no adapter for package 'nothing'"):
        audit_package("nothing")

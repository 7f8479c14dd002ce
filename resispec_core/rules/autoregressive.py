"""The target alone: the reference law."""

from __future__ import annotations

from resispec_core.arrays import Array
from resispec_core.rules.base import SequentialRule, Stage


class Autoregressive(SequentialRule):
    """Looks at no candidate and samples from p. Exact; acceptance 0. Cost: O(V)."""

    name = "autoregressive"
    draws = ("iid", "without-replacement", "top-k", "greedy")
    summary = "the target alone: drafts are ignored"
    batched = True
    residual_uses_token = False

    def accept(self, stage: Stage) -> Array:
        return 0 * stage.residual

    def reject(self, stage: Stage, token: Array) -> Array:
        return stage.residual

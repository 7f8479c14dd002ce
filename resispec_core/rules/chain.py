"""Memoryless chains: every rule whose residuals are fixed before the first candidate is seen."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from resispec_core.arrays import Array, divide, normalise, one, positive_part
from resispec_core.rules.base import SequentialRule, Stage


class ChainRule(SequentialRule):
    """A chain r₁ = p ≥ r₂ ≥ … ≥ r_{n+1} ≥ 0 of owed masses with ``r_i − r_{i+1} ≤ S_i·q``, ``S_i = Σ r_i``.

    Candidate i is accepted with ``(r_i(x) − r_{i+1}(x)) / (S_i·q(x))``; if all are rejected the token comes
    from ``r_{n+1}/S_{n+1}``. S_i is then the probability of reaching candidate i.

    Exact for i.i.d. candidates, whatever the chain (proofs/formal: ``chain_exact``).
    """

    draws = ("iid",)
    batched = True
    residual_uses_token = False

    @abstractmethod
    def owed(self, plan: Any, target: Array, draft: Array, index: int) -> Array:
        """``r_{index+1}``, elementwise in (target, draft): the mass owed when candidate ``index`` is reached."""

    @abstractmethod
    def reach(self, plan: Any, index: int) -> Any:
        """``S_{index+1}``, the probability that candidate ``index`` is looked at."""

    def accept(self, stage: Stage) -> Array:
        return self.accept_at(stage.plan, stage.target, stage.draft, stage.index)

    def accept_at(self, plan: Any, target: Array, draft: Array, index: int) -> Array:
        """Acceptance probabilities from p and q at any tokens: the row need not be read."""
        given = self.owed(plan, target, draft, index) - self.owed(plan, target, draft, index + 1)
        return np.minimum(divide(positive_part(given), self.reach(plan, index) * draft), one(target))

    def reject(self, stage: Stage, token: Array) -> Array:
        owed = self.owed(stage.plan, stage.target, stage.draft, stage.index + 1)
        return normalise(positive_part(owed), fallback=stage.residual)

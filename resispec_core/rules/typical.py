"""Medusa's typical acceptance: fast, and not meant to keep the target law."""

from __future__ import annotations

import math

import numpy as np

from resispec_core.arrays import Array, as_float, one
from resispec_core.errors import InputError
from resispec_core.rules.base import SequentialRule, Stage


class Typical(SequentialRule):
    """Accepts candidate x, without a coin, where p(x) > min(ε, δ·exp(−H(p))); else samples from p.

    Lossy by design: the distance from the target is the result of an audit, not a failure. ``epsilon`` and
    ``delta`` are Medusa's ε and δ; H is the entropy in nats. Cost: O(V).
    Source: Medusa (2401.10774), section 2.3.2.
    """

    name = "typical"
    draws = ("iid", "without-replacement", "top-k", "greedy")
    summary = "Medusa's typical acceptance (lossy by design)"
    lossy = True
    batched = True
    residual_uses_token = False

    def __init__(self, epsilon: float = 0.09, delta: float = 0.3) -> None:
        if not 0 <= epsilon <= 1 or not delta >= 0:
            raise InputError(f"epsilon is {epsilon} and delta is {delta}; use 0 ≤ epsilon ≤ 1 and delta ≥ 0")
        self.epsilon = epsilon
        self.delta = delta

    def threshold(self, target: Array) -> float:
        """min(ε, δ·exp(−H(p))) of one row."""
        p = as_float(target)
        p = p[p > 0]
        return min(self.epsilon, self.delta * math.exp(float((p * np.log(p)).sum())))

    def plan(self, target: Array, draft: Array, candidates: int) -> float:
        return self.threshold(target)

    def accept(self, stage: Stage) -> Array:
        return np.where(stage.target > stage.plan, one(stage.target), 0 * stage.target)

    def reject(self, stage: Stage, token: Array) -> Array:
        return stage.target

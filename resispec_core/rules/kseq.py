"""K-SEQ, the sequential rule of SpecTr."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from resispec_core.arrays import Array, as_float, is_rational, one
from resispec_core.rules.chain import ChainRule
from resispec_core.rules.root import float_noise, root_of

GRID = 2**40


class KSeqPlan(NamedTuple):
    """γ, and β = Σ min(q, p/γ), the acceptance of each candidate that is looked at."""

    gamma: Any
    beta: Any


class KSeq(ChainRule):
    """Accepts every candidate with min(1, p/(γ·q)); the same γ at each, as small as exactness allows.

    γ is the root of Σ min(γq, p) = 1 − (1 − β)^n; any larger γ is exact too and accepts less, so the root is
    rounded up (in rationals, to a multiple of 2⁻⁴⁰). Acceptance 1 − (1 − β)^n. Cost: O(V) for each of a few
    Newton steps, then O(1) a candidate.
    proofs/formal: ``kseq_exact``, ``kseq_acceptance``.
    Source: SpecTr (2310.15141), Algorithm 2 and Theorem 2.
    """

    name = "k-seq"
    summary = "SpecTr's K-SEQ: min(1, p/(gamma q)) for every candidate"

    def plan(self, target: Array, draft: Array, candidates: int) -> KSeqPlan:
        p, q = as_float(target), as_float(draft)
        gamma, _ = root_of(
            lambda at: _excess(p, q, at, candidates),
            1.0,
            float(candidates),
            start=float(candidates),
            noise=float_noise(candidates),
        )
        if not is_rational(target):
            return KSeqPlan(gamma, float(np.minimum(q, p / gamma).sum()))
        gamma = _on_grid(target, draft, gamma, candidates)
        return KSeqPlan(gamma, np.minimum(draft, target / gamma).sum())

    def owed(self, plan: KSeqPlan, target: Array, draft: Array, index: int) -> Array:
        if index == 0:
            return target
        return target - _drawn(plan.beta, index) * np.minimum(draft, target / plan.gamma)

    def reach(self, plan: KSeqPlan, index: int) -> Any:
        return (1 - plan.beta) ** index


def _drawn(beta: Any, stages: int) -> Any:
    """Σ_{j ≤ i} S_j = (1 − (1 − β)^i)/β, written so that β = 0 needs no division."""
    return sum(((1 - beta) ** j for j in range(stages)), 0 * beta)


def _excess(target: Array, draft: Array, gamma: Any, candidates: int) -> tuple[Any, Any]:
    """γ − (1 − (1 − β)^n)/β, and the slope of β times it, over β: as good for a Newton step, and increasing."""
    share = target / gamma
    beta = np.minimum(draft, share).sum()
    if beta == 0:
        return gamma - candidates, one(draft)
    full = (draft * (draft < share)).sum() / beta
    slope = full + candidates * (1 - beta) ** (candidates - 1) * (1 - full) / gamma
    return gamma - _drawn(beta, candidates), slope


def _on_grid(target: Array, draft: Array, guess: float, candidates: int) -> Fraction:
    """The smallest multiple of 1/GRID, at least 1, that is enough in rationals; looked for around ``guess``."""

    def enough(place: int) -> bool:
        return bool(_excess(target, draft, Fraction(place, GRID), candidates)[0] >= 0)

    high, step = int(guess * GRID), 1
    while not enough(high):  # γ = n always is
        high, step = min(high + step, candidates * GRID), 2 * step
    low, step = max(high - 1, GRID - 1), 1
    while low >= GRID and enough(low):
        high, low, step = low, max(low - step, GRID - 1), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return Fraction(high, GRID)

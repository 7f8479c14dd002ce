"""K-SEQ, the sequential rule of SpecTr."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from resispec_core.arrays import Array, as_float, is_rational
from resispec_core.rules.chain import ChainRule


class KSeqPlan(NamedTuple):
    """γ, and β = Σ min(q, p/γ), the acceptance of each candidate that is looked at."""

    gamma: Any
    beta: Any


class KSeq(ChainRule):
    """Accepts every candidate with min(1, p/(γ·q)); the same γ at each, as small as exactness allows.

    γ is the root of Σ min(γq, p) = 1 − (1 − β)^n; any larger γ is exact too and accepts less, so the root is
    rounded up (in rationals, to a multiple of 2⁻⁴⁰). Acceptance 1 − (1 − β)^n. Cost: O(V) for each of about 50
    bisection steps, then O(1) a candidate.
    proofs/formal: ``kseq_exact``, ``kseq_acceptance``.
    Source: SpecTr (2310.15141), Algorithm 2 and Theorem 2.
    """

    name = "k-seq"
    summary = "SpecTr's K-SEQ: min(1, p/(gamma q)) for every candidate"

    def plan(self, target: Array, draft: Array, candidates: int) -> KSeqPlan:
        p, q = as_float(target), as_float(draft)
        low, high = 1.0, float(candidates)
        while high - low > 1e-14 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if _excess(p, q, middle, candidates) >= 0 else (middle, high)
        if not is_rational(target):
            return KSeqPlan(high, float(np.minimum(q, p / high).sum()))
        grid = 2**40
        gamma = Fraction(max(grid, int(high * grid) - 1), grid)
        # The float root is too low where β is below eps; steps double, so that γ = n is soon reached.
        step = 1
        while gamma < candidates and _excess(target, draft, gamma, candidates) < 0:
            gamma = min(gamma + Fraction(step, grid), Fraction(candidates))
            step *= 2
        return KSeqPlan(gamma, np.minimum(draft, target / gamma).sum())

    def owed(self, plan: KSeqPlan, target: Array, draft: Array, index: int) -> Array:
        # Σ_{j ≤ i} S_j = (1 − (1 − β)^i)/β, written so that β = 0 needs no division.
        drawn = sum(((1 - plan.beta) ** j for j in range(index)), 0 * plan.beta)
        return target - drawn * np.minimum(draft, target / plan.gamma)

    def reach(self, plan: KSeqPlan, index: int) -> Any:
        return (1 - plan.beta) ** index


def _excess(target: Array, draft: Array, gamma: Any, candidates: int) -> Any:
    taken = np.minimum(draft, target / gamma).sum()
    return gamma * taken - (1 - (1 - taken) ** candidates)

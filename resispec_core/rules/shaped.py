"""Exact residual shaping: the repair of ResiSpec.

Source: the paper's ideal residual r = Z·q (Lemma 1) under the box that exactness imposes,
``(r_i − S_i·q)+ ≤ r_{i+1} ≤ r_i``. Derivation and proofs: proofs/formal/shaped.v.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from resispec_core.arrays import Array, is_rational, one, positive_part, zeros
from resispec_core.laws import inverse_cdf
from resispec_core.rules.base import Outcome, Row
from resispec_core.rules.chain import ChainRule

MAX_STEPS = 200


class ShapedPlan(NamedTuple):
    """The scalars a verification needs besides p and q at the drafted tokens."""

    total: Any
    """T = S₁ + … + S_n: no token x can be accepted with more mass than min(p, q·T)."""
    left: tuple[Any, ...]
    """τ₁ = T, τ_{i+1} = τ_i − S_i, …, τ_{n+1} ≥ 0."""
    reach: tuple[Any, ...]
    """S₁ … S_n."""
    steps: int
    """Evaluations of τ_{n+1}(T) that the solve took."""


class Shaped(ChainRule):
    """Scarce tokens are accepted always, over-drafted ones as late as possible.

    With τ_i = S_i + … + S_n the owed mass is ``r_i = p − (T − τ_i)·q`` where p > T·q, else ``min(p, τ_i·q)``; T is
    a root of τ_{n+1}(T) = 0, 1 ≤ T ≤ n. Acceptance Σ min(p, q·T). Any T with τ_{n+1} ≥ 0 is exact, so
    T is rounded up; only acceptance depends on how close it is.

    Exact for i.i.d. candidates. Never below SpecInfer or K-SEQ in acceptance; the best memoryless exact rule for
    every n (proofs/formal: ``shaped_exact``, ``shaped_acceptance`` and ``shaped_best_memoryless``).
    Cost: one sort of p/q, then O(n log V) for each of about ten steps; O(1) a candidate; one row for the resample.
    """

    name = "shaped"
    summary = "exact residual shaping: the repair of ResiSpec"

    def plan(self, target: Array, draft: Array, candidates: int) -> ShapedPlan:
        total, steps = _root(_Table(target, draft), candidates, exact=is_rational(target))
        left, reach = self._walk(total, target, draft, candidates)
        step = 2.0**-50
        while left[-1] < 0 and total < candidates:
            # The table's prefix sums and these row sums round differently; upwards T needs no precision. The step
            # grows, since a shortfall can be below half an ulp of T.
            total, step = min(total + max(-8 * left[-1], step * total), float(candidates)), 16 * step
            left, reach = self._walk(total, target, draft, candidates)
        # At T = n the root is at most rounding away from zero.
        return ShapedPlan(total, (*left[:-1], max(left[-1], 0 * left[-1])), reach, steps)

    def _walk(
        self, total: Any, target: Array, draft: Array, candidates: int
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        reach = [target.sum()]  # r₁ = p
        left = [total, total - reach[0]]
        for _ in range(candidates - 1):
            reach.append(_owed(total, left[-1], target, draft).sum())
            left.append(left[-1] - reach[-1])
        return tuple(left), tuple(reach)

    def owed(self, plan: ShapedPlan, target: Array, draft: Array, index: int) -> Array:
        return _owed(plan.total, plan.left[index], target, draft)

    def reach(self, plan: ShapedPlan, index: int) -> Any:
        return plan.reach[index]

    def decide(self, row: Row, tokens: Sequence[int], coins: Sequence[Any]) -> Outcome:
        """As for any sequential rule, but after the plan only p and q at the drafted tokens are read."""
        target, draft, _, plan = row
        for index, token in enumerate(tokens):
            if coins[index] < self.accept_at(plan, target[[token]], draft[[token]], index)[0]:
                return Outcome(token, index)
        owed = positive_part(self.owed(plan, target, draft, len(tokens)))
        mass = owed.sum()
        return Outcome(inverse_cdf(owed / mass if mass > 0 else target, coins[-1]), -1)


def _owed(total: Any, left: Any, target: Array, draft: Array) -> Array:
    # p > T·q makes the first term the larger one, p ≤ T·q the second: the two cases of the class docstring.
    return np.maximum(target - (total - left) * draft, np.minimum(target, left * draft))


class _Table:
    """Tokens by ρ = p/q ascending, with Σp and Σq below any level: Σ r in O(log V)."""

    def __init__(self, target: Array, draft: Array) -> None:
        drafted = draft > 0
        everything = bool(drafted.all())
        # The order of ties does not matter: only sums over whole levels are read.
        p, q = (target, draft) if everything else (target[drafted], draft[drafted])
        with np.errstate(over="ignore"):  # a mass over a subnormal one is as good as infinite
            ratio = p / q
        order = np.argsort(ratio)
        self.ratio = ratio[order]
        start = zeros(1, like=target)
        self.p_below = np.concatenate([start, np.cumsum(p[order])])
        self.q_below = np.concatenate([start, np.cumsum(q[order])])
        self.undrafted = 0 * one(target) if everything else target[~drafted].sum()

    def last(self, total: Any, candidates: int) -> tuple[Any, Any]:
        """τ_{n+1} at T = ``total`` and its slope just below T (the function is piecewise linear)."""
        scarce = int(np.searchsorted(self.ratio, total, side="left"))
        p_scarce = self.p_below[-1] - self.p_below[scarce] + self.undrafted
        q_scarce = self.q_below[-1] - self.q_below[scarce]
        left, slope = total, total / total
        for _ in range(candidates):
            full = min(int(np.searchsorted(self.ratio, left, side="left")), scarce)
            q_open = self.q_below[scarce] - self.q_below[full]
            mass = p_scarce - (total - left) * q_scarce + self.p_below[full] + left * q_open
            left, slope = left - mass, slope * (1 - q_open) + (1 - slope) * q_scarce
        return left, slope


def _root(table: _Table, candidates: int, *, exact: bool) -> tuple[Any, int]:
    """A T with τ_{n+1}(T) = 0, as far as the number system allows, and the evaluations it took.

    Every root gives the same acceptance. Newton on a non-decreasing piecewise linear function that is neither
    convex nor concave, kept inside a bracket by bisection; in rationals it ends on the root itself.
    """
    unit = one(table.p_below)
    low, high = unit, candidates * unit
    guess = high
    value, slope = table.last(high, candidates)
    steps = 1
    # In floats the sums are only good to a few eps a stage; a value below that is a root.
    small = 0 * unit if exact else 16 * candidates * np.finfo(np.float64).eps
    while steps < MAX_STEPS:
        if abs(value) <= small:
            return guess, steps
        low, high = (low, guess) if value > 0 else (guess, high)
        newton = guess - value / slope if slope > 0 else low
        guess = newton if low < newton < high else (low + high) / 2
        if not exact and guess in (low, high):
            break
        value, slope = table.last(guess, candidates)
        steps += 1
    return high, steps

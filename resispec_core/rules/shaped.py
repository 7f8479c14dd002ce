"""Exact residual shaping: the repair of ResiSpec.

Source: the paper's ideal residual r = Z·q (Lemma 1) under the box that exactness imposes,
``(r_i − S_i·q)+ ≤ r_{i+1} ≤ r_i``. Derivation and proofs: proofs/formal/shaped.v.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from resispec_core.arrays import Array, is_rational, one, positive_part, running_sums
from resispec_core.laws import inverse_cdf
from resispec_core.rules.base import Outcome, Row
from resispec_core.rules.chain import ChainRule
from resispec_core.rules.root import float_noise, root_of

LOWEST = 2.0**-20
SHIFT = 45
"""Bits of p/q that merging drops: 128 cells an octave."""


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
    Cost: a few passes over the row for each of about three steps; O(1) a candidate; one row for the resample.
    Rationals are sorted by p/q once.
    """

    name = "shaped"
    summary = "exact residual shaping: the repair of ResiSpec"

    def plan(self, target: Array, draft: Array, candidates: int) -> ShapedPlan:
        unit, most = one(target), candidates * one(target)
        walk = lru_cache(maxsize=1)(partial(self._walk, target=target, draft=draft, candidates=candidates))
        if is_rational(target):
            last = partial(_Table(target, draft).last, candidates=candidates)
            total, steps = root_of(last, unit, most, start=most, noise=None)
        else:
            # Near the root of the merged laws, then on it by sums over the rows themselves.
            last = partial(_Table(*_merged(target, draft, candidates)).last, candidates=candidates)
            noise = float_noise(candidates)
            total, rough = root_of(last, unit, most, start=most, noise=noise)
            total, steps = root_of(
                lambda at: (walk(at)[0][-1], last(at)[1]), unit, most, start=total, noise=noise
            )
            steps += rough
        left, reach = walk(total)
        # At T = n the root is at most rounding away from zero.
        return ShapedPlan(total, (*left[:-1], max(left[-1], 0 * left[-1])), reach, steps)

    def _walk(
        self, total: Any, *, target: Array, draft: Array, candidates: int
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        reach = [target.sum()]  # r₁ = p
        left = [total, total - reach[0]]
        for _ in range(candidates - 1):
            reach.append(_owed(total, left[-1], target, draft).sum())
            left.append(left[-1] - reach[-1])
        return tuple(left), tuple(reach)

    def owed(self, plan: ShapedPlan, target: Array, draft: Array, index: int) -> Array:
        return _owed(plan.total, plan.left[index], target, draft) if index else target

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


def _merged(target: Array, draft: Array, candidates: int) -> tuple[Array, Array]:
    """Tokens whose p/q has the same leading bits added up: laws of a few thousand entries with almost the same T.

    p/q is looked at from LOWEST to 2n: no level that matters is above n.
    """
    ratio = np.full(target.size, 2.0 * candidates)
    with np.errstate(over="ignore"):
        np.divide(target, draft, out=ratio, where=draft > 0)
    np.clip(ratio, LOWEST, 2.0 * candidates, out=ratio)
    cell = (ratio.view(np.int64) >> SHIFT) - (np.float64(LOWEST).view(np.int64) >> SHIFT)
    return np.bincount(cell, weights=target), np.bincount(cell, weights=draft)


class _Table:
    """Tokens by ρ = p/q ascending, with Σp and Σq below any level: Σ r in O(log V)."""

    def __init__(self, target: Array, draft: Array) -> None:
        drafted = draft > 0
        p, q = target[drafted], draft[drafted]
        with np.errstate(over="ignore"):  # a mass over a subnormal one is as good as infinite
            ratio = p / q
        # The order of ties does not matter: only sums over whole levels are read.
        order = np.argsort(ratio)
        self.ratio = ratio[order]
        self.p_below, self.q_below = running_sums(p[order], q[order])
        self.undrafted = target[~drafted].sum()

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

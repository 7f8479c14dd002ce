"""Exact residual shaping: the repair of ResiSpec.

Source: the paper's ideal residual r = Z·q (Lemma 1) under the box that exactness imposes,
``(r_i − S_i·q)+ ≤ r_{i+1} ≤ r_i``. Derivation: docs/rules/shaped.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from resispec_core.arrays import Array, divide, is_rational, one, positive_part, zeros
from resispec_core.laws import inverse_cdf
from resispec_core.rules.base import Outcome, check_coins, check_tokens, prepare
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
    the largest root of τ_{n+1}(T) = 0, 1 ≤ T ≤ n. Acceptance Σ min(p, q·T). Any T with τ_{n+1} ≥ 0 is exact, so
    T is rounded up; only acceptance depends on how close it is.

    Exact for i.i.d. candidates. Never below SpecInfer or K-SEQ in acceptance (tested); the best memoryless chain
    for n = 2 (proofs/shaped_optimality.md says what is known beyond).
    Cost: one sort of p/q, then O(n log V) for each of about ten steps; O(1) a candidate; one row for the resample.
    """

    name = "shaped"
    summary = "exact residual shaping: the repair of ResiSpec"

    def plan(self, target: Array, draft: Array, candidates: int) -> ShapedPlan:
        total, steps = _largest_root(_Table(target, draft), candidates, exact=is_rational(target))
        step = float(np.spacing(float(total)))
        while True:
            left, reach = self._walk(total, target, draft, candidates)
            if left[-1] >= 0:
                return ShapedPlan(total, left, reach, steps)
            # The table's prefix sums and the row sums round differently; T needs no precision upwards.
            # Steps double: a shortfall below half an ulp of T would otherwise leave T where it is, for ever.
            total = min(total + max(-2 * left[-1], step), float(candidates))
            step *= 2
            if total == candidates:
                left, reach = self._walk(total, target, draft, candidates)
                return ShapedPlan(total, (*left[:-1], max(left[-1], 0.0)), reach, steps)

    def _walk(
        self, total: Any, target: Array, draft: Array, candidates: int
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        left, reach = [total], []
        for _ in range(candidates):
            reach.append(_owed(total, left[-1], target, draft).sum())
            left.append(left[-1] - reach[-1])
        return tuple(left), tuple(reach)

    def owed(self, plan: ShapedPlan, target: Array, draft: Array, index: int) -> Array:
        return _owed(plan.total, plan.left[index], target, draft)

    def reach(self, plan: ShapedPlan, index: int) -> Any:
        return plan.reach[index]

    def verify(
        self,
        target: Array,
        draft: Array,
        tokens: Sequence[int],
        coins: Sequence[Any],
        draw: str | None = None,
    ) -> Outcome:
        """As for any sequential rule, but after the plan only p and q at the drafted tokens are read."""
        _, target, draft = prepare(self, target, draft, draw)
        check_tokens(tokens, draft.size)
        check_coins(coins, len(tokens) + 1)
        plan = self.plan(target, draft, len(tokens))
        for index, token in enumerate(tokens):
            if coins[index] < self.accept_at(plan, target[[token]], draft[[token]], index)[0]:
                return Outcome(token, index)
        owed = positive_part(self.owed(plan, target, draft, len(tokens)))
        mass = owed.sum()
        return Outcome(inverse_cdf(owed / mass if mass > 0 else target, coins[-1]), -1)


def _owed(total: Any, left: Any, target: Array, draft: Array) -> Array:
    scarce = target > total * draft
    return np.where(scarce, target - (total - left) * draft, np.minimum(target, left * draft))


class _Table:
    """Tokens by ρ = p/q ascending, with Σp and Σq below any level: Σ r in O(log V)."""

    def __init__(self, target: Array, draft: Array) -> None:
        drafted = draft > 0
        everything = bool(drafted.all())
        p, q = (target, draft) if everything else (target[drafted], draft[drafted])
        ratio = divide(p, q)
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


def _largest_root(table: _Table, candidates: int, *, exact: bool) -> tuple[Any, int]:
    """A T with τ_{n+1}(T) ≥ 0, and equal to the largest root as far as the number system allows.

    Newton from the right on a non-decreasing piecewise linear function, kept inside a bracket by bisection.
    """
    unit = one(table.p_below)
    low, high = unit, candidates * unit
    value, slope = table.last(high, candidates)
    steps = 1
    while value > 0 and steps < MAX_STEPS:
        if not exact and high - low <= 4 * np.finfo(np.float64).eps * high:
            break
        guess = high - value / slope if slope > 0 else low
        if guess <= low:
            guess = (low + high) / 2 if steps > 1 or not exact else low
        guess_value, guess_slope = table.last(guess, candidates)
        steps += 1
        if guess_value >= 0:
            if guess == high:
                break
            high, value, slope = guess, guess_value, guess_slope
        elif guess == low and steps > MAX_STEPS // 2:
            break
        else:
            low = guess
    return high, steps

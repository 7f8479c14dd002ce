"""The optimal proxy: acceptance at the ceiling.

Source: the optimal-transport value of SpecTr (2310.15141) and Hu et al. (2502.18779), reached by a proxy in the sense
of ResiSpec. Proof that it is exact and meets the ceiling:
proofs/formal/ceiling.v, ``optimal_exact`` and ``optimal_meets_ceiling``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from resispec_core.arrays import Array, divide, normalise, one, positive_part, running_sums
from resispec_core.laws import inverse_cdf
from resispec_core.rules.base import Outcome, Row, SetRule
from resispec_core.rules.priorities import Priorities, has_own_set, place


class OptimalPlan(NamedTuple):
    """The proxy, and the priority sets that select with it."""

    target: Array
    proxy: Array
    """k*, the law of the selected candidate."""
    levels: tuple[Any, Any]
    """c₁ and c₂: k* = clip(p, c₁·q, c₂·q)."""
    priorities: Priorities


class Optimal(SetRule):
    """Selects the candidate of highest priority, then accepts it with min(1, p/k), else norm((p − k)+).

    Every draft of token x gets an independent priority from a measure of mass q(x) on [0, 1]; together they are
    uniform, and placed so that the largest of n priorities belongs to x with probability
    ``k*(x) = clip(p, c₁q, c₂q)(x)``. Acceptance Σ min(p, k*), the ceiling of any exact rule.

    Exact for i.i.d. candidates: whatever law k the sets give, verifying the selected candidate once is speculative
    sampling with k in place of q. Cost: O(V log V) to set up; then a pass over the row to verify, and to resample.
    proofs/formal: ``optimal_exact``, ``optimal_acceptance`` and ``optimal_meets_ceiling``.
    """

    name = "optimal"
    draws = ("iid",)
    summary = "optimal proxy: the ceiling, by priorities (exact)"

    def plan(self, target: Array, draft: Array, candidates: int) -> OptimalPlan:
        proxy = optimal_proxy(target, draft, candidates)
        priorities = place(draft, candidates, proxy.order, proxy.mass)
        return OptimalPlan(target, priorities.selection_law(), proxy.levels, priorities)

    def select(self, plan: OptimalPlan, tokens: Sequence[int]) -> Array:
        return plan.priorities.selection(tokens)

    def accept(self, plan: OptimalPlan) -> Array:
        return np.minimum(divide(plan.target, plan.proxy), one(plan.target))

    def residual(self, plan: OptimalPlan) -> Array:
        return normalise(positive_part(plan.target - plan.proxy), fallback=plan.target)

    def selected_law(self, plan: OptimalPlan) -> Array:
        return plan.proxy

    def coins(self, candidates: int) -> int:
        return candidates + 2

    def decide(self, row: Row, tokens: Sequence[int], coins: Sequence[Any]) -> Outcome:
        """n + 2 coins: a priority for each candidate, then accept, then resample."""
        plan = row.plan
        ranks = [
            plan.priorities.priority(token, coin) for token, coin in zip(tokens, coins[:-2], strict=True)
        ]
        chosen = max(range(len(tokens)), key=ranks.__getitem__)
        if coins[-2] < self.accept(plan)[tokens[chosen]]:
            return Outcome(tokens[chosen], chosen)
        return Outcome(inverse_cdf(self.residual(plan), coins[-1]), -1)


class Proxy(NamedTuple):
    """k* over the tokens that are drafted with more than a negligible probability, p/q ascending."""

    order: Array
    mass: Array
    """k* of ``order``."""
    levels: tuple[Any, Any]
    """c₁ and c₂."""
    cut: int
    """H is the first ``cut`` tokens: the first prefix that attains the ceiling."""


def optimal_proxy(target: Array, draft: Array, candidates: int) -> Proxy:
    """k* = clip(p, c₁·q, c₂·q): on H the scarcest tokens are raised to c₁·q until Σ_H k* = q(H)^n; off H the rest are
    cut to c₂·q until Σ k* = 1 − q(H)^n. Cost: O(V log V).
    """
    own = has_own_set(draft)
    order = np.argsort(divide(target, draft))
    if not own.all():
        order = order[own[order]]
    p, q = target.take(order), draft.take(order)
    p_below, q_below = running_sums(p, q)
    # NumPy squares fast and cubes slowly, so one factor is taken out.
    cut = int(np.argmin(p_below - q_below * q_below ** (candidates - 1)))
    # 1 − q(H)^n from the mass outside H, so that a small one keeps its digits.
    rest = q[cut:].sum() * sum(q_below[cut] ** power for power in range(candidates))
    low = _raised(p[:cut], q[:cut], p_below[: cut + 1], q_below[: cut + 1], q_below[cut] ** candidates)
    high = _cut(p[cut:], q[cut:], rest)
    mass = np.concatenate([np.maximum(p[:cut], low * q[:cut]), np.minimum(p[cut:], high * q[cut:])])
    return Proxy(order, mass, (low, high), cut)


def _raised(p: Array, q: Array, p_below: Array, q_below: Array, amount: Any) -> Any:
    """c₁ with ``Σ max(p, c₁q) = amount`` over tokens by ρ: the sum at c₁ = ρ_j raises those below j to it."""
    if p.size == 0:
        return 0 * amount

    def raised_to(j: int) -> Any:
        return p[j] / q[j] * q_below[j] + (p_below[-1] - p_below[j])

    raised = max(1, bisect_right(range(p.size), amount, key=raised_to))
    return _within((amount - p[raised:].sum()) / q_below[raised], p, q, raised)


def _cut(p: Array, q: Array, amount: Any) -> Any:
    """c₂ with ``Σ min(p, c₂q) = amount`` over tokens by ρ: the sum at c₂ = ρ_j holds those below j in full."""
    if p.size == 0:
        return 0 * amount
    # Summed from the far end, so that small tails stay sharp.
    held, from_end = running_sums(p, q[::-1])

    def cut_to(j: int) -> Any:
        return held[j] + p[j] / q[j] * from_end[p.size - j]

    first = min(bisect_left(range(p.size), amount, key=cut_to), p.size - 1)
    return _within((amount - held[first]) / from_end[p.size - first], p, q, first)


def _within(level: Any, p: Array, q: Array, place: int) -> Any:
    """``level``, which lies between ρ of the tokens before and at ``place``: in floats a difference of two sums over
    the mass of one light token can be anything."""
    if place > 0:
        level = max(level, p[place - 1] / q[place - 1])
    return level if place == p.size else min(level, p[place] / q[place])

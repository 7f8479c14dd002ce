"""The optimal proxy: acceptance at the ceiling.

Source: the optimal-transport value of SpecTr (2310.15141) and Hu et al. (2502.18779), reached by a proxy in the sense
of ResiSpec. Proof that it is exact and meets the ceiling:
proofs/formal/ceiling.v, ``optimal_exact`` and ``optimal_meets_ceiling``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from resispec_core.arrays import Array, divide, normalise, one, positive_part, zeros
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

    Every draft of token x gets an independent priority, uniform on the set I_x of length q(x); the sets tile
    [0, 1] and are placed so that the largest of n priorities belongs to x with probability
    ``k*(x) = clip(p, c₁q, c₂q)(x)``. Acceptance Σ min(p, k*), the ceiling of any exact rule.

    Exact for i.i.d. candidates: whatever law k the sets give, verifying the selected candidate once is speculative
    sampling with k in place of q. Cost: O(V log V) to set up, then O(n log V); one row for the resample.
    proofs/formal: ``optimal_exact``, ``optimal_acceptance`` and ``optimal_meets_ceiling``.
    """

    name = "optimal"
    draws = ("iid",)
    summary = "optimal proxy: the ceiling, by priorities (exact)"

    def plan(self, target: Array, draft: Array, candidates: int) -> OptimalPlan:
        proxy, levels, inside = optimal_proxy(target, draft, candidates)
        priorities = place(proxy, draft, candidates, inside)
        return OptimalPlan(target, priorities.selection_law(), levels, priorities)

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


def optimal_proxy(target: Array, draft: Array, candidates: int) -> tuple[Array, tuple[Any, Any], Array]:
    """k*, (c₁, c₂), and the mask of H, the first prefix of tokens by p/q that attains the ceiling.

    On H the scarcest tokens are raised to c₁·q until Σ_H k* = q(H)^n; off H the rest are cut to c₂·q until
    Σ k* = 1 − q(H)^n. Cost: O(V log V).
    """
    own = has_own_set(draft)
    drafted = np.flatnonzero(own)
    ratio = divide(target[drafted], draft[drafted])
    order = drafted[np.argsort(ratio, kind="stable")]
    ratio = divide(target[order], draft[order])
    start = zeros(1, like=target)
    p_below = np.concatenate([start, np.cumsum(target[order])])
    q_below = np.concatenate([start, np.cumsum(draft[order])])
    cut = int(np.argmin(p_below - q_below**candidates))
    proxy = np.where(own, target, 0 * target)
    below, above = order[:cut], order[cut:]
    # 1 − q(H)^n from the mass outside H, so that a small one keeps its digits.
    outside = draft[above].sum()
    rest = outside * sum(q_below[cut] ** power for power in range(candidates))
    low = _raised(ratio[:cut], target[below], draft[below], q_below[cut] ** candidates)
    high = _cut(ratio[cut:], target[above], draft[above], rest)
    inside = np.zeros(target.size, dtype=bool)
    inside[order[:cut]] = True
    proxy[order[:cut]] = np.maximum(target[order[:cut]], low * draft[order[:cut]])
    proxy[order[cut:]] = np.minimum(target[order[cut:]], high * draft[order[cut:]])
    return proxy, (low, high), inside


def _raised(ratio: Array, p: Array, q: Array, amount: Any) -> Any:
    """c₁ with ``Σ max(p, c₁q) = amount`` over tokens by ρ: the sum at c₁ = ρ_j raises those below j to it."""
    if ratio.size == 0:
        return 0 * amount
    full, open_ = np.cumsum(q), _sums_from(p)
    sums = ratio * (full - q) + open_
    raised = max(1, int(np.searchsorted(sums, amount, side="right")))
    kept = open_[raised] if raised < p.size else 0 * amount
    return (amount - kept) / full[raised - 1]


def _cut(ratio: Array, p: Array, q: Array, amount: Any) -> Any:
    """c₂ with ``Σ min(p, c₂q) = amount`` over tokens by ρ: the sum at c₂ = ρ_j holds those below j in full."""
    if ratio.size == 0:
        return 0 * amount
    held, open_ = np.cumsum(p) - p, _sums_from(q)
    first = min(int(np.searchsorted(held + ratio * open_, amount, side="left")), ratio.size - 1)
    return (amount - held[first]) / open_[first]


def _sums_from(values: Array) -> Array:
    """``Σ_{i ≥ j} values_i`` for every j, summed from the far end so that small tails stay sharp."""
    return np.cumsum(values[::-1])[::-1]

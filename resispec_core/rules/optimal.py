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
from resispec_core.errors import InputError
from resispec_core.laws import inverse_cdf
from resispec_core.rules.base import Outcome, SetRule, check_tokens, prepare
from resispec_core.rules.priorities import Priorities, place


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

    def verify(
        self,
        target: Array,
        draft: Array,
        tokens: Sequence[int],
        coins: Sequence[Any],
        draw: str | None = None,
    ) -> Outcome:
        """Run the rule on n + 2 coins: a priority for each candidate, then accept, then resample."""
        _, target, draft = prepare(self, target, draft, draw)
        check_tokens(tokens, draft.size)
        if len(coins) != len(tokens) + 2:
            raise InputError(f"{len(coins)} coins given, {len(tokens) + 2} needed")
        plan = self.plan(target, draft, len(tokens))
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
    drafted = np.flatnonzero(draft > 0)
    ratio = divide(target[drafted], draft[drafted])
    order = drafted[np.argsort(ratio, kind="stable")]
    ratio = divide(target[order], draft[order])
    start = zeros(1, like=target)
    p_below = np.concatenate([start, np.cumsum(target[order])])
    q_below = np.concatenate([start, np.cumsum(draft[order])])
    cut = int(np.argmin(p_below - q_below**candidates))
    share = q_below[cut] ** candidates
    proxy = np.where(draft > 0, target, 0 * target)
    low, high = _raised(ratio, p_below, q_below, cut, share), _cut(ratio, p_below, q_below, cut, 1 - share)
    inside = np.zeros(target.size, dtype=bool)
    inside[order[:cut]] = True
    proxy[order[:cut]] = np.maximum(target[order[:cut]], low * draft[order[:cut]])
    proxy[order[cut:]] = np.minimum(target[order[cut:]], high * draft[order[cut:]])
    return proxy, (low, high), inside


def _raised(ratio: Array, p_below: Array, q_below: Array, cut: int, amount: Any) -> Any:
    """c₁ with ``Σ_H max(p, c₁q) = amount``: the sum at c₁ = ρ_j raises the first j tokens to it."""
    if cut == 0:
        return 0 * p_below[0]
    sums = ratio[:cut] * q_below[:cut] + p_below[cut] - p_below[:cut]
    raised = max(1, int(np.searchsorted(sums, amount, side="right")))
    return (amount - (p_below[cut] - p_below[raised])) / q_below[raised]


def _cut(ratio: Array, p_below: Array, q_below: Array, cut: int, amount: Any) -> Any:
    """c₂ with ``Σ_{off H} min(p, c₂q) = amount``: the sum at c₂ = ρ_j holds the tokens below j in full."""
    if cut == ratio.size:
        return ratio[-1]
    sums = p_below[cut:-1] - p_below[cut] + ratio[cut:] * (q_below[-1] - q_below[cut:-1])
    first = min(int(np.searchsorted(sums, amount, side="left")), ratio.size - cut - 1) + cut
    return (amount - (p_below[first] - p_below[cut])) / (q_below[-1] - q_below[first])

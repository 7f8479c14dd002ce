"""ResiSpec as published: the proxy of Algorithm 1, with every open point named.

Source: arXiv 2608.24411. Not exact: the proxy depends on the token that was rejected, and what is owed
does not (docs/findings.md has the smallest witness).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resispec_core.arrays import (
    Array,
    at,
    column,
    divide,
    lifted,
    normalise,
    one,
    one_hot,
    positive_part,
    without,
)
from resispec_core.errors import InputError
from resispec_core.rules.base import SequentialRule, Stage, acceptance_ratio

REDISTRIBUTIONS = ("proportional", "waterfill", "uniform")
BUDGETS = ("local", "eq13")


@dataclass(frozen=True)
class ProxyShaping:
    """The pieces of one GetProxy call; arrays of shape (..., V), scalars of shape (...)."""

    budget: Array
    """Z."""
    projected: Array
    """min(Z·q, p), 0 at the rejected token."""
    deficit: Array
    """Δ = Z − Σ projected."""
    residual_mass: Array
    """r, after redistribution."""
    slack: Array
    """s."""
    proxy: Array
    """k = p − r + s."""


class ResiSpec(SequentialRule):
    """Accepts candidate x with min(1, R(x)/D(x)); after rejecting x₀ the target is norm((R − k)+) with
    the proxy k shaped for x₀.

    ``redistribution``: where the deficit goes, which the text leaves open. ``proportional`` to the
    remaining capacity; ``waterfill``, i.e. r = min(c·q, p) with c solved for Σr = Z; ``uniform``, the same
    amount to every token until it is full.
    ``budget``: ``local`` is Algorithm 1's Z = q(x₀) − p(x₀); ``eq13`` is the text's
    ``Z = max(min_{q>0} p/q, |q(x₀) − p(x₀)|)``.

    Per rejection, with budget ``local``: Σk = 1, k ≥ 0, k(x₀) = q(x₀), 0 ≤ r ≤ p, Σr = Σs = Z, r·s = 0.
    With ``eq13`` a larger Z can exceed what p − r can hold, and the slack beyond q(x₀) − p(x₀) has no
    token to go to; then Σr < Z or Σk < 1 (the law uses only norm(r), which stays defined).

    Not exact, for almost every (p, q) and every redistribution; over fixed candidates (``top-k``) it is, being the
    rule ``deterministic`` there. Cost: O(V log V) a rejection. proofs/formal: ``published_exact_iff``,
    ``published_biased``, ``proportional_law``, ``waterfilling_law`` and ``published_fixed_exact``.
    Source: ResiSpec (2608.24411), Definition 1, Eq. 12–13, Algorithm 1.
    """

    name = "resispec"
    draws = ("iid", "without-replacement", "top-k")
    summary = "published ResiSpec: proxy shaped by the rejected token (not exact)"
    batched = True
    residual_uses_token = True

    def __init__(self, redistribution: str = "proportional", budget: str = "local") -> None:
        if redistribution not in REDISTRIBUTIONS:
            raise InputError(
                f"redistribution {redistribution!r} is unknown; use {', '.join(REDISTRIBUTIONS)}"
            )
        if budget not in BUDGETS:
            raise InputError(f"budget {budget!r} is unknown; use {', '.join(BUDGETS)}")
        self.redistribution = redistribution
        self.budget = budget

    def accept(self, stage: Stage) -> Array:
        return acceptance_ratio(stage.residual, stage.draft)

    def reject(self, stage: Stage, token: Array) -> Array:
        shaped = self.shape(stage.residual, stage.draft, token)
        return normalise(shaped.residual_mass, fallback=stage.residual)

    def shape(self, target: Array, draft: Array, token: Array) -> ProxyShaping:
        """GetProxy of Algorithm 1 for the rejected ``token`` (shape (...), or a scalar)."""
        token = np.asarray(token)
        target = np.broadcast_to(target, (*token.shape, target.shape[-1]))
        draft = np.broadcast_to(draft, target.shape)
        local, budget = self.budget_for(target, draft, token)
        projected, residual_mass = self.fill(target, draft, token, budget)
        return self.formulate(target, token, local, budget, projected, residual_mass)

    def budget_for(self, target: Array, draft: Array, token: Array) -> tuple[Array, Array]:
        """Budgeting: q(x₀) − p(x₀), and Z."""
        local = at(draft, token) - at(target, token)
        return local, local if self.budget == "local" else _eq13(target, draft, local)

    def fill(self, target: Array, draft: Array, token: Array, budget: Array) -> tuple[Array, Array]:
        """Projection and redistribution: min(Z·q, p) off x₀, and r."""
        capacity = without(target, token)
        weights = without(draft, token)
        projected = np.minimum(column(budget) * weights, capacity)
        # A rejection by rounding alone, or Eq. 13, can ask for more than the other tokens hold.
        attainable = np.minimum(budget, capacity.sum(axis=-1))
        missing = positive_part(attainable - projected.sum(axis=-1))
        return projected, self._redistribute(projected, capacity, weights, attainable, missing)

    def formulate(
        self,
        target: Array,
        token: Array,
        local: Array,
        budget: Array,
        projected: Array,
        residual_mass: Array,
    ) -> ProxyShaping:
        """Proxy formulation: k = p − r + s with the slack at x₀."""
        slack = one_hot(token, target.shape[-1], like=target) * column(local)
        return ProxyShaping(
            budget=budget,
            projected=projected,
            deficit=budget - projected.sum(axis=-1),
            residual_mass=residual_mass,
            slack=slack,
            proxy=target - residual_mass + slack,
        )

    def _redistribute(
        self, projected: Array, capacity: Array, weights: Array, attainable: Array, missing: Array
    ) -> Array:
        room = capacity - projected
        if self.redistribution == "proportional":
            share = divide(missing, room.sum(axis=-1))
            return projected + column(share) * room
        if self.redistribution == "uniform":
            return projected + capped_fill(np.full_like(room, one(room)), room, missing)
        filled = capped_fill(weights, capacity, attainable)
        undrafted = np.where(weights == 0, capacity, 0 * capacity)
        rest = positive_part(attainable - filled.sum(axis=-1))
        return filled + column(divide(rest, undrafted.sum(axis=-1))) * undrafted


def capped_fill(weights: Array, capacity: Array, amount: Array) -> Array:
    """``min(c·weights, capacity)`` with the scalar c that makes the sum ``amount``.

    ``weights``, ``capacity``: (..., V), non-negative; ``amount``: (...). Where the amount exceeds what the
    weighted tokens hold, each of them is filled to its capacity. Cost: O(V log V).
    """
    weights = lifted(weights)
    fill_level = np.where(weights == 0, 0 * capacity, divide(capacity, weights))
    order = np.argsort(fill_level, axis=-1, kind="stable")
    level = np.take_along_axis(fill_level, order, axis=-1)
    held_own = np.where(weights == 0, 0 * capacity, capacity)
    held = np.cumsum(np.take_along_axis(held_own, order, axis=-1), axis=-1)
    # Weight of token j and of all that fill later; summed from the far end, so that small tails stay sharp.
    still_open = np.cumsum(np.take_along_axis(weights, order, axis=-1)[..., ::-1], axis=-1)[..., ::-1]
    held_before = held - np.take_along_axis(held_own, order, axis=-1)
    # The sum at c = level[j] is held_before[j] + level[j]·still_open[j], non-decreasing in j.
    reached = held_before + level * still_open >= column(amount)
    first = np.argmax(reached, axis=-1)
    # c lies between two neighbouring levels. Enforced, since amount − held is a difference of near-equal masses:
    # over a small open weight its rounding would lower c below tokens that are already full.
    previous = np.where(first > 0, at(level, np.maximum(first - 1, 0)), 0 * at(level, first))
    c = np.clip(divide(amount - at(held_before, first), at(still_open, first)), previous, at(level, first))
    with np.errstate(over="ignore"):  # an infinite share is capped too
        filled = np.minimum(column(c) * weights, capacity)
    return np.where(column(reached.any(axis=-1)), filled, held_own)


def _eq13(target: Array, draft: Array, local: Array) -> Array:
    ratio = divide(target, draft)
    largest = ratio.max(axis=-1, keepdims=True)
    smallest = np.where(draft == 0, largest, ratio).min(axis=-1)
    return np.maximum(smallest, np.abs(local))

"""A set rule for candidates drawn without replacement: near the ceiling with a few rankings.

Derivation: proofs/without_replacement.md, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from resispec_core.arrays import Array, divide, is_rational, normalise, one, positive_part, zeros
from resispec_core.errors import InputError
from resispec_core.inclusion import SETS, top_ranked_law
from resispec_core.rules.base import SetRule

STEPS = 64
"""A new ranking gets one of the weights 1/64 … 64/64."""


class RankedPlan(NamedTuple):
    """The rankings, their weights, and the law of the candidate they select."""

    target: Array
    ranks: list[Array]
    """Rank of every token; the drawn token of highest rank is selected."""
    weights: list[Any]
    proxy: Array
    """k, the law of the selected candidate."""


class Ranked(SetRule):
    """Picks one of a few rankings by their weights, selects the candidate ranked highest, verifies it once.

    The selected candidate has the law k = Σ weight·k_ranking, with k_ranking(x) = W(tokens up to x) − W(tokens below
    x) and W(H) the probability that all candidates fall in H. It is accepted with min(1, p/k), else the token comes
    from norm((p − k)+): speculative sampling with k in place of q, so exact whatever the rankings. These are chosen to
    make Σ min(p, k) large: first by p/q ascending; then each by how short k is of p, mixed in with the weight (of 64)
    that helps most (Frank–Wolfe on the polytope of all selection laws, whose maximum is the ceiling).

    Exact for candidates drawn without replacement (proofs/formal: ``ranked_exact``, ``ranked_mixture`` and
    ``ranked_acceptance``, which hold for any law of the candidates). ``orders``: the most rankings. Cost to set up:
    for each of them a sort and the sums of ``inclusion`` (O(V) for n ≤ 2, else about a hundred passes over the row);
    then O(n).
    """

    name = "ranked"
    draws = ("without-replacement",)
    summary = "the highest of a few rankings, verified once (exact, near the ceiling)"

    def __init__(self, orders: int = 8) -> None:
        if orders < 1:
            raise InputError(f"orders is {orders}; at least one ranking is needed")
        self.orders = orders

    def plan(self, target: Array, draft: Array, candidates: int) -> RankedPlan:
        drafted = np.flatnonzero(draft > 0)
        p, q = target[drafted], draft[drafted]
        with np.errstate(over="ignore"):  # a mass over a subnormal one is as good as infinite
            order = _ascending(p / q, p)
        proxy = _selected(q, order, candidates)
        rankings, weights = [order], [one(draft)]
        stalled = 0
        for turn in range(2 * self.orders if candidates > 1 else 0):
            if len(weights) == self.orders or stalled == len(URGENCIES):
                break
            order = _ascending(URGENCIES[turn % len(URGENCIES)](p, q, proxy), p)
            new = _selected(q, order, candidates)
            share = _best_share(p, proxy, new)
            stalled = stalled + 1 if share == 0 else 0
            if stalled:
                continue
            proxy = (1 - share) * proxy + share * new
            weights = [(1 - share) * weight for weight in weights] + [share]
            rankings.append(order)
        law = zeros(draft.size, like=draft)
        law[drafted] = proxy
        return RankedPlan(target, [_ranks(drafted[own], draft.size) for own in rankings], weights, law)

    def select(self, plan: RankedPlan, tokens: Sequence[int]) -> Array:
        chosen = zeros(len(tokens), like=plan.target)
        for ranks, weight in zip(plan.ranks, plan.weights, strict=True):
            winner = int(np.argmax(ranks[list(tokens)]))
            chosen[winner] = chosen[winner] + weight
        return chosen

    def accept(self, plan: RankedPlan) -> Array:
        with np.errstate(over="ignore"):
            return np.minimum(divide(plan.target, plan.proxy), one(plan.target))

    def residual(self, plan: RankedPlan) -> Array:
        return normalise(positive_part(plan.target - plan.proxy), fallback=plan.target)

    def selected_law(self, plan: RankedPlan) -> Array:
        return plan.proxy


def _selected(draft: Array, order: Array, candidates: int) -> Array:
    law = top_ranked_law(draft, order, candidates)
    if law is None:
        raise InputError(
            f"{candidates} candidates from {draft.size} tokens need more than {SETS} sets in rationals; pass float laws"
        )
    return law


def _ascending(key: Array, p: Array) -> Array:
    """Ties by p: of tokens that lack as much, the likelier one goes first."""
    by_mass = np.argsort(p, kind="stable")
    return by_mass[np.argsort(key[by_mass], kind="stable")]


def _lack(p: Array, q: Array, proxy: Array) -> Array:
    """Tokens still short of p by what they lack per draft mass; after them the others by their surplus."""
    with np.errstate(over="ignore"):
        return np.where(p >= proxy, (p - proxy) / q, -divide(positive_part(proxy - p), proxy))


def _relative_lack(p: Array, q: Array, proxy: Array) -> Array:
    """What each token lacks, between −1 and 1: brings forward those that have almost nothing yet."""
    del q
    return divide(p - proxy, p + proxy)


URGENCIES = (_lack, _relative_lack)


def _best_share(p: Array, old: Array, new: Array) -> Any:
    shares = [j * one(p) / STEPS for j in range(STEPS + 1)]
    # A concave function of the share: stop at the first step that gains nothing.
    best, value = shares[0], np.minimum(p, old).sum()
    for share in shares[1:]:
        found = np.minimum(p, (1 - share) * old + share * new).sum()
        if found <= value + (0 if is_rational(p) else 1e-13):
            break
        best, value = share, found
    return best


def _ranks(order: Array, size: int) -> Array:
    ranks = np.full(size, -1)
    ranks[order] = np.arange(order.size)
    return ranks

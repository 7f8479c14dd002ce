"""How often draws without replacement all fall into a set: the quantity behind that draw's ceiling.

Write W_n(H) for P(all n draws in H), q(H) for the mass of H and c = 1 − q(H). The first draw outside H comes after a
set S ⊂ H of k < n tokens, in any order, so

    1 − W_n(H) = c · Σ_{k<n} J_k(H),    J_k(H) = Σ_{S ⊂ H, |S| = k} g(S),
    g(S) = Σ_{x ∈ S} q(x) g(S∖x) / (1 − q(S)),   g(∅) = 1.

Every term is positive, so nothing cancels. J_0 = 1 and J_1 = Σ_H q/(1 − q). In general, with independent exponential
arrival times of rate q(x) (draws without replacement are the order of arrival),

    J_k(H) = ∫₀^∞ e^{−t} e_k({e^{q(x)t} − 1 : x ∈ H}) dt,     e_k the elementary symmetric polynomial.

Derivation and proof that prefixes suffice: proofs/without_replacement.md.
"""

from __future__ import annotations

from itertools import combinations
from math import comb, factorial
from typing import Any

import numpy as np

from resispec_core.arrays import Array, is_rational, one, sum_of_others, sums_from, zeros

QUADRATURE_ERROR = 1e-13
"""Bound on the absolute error of ``missing_by_prefix`` from quadrature (float64, n ≥ 3); rounding comes on top."""
CERTAIN = 2.0**-64
"""Tokens outweighing all lighter ones by this factor are drawn first, up to an error of n times it (floats)."""
SETS = 2**18
"""The most sets S that the rational sum lists; C(V, n − 1) of them are needed."""


def missing_by_prefix(draft: Array, candidates: int) -> Array | None:
    """``1 − W_n`` for every prefix of ``draft`` (positive masses in the wanted order, sum 1): shape (V + 1,).

    ``candidates`` ≤ V. Rationals: exact, O(V) for n ≤ 2, else C(V, n − 1) sets; None where those exceed ``SETS``.
    Floats: O(V) for n ≤ 2; else a trapezoidal sum in log t, O(n·V) for each of 60 to 150 nodes, within
    ``QUADRATURE_ERROR`` plus V·eps.
    """
    first = 0 if is_rational(draft) else _drawn_first(draft, candidates)
    if first:
        return _after_certain_draws(draft, candidates, first)
    outside = sums_from(draft)
    total = np.full(draft.size + 1, one(draft), dtype=draft.dtype)
    if candidates > 1:
        total[1:] += np.cumsum(draft / sum_of_others(draft))
    if candidates > 2:
        if is_rational(draft):
            if comb(draft.size, candidates - 1) > SETS:
                return None
            total = total + _listed(draft, candidates)
        else:
            total = total + _quadrature(draft, candidates)
    return np.minimum(outside * total, one(draft))


def _drawn_first(draft: Array, candidates: int) -> int:
    """How many of the heaviest tokens (fewer than n) are certain to be the first drawn, in some order."""
    order = np.argsort(-draft)[: candidates - 1]
    for count in range(1, candidates):
        lighter = np.delete(draft, order[:count]).sum()
        if lighter <= CERTAIN * draft[order[count - 1]]:
            return count
    return 0


def _after_certain_draws(draft: Array, candidates: int, count: int) -> Array | None:
    """All of the ``count`` heaviest must be in the prefix; then the other draws come from the rest."""
    heavy = np.sort(np.argsort(-draft)[:count])
    light = np.delete(draft, heavy) * 2.0**100  # the reciprocal of a subnormal sum would be infinite
    inside = missing_by_prefix(light / light.sum(), candidates - count)
    assert inside is not None
    lengths = np.arange(draft.size + 1)
    result: Array = np.where(
        lengths > heavy[-1], inside[lengths - np.searchsorted(heavy, lengths)], one(draft)
    )
    return result


def _listed(draft: Array, candidates: int) -> Array:
    """Σ_{2 ≤ k < n} J_k of every prefix, set by set; a set counts from its last token on."""
    increments = zeros(draft.size + 1, like=draft)
    known: dict[tuple[int, ...], Any] = {(): one(draft)}
    for size in range(1, candidates):
        larger = {}
        for chosen in combinations(range(draft.size), size):
            weight = sum(
                draft[token] * known[chosen[:place] + chosen[place + 1 :]]
                for place, token in enumerate(chosen)
            )
            larger[chosen] = weight / (1 - sum(draft[token] for token in chosen))
            if size > 1:
                increments[chosen[-1] + 1] += larger[chosen]
        known = larger
    return np.cumsum(increments)


def _quadrature(draft: Array, candidates: int) -> Array:
    """The same in floats, by the integral.

    The n − 1 heaviest tokens are kept apart: their factor e^{−t}Π(e^{qt} − 1 or 1) is a product of probabilities, and
    for the others q·t stays below the last node's 1/R, so nothing overflows.
    """
    heavy = np.sort(np.argpartition(draft, -(candidates - 1))[-(candidates - 1) :])
    light = np.delete(draft, heavy)
    # Prefix j holds the light tokens before light_count[j] and the heavy ones before heavy_count[j].
    heavy_count = np.searchsorted(heavy, np.arange(draft.size + 1))
    light_count = np.arange(draft.size + 1) - heavy_count
    rest = light.sum()
    result = np.zeros(draft.size + 1)
    nodes, weights = _nodes(candidates, rest)
    for t, weight in zip(nodes, weights, strict=True):
        symmetric = _elementary(np.expm1(light * t), candidates)
        arrived = _arrival_counts(draft[heavy] * t)
        share = np.zeros((len(heavy) + 1, candidates))
        for size in range(candidates):
            least, most = max(0, 2 - size), candidates - size
            share[:, size] = arrived[:, least:most].sum(axis=1)
        scale = weight * np.exp(-rest * t)
        for size in range(candidates):
            result += scale * share[heavy_count, size] * symmetric[size][light_count]
    return result


def _elementary(values: Array, candidates: int) -> list[Array]:
    """e_0 … e_{n−1} of every prefix of ``values``."""
    result = [np.ones(values.size + 1)]
    for _ in range(candidates - 1):
        result.append(np.concatenate([[0.0], np.cumsum(values * result[-1][:-1])]))
    return result


def _arrival_counts(exponents: Array) -> Array:
    """Row i: e^{−Σ exponents}·e_j(e^{exponent} − 1 of the first i), for j = 0 …, from probabilities alone."""
    count = exponents.size
    here, away = -np.expm1(-exponents), np.exp(-exponents)
    rows = np.zeros((count + 1, count + 1))
    rows[0, 0] = 1.0
    for i in range(count):
        rows[i + 1] = rows[i] * away[i]
        rows[i + 1, 1:] += rows[i, :-1] * here[i]
    # Tokens after the prefix have not arrived.
    later = np.concatenate([np.cumprod(away[::-1])[::-1], [1.0]])
    return rows * later[:, None]


def _nodes(candidates: int, rest: float) -> tuple[Array, Array]:
    """Nodes t and weights of ∫ f dt for f a positive mixture of t^k e^{−λt}, 2 ≤ k < n, rest ≤ λ ≤ 1.

    e^{−t}Π_{x∈S}(e^{q(x)t} − 1) is such a mixture, λ between 1 − q(S) and 1. With t = e^x the trapezoidal sum of one
    member has, by Poisson summation, a relative error of at most 2·Σ_m |Γ(k + 1 + 2πim/h)|/k!, whatever λ; the
    ends are cut where incomplete gamma functions leave as little.
    """
    from scipy.special import gammainc, gammaincc  # here, so that importing the rules stays light

    orders = np.arange(2, candidates)
    target = QUADRATURE_ERROR / 4
    step = 0.5
    while _aliasing(orders, step) > target:
        step *= 0.95
    low = -1.0
    while gammainc(orders + 1, np.exp(low + step)).max() > target:
        low -= step
    high = 1.0
    while gammaincc(orders + 1, np.exp(high - step)).max() > target:
        high += step
    nodes = np.exp(np.arange(low, high - np.log(rest) + step, step))
    return nodes, step * nodes


def _aliasing(orders: Array, step: float) -> float:
    from scipy.special import loggamma

    shifts = 2j * np.pi * np.arange(1, 4)[:, None] / step
    size = np.exp(loggamma(orders + 1 + shifts).real).sum(axis=0)
    return float((2 * size / [factorial(int(k)) for k in orders]).max())


def top_ranked_law(draft: Array, order: Array, candidates: int) -> Array | None:
    """The law of the last of n drawn tokens in ``order`` (a permutation of the drafted tokens): shape (V,).

    W_n of the prefix that ends at a token less W_n of the one before. Costs, errors and None as for
    ``missing_by_prefix``.
    """
    missing = missing_by_prefix(draft[order], candidates)
    if missing is None:
        return None
    law = zeros(draft.size, like=draft)
    law[order] = np.maximum(missing[:-1] - missing[1:], 0 * missing[0])
    return law

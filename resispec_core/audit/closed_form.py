"""The published ResiSpec rule at any vocabulary size, in O(V log V).

After rejecting x the proxy depends on x only through the budget Z_x = q(x) − p(x) and one or two scalars, and
on the zeroed entry. So the sum over every rejected token becomes prefix sums over tokens sorted by Z or by
ρ = p/q. Derivation: docs/closed_forms.md; checked there and in the tests against full enumeration in
rationals. All functions run on float64 and on object arrays of ``Fraction``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from resispec_core.arrays import (
    Array,
    divide,
    is_rational,
    lifted,
    positive_part,
    sums_before,
    sums_from,
    zeros,
)


def prefix_rounding(size: int, sample: Array) -> float:
    """Bound on the total variation error of these forms from float64: 0.0 in rationals.

    Each of the four running sums over at most V tokens is off by at most V·eps/2 of itself, and each enters the
    law with mass at most 1; twice that for the products around them.
    """
    return 0.0 if is_rational(sample) else float(4 * size * np.finfo(np.float64).eps)


class Rejections(NamedTuple):
    """The tokens a first candidate can be rejected at, with the budget each leaves."""

    tokens: Array
    budgets: Array
    """Z_x = q(x) − p(x), also the probability that x is drawn and rejected."""
    left_out: Any
    """Mass of the rejections that these closed forms do not cover (Eq. 13's larger budgets)."""


def rejections(target: Array, draft: Array, budget: str = "local") -> Rejections:
    """The over-drafted tokens; with budget ``eq13`` only those whose Z is q(x) − p(x) all the same."""
    excess = draft - target
    covered = excess > 0
    left_out = 0 * excess.sum()
    if budget == "eq13":
        drafted = draft > 0
        smallest = divide(target[drafted], draft[drafted]).min()
        left_out = excess[covered & (excess < smallest)].sum()
        covered = covered & (excess >= smallest)
    tokens = np.flatnonzero(covered)
    return Rejections(tokens, excess[tokens], left_out)


def first_stage_law(target: Array, draft: Array, redistribution: str, budget: str = "local") -> Array:
    """The output law at n = 1, less the mass of rejections left out (``rejections(...).left_out``).

    ``redistribution``: ``proportional`` or ``waterfill`` (``uniform`` has no such form).
    """
    accepted = np.minimum(target, draft)
    found = rejections(target, draft, budget)
    if found.tokens.size == 0:
        return accepted
    if redistribution == "proportional":
        return accepted + _proportional(target, draft, found)
    if redistribution == "waterfill":
        with np.errstate(over="ignore"):  # c·q beyond float64 is capped by p all the same
            return accepted + _waterfill(target, draft, found)
    raise ValueError(f"no closed form for redistribution {redistribution!r}")


def second_acceptance(target: Array, draft: Array, budget: str = "local") -> Array:
    """Mass accepted at candidate 2 on each token, whatever the redistribution.

    For y ≠ x: Z_x·q(y) where Z_x ≤ ρ(y), else p(y).
    """
    found = rejections(target, draft, budget)
    if found.tokens.size == 0:
        return zeros(target.size, like=target)
    ones = found.budgets * 0 + 1
    return _minimum_sums(target, draft, found, found.budgets, ones)


def _minimum_sums(target: Array, draft: Array, found: Rejections, levels: Array, weights: Array) -> Array:
    """``Σ_{x≠y} weights_x · min(levels_x·q(y), p(y))`` for every y, by two prefix sums over sorted levels."""
    order = np.argsort(levels)
    level, weight = levels[order], weights[order]
    below, above = sums_before(weight * level), sums_from(weight)
    # Splitting where level·q(y) ≤ p(y) as products would need a sort per token; ρ(y) gives the same split.
    drafted = draft > 0
    ratio = divide(target, draft)
    place = np.searchsorted(level, ratio, side="right")
    sums = np.where(drafted, draft * below[place] + target * above[place], zeros(target.size, like=target))
    own = weights * np.minimum(levels * draft[found.tokens], target[found.tokens])
    sums[found.tokens] = sums[found.tokens] - own
    return positive_part(sums)


def _proportional(target: Array, draft: Array, found: Rejections) -> Array:
    own = target[found.tokens]
    projected = _capped_total(target, draft, found.budgets) - np.minimum(
        found.budgets * draft[found.tokens], own
    )
    room = 1 - own - projected
    # A room of zero means nothing is missing; rounding must not push the share outside [0, 1].
    share = np.clip(divide(positive_part(found.budgets - projected), positive_part(room)), 0, 1)
    extra = target * share.sum()
    extra[found.tokens] = extra[found.tokens] - own * share
    return _minimum_sums(target, draft, found, found.budgets, 1 - share) + extra


def _waterfill(target: Array, draft: Array, found: Rejections) -> Array:
    drafted = draft > 0
    draft = lifted(draft)  # scales the levels c down by as much; only c·q matters
    level, full = _water_levels(target, draft, found)
    # Tokens full before the budget is spent: every drafted token is at capacity, the rest goes to q = 0.
    ones = found.budgets * 0 + 1
    result = _minimum_sums(target, draft, found, level, ones)
    undrafted = np.where(drafted, 0 * target, target)
    spare = np.where(full, found.budgets - (target[drafted].sum() - target[found.tokens]), 0 * found.budgets)
    return result + divide(positive_part(spare).sum(), undrafted.sum()) * undrafted


def _capped_total(target: Array, draft: Array, levels: Array) -> Array:
    """``M(Z) = Σ_y min(Z·q(y), p(y))`` for every Z in ``levels``."""
    ratio, held, still_open = _fill_table(target, draft)
    place = np.searchsorted(ratio, levels, side="right")
    return held[place] + levels * still_open[place]


def _fill_table(target: Array, draft: Array) -> tuple[Array, Array, Array]:
    """Drafted tokens by ρ ascending: ρ, Σp of the first j, Σq from j on (both of length count + 1)."""
    drafted = np.flatnonzero(draft > 0)
    ratio = divide(target[drafted], draft[drafted])
    order = np.argsort(ratio)
    return ratio[order], sums_before(target[drafted][order]), sums_from(draft[drafted][order])


def _water_levels(target: Array, draft: Array, found: Rejections) -> tuple[Array, Array]:
    """For every rejected x the c with ``Σ_{y≠x} min(c·q(y), p(y)) = Z_x``, and where no c suffices.

    Bisection over the sorted ρ for all x at once; in between the sum is linear in c. Where every drafted
    token is full, c is the largest ρ.
    """
    ratio, held, still_open = _fill_table(target, draft)
    p_own, q_own = target[found.tokens], draft[found.tokens]

    def filled(place: Array) -> Array:
        c = ratio[place]
        return held[place] + c * still_open[place] - np.minimum(c * q_own, p_own)

    low = np.zeros(found.tokens.size, dtype=int)
    high = np.full(found.tokens.size, ratio.size - 1)
    full = filled(high) < found.budgets
    while (low < high).any():
        middle = (low + high) // 2
        enough = filled(middle) >= found.budgets
        high = np.where(enough & (low < high), middle, high)
        low = np.where(enough | (low >= high), low, middle + 1)
    # As quotients, like the table: p ≥ (p/q)·q can fail by rounding, and would count x as full at its own level.
    own_open = divide(p_own, q_own) >= ratio[low]
    slope = still_open[low] - np.where(own_open, q_own, 0 * q_own)
    missing = found.budgets - held[low] + np.where(own_open, 0 * p_own, p_own)
    # Between two neighbouring levels, whatever the rounding of a small ``missing`` over a small ``slope``.
    previous = np.where(low > 0, ratio[np.maximum(low - 1, 0)], 0 * ratio[low])
    return np.where(full, ratio[-1], np.clip(divide(missing, slope), previous, ratio[low])), full

"""One pair of laws as the certified sums read it: tokens by ρ = p/q, with the sums below any level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from resispec_core.arrays import Array, sum_of_others


class Row(NamedTuple):
    """The tokens with p > 0 or q > 0, ρ ascending, and one more that stands for "no token" (p = q = 0).

    All float64, of shape (K + 1,) unless stated; every index below is into these arrays.
    """

    target: Array
    draft: Array
    ratio: Array
    """ρ = p/q; infinite where q = 0 (and where the quotient is beyond float64)."""
    others: Array
    """1 − q, summed from the other tokens."""
    held: Array
    """(K + 2,): Σ p of the first j tokens."""
    drawn: Array
    """(K + 2,): Σ q of the first j tokens."""
    open: Array
    """(K + 2,): Σ q of the tokens from j on."""
    tokens: Array
    """(K,): the token ids."""

    @property
    def nobody(self) -> int:
        """The index that stands for no token."""
        return self.tokens.size

    def below(self, levels: Array) -> Array:
        """How many tokens have ρ < level."""
        return np.searchsorted(self.ratio, levels)

    def excess(self, mass: Array, place: Array) -> Array:
        """``Σ_y (mass·q(y) − p(y))+`` over every token, with ``place = below(mass)``."""
        return np.maximum(mass * self.drawn[place] - self.held[place], 0.0)

    def capped(self, level: Array, index: Array) -> Array:
        """``min(level·q, p)`` at each index."""
        return np.minimum(level * self.draft[index], self.target[index])


def row_of(target: Array, draft: Array) -> Row:
    """The tables of one pair of float64 laws of shape (V,). Cost: one argsort and about ten passes."""
    if (target > 0).all() and (draft > 0).all():
        support, p, q = None, target, draft
    else:
        support = np.flatnonzero((target > 0) | (draft > 0))
        p, q = target[support], draft[support]
    with np.errstate(over="ignore", divide="ignore"):
        ratio = p / q
    order = np.argsort(ratio)
    others = sum_of_others(q)[order]
    p, q, ratio = (np.append(values[order], end) for values, end in ((p, 0.0), (q, 0.0), (ratio, np.inf)))
    start = np.zeros(1)
    return Row(
        p,
        q,
        ratio,
        np.append(others, 1.0),
        np.concatenate([start, np.cumsum(p)]),
        np.concatenate([start, np.cumsum(q)]),
        # From the far end, so that each entry is sharp relative to itself.
        np.concatenate([np.cumsum(q[::-1])[::-1], start]),
        order if support is None else support[order],
    )

"""One pair of laws as the certified sums read it: tokens by ρ = p/q, with the sums below any level."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from resispec_core.arrays import Array, running_sums, sum_of_others, sums_before, sums_from
from resispec_core.audit.certify.search import counts_below


@dataclass(frozen=True)
class Row:
    """The tokens with p > 0 or q > 0, ρ ascending, and one more that stands for "no token" (p = q = 0).

    All float64, of shape (K + 1,) unless stated; every index elsewhere in this package is into these arrays.
    """

    target: Array
    draft: Array
    ratio: Array
    """ρ = p/q; infinite where q = 0 (and where the quotient is beyond float64)."""
    others: Array
    """1 − q, summed from the other tokens."""
    tokens: Array
    """(K,): the token ids."""

    @property
    def nobody(self) -> int:
        """The index that stands for no token."""
        return self.tokens.size

    @cached_property
    def held(self) -> Array:
        """(K + 2,): Σ p of the first j tokens."""
        return sums_before(self.target)

    @cached_property
    def open(self) -> Array:
        """(K + 2,): Σ q of the tokens from j on; summed from the far end, so that small tails stay sharp."""
        return sums_from(self.draft)

    @cached_property
    def _rejected(self) -> tuple[Array, Array]:
        """Σ p and Σ q of the first j tokens, up to those with ρ < max (q − p): no rejection is likelier."""
        end = int(np.searchsorted(self.ratio, (self.draft - self.target).max()))
        return running_sums(self.target[:end], self.draft[:end])

    def below(self, levels: Array) -> Array:
        """How many tokens have ρ < level."""
        return counts_below(self.ratio, levels)

    def excess(self, mass: Array, place: Array) -> Array:
        """``Σ_y (mass·q(y) − p(y))+`` over every token for ``mass`` ≤ max (q − p), ``place = below(mass)``."""
        held, drawn = self._rejected
        return np.maximum(mass * drawn[place] - held[place], 0.0)

    def drawn(self, place: Array) -> Array:
        """Σ q of the first ``place`` tokens, or of those with ρ < max (q − p) where they are fewer."""
        drawn = self._rejected[1]
        return drawn[np.minimum(place, drawn.size - 1)]

    def capped(self, level: Array | float, index: Array | slice) -> Array:
        """``min(level·q, p)`` at each index."""
        return np.minimum(level * self.draft[index], self.target[index])


def row_of(target: Array, draft: Array) -> Row:
    """The tables of one pair of float64 laws of shape (V,). Cost: one argsort and a few passes."""
    support = None
    if not ((target > 0).all() and (draft > 0).all()):
        support = np.flatnonzero((target > 0) | (draft > 0))
        target, draft = target[support], draft[support]
    with np.errstate(over="ignore", divide="ignore"):
        ratio = target / draft
    order = np.argsort(ratio)
    others = sum_of_others(draft)
    ends = ((target, 0.0), (draft, 0.0), (ratio, np.inf), (others, 1.0))
    p, q, ratio, others = (_in_order(values, end, order) for values, end in ends)
    return Row(p, q, ratio, others, order if support is None else support[order])


def _in_order(values: Array, end: float, order: Array) -> Array:
    found = np.empty(order.size + 1)
    np.take(values, order, out=found[:-1], mode="clip")  # "clip" only lets it write in place
    found[-1] = end
    return found

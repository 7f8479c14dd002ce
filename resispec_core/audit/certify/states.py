"""The first two rejections of a path: every first one, the likeliest pairs, and what is known of the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from resispec_core.arrays import Array
from resispec_core.audit.certify.owed import Owed, owed
from resispec_core.audit.certify.row import Row
from resispec_core.audit.certify.spread import Spread


class Budget(NamedTuple):
    """How much is listed; a larger one costs time in proportion and narrows the bracket."""

    pairs: int = 2**18
    """Pairs of rejected tokens at most (those of two different tokens)."""
    cells: int = 2**20
    """Triples at most, after pairs of nearly equal probability were grouped."""
    heavy: int = 32
    """Tokens of largest q that pairs are only grouped by, never across."""
    paths: int = 32
    """Rejection paths followed per level for a rule without a form of its own."""


class First(NamedTuple):
    """Paths after one rejection: entry x for the token at x of the ``Row``, up to the last over-drafted one."""

    mass: Array
    """Z = q − p: the probability of the path."""
    owed: Owed

    @property
    def tokens(self) -> slice:
        """The rejected tokens."""
        return slice(0, self.mass.size)

    def at(self, row: Row, which: Array | slice, index: Array | slice) -> Array:
        """What path ``which`` owes at ``index``, its own hole ignored."""
        level, weight, share = self.owed.level[which], self.owed.weight[which], self.owed.share[which]
        return weight * row.capped(level, index) + share * row.target[index]

    def inherit(self, row: Row, spread: Spread, which: Array, share: Array) -> None:
        """Adds shares of what the paths ``which`` owed, their holes ignored."""
        total = np.bincount(which, weights=share, minlength=self.mass.size)
        spread.add(self.owed.level, total * self.owed.weight, self.owed.place)
        spread.add_target(float((total * self.owed.share).sum()))


class Pairs(NamedTuple):
    """Paths after two rejections."""

    x: Array
    """The first rejected token, a hole, and so the entry of ``First`` that the path began with."""
    y: Array
    """The second rejected token; ``row.nobody`` where it was x again."""
    mass: Array
    owed: Owed

    def at(self, row: Row, first: First, index: Array) -> Array:
        """What each pair owes at ``index``, its holes ignored (0 for ``row.nobody``)."""
        kept = self.owed.weight * row.capped(self.owed.level, index)
        return kept + self.owed.share * first.at(row, self.x, index)


class Tail(NamedTuple):
    """The pairs of two different tokens that are not listed."""

    largest: float
    """None has a probability above this."""
    mass: float
    """What they have together."""
    through: Array
    """(K + 1,): what those with a hole at each token have together."""


def first_states(row: Row, redistribution: str) -> First:
    """Every first rejection. O(V) and one search."""
    over = int(np.searchsorted(row.ratio, 1.0))
    mass = row.draft[:over] - row.target[:over]  # positive: a rounded quotient is below 1 only where p < q
    return First(mass, owed(row, mass, row.others[:over], (np.arange(over),), redistribution))


def pair_states(row: Row, first: First, redistribution: str, budget: Budget) -> tuple[Pairs, Tail]:
    """The second rejections, in O(V + pairs): a token with ρ < Z (owed p, drawn with Z·q), or the hole again."""
    reach = row.below(first.mass)
    x, y, largest = _listed(row, first.mass, reach, budget.pairs)
    mass = first.mass[x] * row.draft[y] - row.target[y]
    keep = (mass > 0) & (x != y)
    x, y, mass = x[keep], y[keep], mass[keep]
    tail = _tail(row, first, reach, x, y, mass, largest)
    again = np.arange(first.mass.size)
    x, drawn = np.concatenate([x, again]), np.concatenate([y, again])
    mass = np.concatenate([mass, first.mass * row.draft[first.tokens]])
    y = np.concatenate([y, np.full(again.size, row.nobody)])
    stay = first.mass[x] * row.others[drawn]
    return Pairs(x, y, mass, owed(row, mass, stay, (x, y), redistribution)), tail


def _listed(row: Row, mass: Array, reach: Array, most: int) -> tuple[Array, Array, float]:
    """Pairs (entry of ``mass``, token) worth listing, and a bound on the probability of any other."""
    if int(reach.sum()) <= most:
        which, y = pairs_below(reach)
        return which, y, 0.0
    by_draft = np.argsort(-row.draft[: int(reach.max())])
    counts, largest = cut_off(row.draft[by_draft], mass, most)
    which, place = pairs_below(counts)
    return which, by_draft[place], largest


def cut_off(falling: Array, mass: Array, most: int) -> tuple[Array, float]:
    """For every path how many of the tokens (``falling``: their q, largest first) have mass·q above a power of two.

    The smallest power with at most ``most`` of them in all, and that power.
    """

    def wanted(halvings: int) -> Array:
        with np.errstate(over="ignore"):
            return np.searchsorted(-falling, -(2.0**-halvings / mass))

    low, high = 0, 1000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if int(wanted(middle).sum()) <= most else (low, middle)
    return wanted(low), 2.0**-low


def pairs_below(counts: Array) -> tuple[Array, Array]:
    """All (i, j) with 0 ≤ j < counts[i], as two arrays."""
    which = np.repeat(np.arange(counts.size), counts)
    start = np.cumsum(counts) - counts
    return which, np.arange(which.size) - start[which]


def _tail(row: Row, first: First, reach: Array, x: Array, y: Array, mass: Array, largest: float) -> Tail:
    """Totals over all pairs from sums below levels, less the listed ones."""
    size = row.target.size
    if largest == 0:
        return Tail(0.0, 0.0, np.zeros(size))
    here = first.tokens
    own = np.maximum(first.mass * row.draft[here] - row.target[here], 0.0)
    by_x, by_y = np.zeros(size), np.zeros(size)
    by_x[here] = row.excess(first.mass, reach) - own
    # Of a token y the first rejections with Z > ρ(y) are those whose reach goes beyond it.
    more = np.cumsum(np.bincount(reach, minlength=size + 1)[::-1])[::-1][1:]
    budgets = np.cumsum(np.bincount(reach, weights=first.mass, minlength=size + 1)[::-1])[::-1][1:]
    by_y += np.maximum(row.draft * budgets - row.target * more, 0.0)
    by_y[here] -= own
    by_x -= np.bincount(x, weights=mass, minlength=size)
    by_y -= np.bincount(y, weights=mass, minlength=size)
    through = np.maximum(by_x, 0.0) + np.maximum(by_y, 0.0)
    return Tail(largest, max(float(by_x.sum()), 0.0), through)

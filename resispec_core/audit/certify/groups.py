"""Pairs of rejections of nearly equal probability, taken as one, and which third rejections are listed for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from resispec_core.arrays import Array
from resispec_core.audit.certify.row import Row
from resispec_core.audit.certify.states import Budget, Pairs, cut_off, pairs_below

BLOCK = 2**18
"""Cells worked on at a time; bounds the memory."""

COARSENESS = (0, 32, 36, 38, 40, 42, 44, 46, 48, 52)
"""Trailing bits of a float64 probability that a group may differ in."""


class Groups(NamedTuple):
    """Pairs that share their heavy holes and whose probabilities differ in trailing bits only."""

    of: Array
    """For every pair its group, or −1 for those that can be rejected next at no token but their holes."""
    low: Array
    """The smallest probability of its pairs: all are taken to have it. What a path owes does not decrease with it."""
    size: Array
    """How many pairs."""
    x: Array
    """The hole all its pairs share, or ``row.nobody``."""
    y: Array
    reach: Array
    """Tokens with ρ < low: those any of its pairs can be rejected at next."""
    listing: Array
    """Tokens in the order in which they are listed."""
    rank: Array
    """(K + 1,): the place of each token in it."""
    cut: Array
    """How many are listed for the group."""
    largest: float
    """Every third rejection that is not listed has at most this probability."""

    def listed(self, which: Array, token: Array) -> Array:
        """Whether ``token`` is among those listed for the group."""
        return self.rank[token] < self.cut[which]

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """The listed (group, token), a stretch of about ``BLOCK`` at a time."""
        ends = np.cumsum(self.cut)
        start = 0
        while start < self.cut.size:
            done = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + BLOCK, side="right")))
            which, place = pairs_below(self.cut[start:stop])
            which, token = which + start, self.listing[place]
            keep = token < self.reach[which]
            yield which[keep], token[keep]
            start = stop


def group(row: Row, pairs: Pairs, budget: Budget) -> Groups:
    """By heavy holes, then by the leading bits of the probability; as coarse as loses least within the budget."""
    label = np.full(row.target.size, row.nobody)
    heavy = np.argsort(-row.draft, kind="stable")[: budget.heavy]
    label[heavy] = heavy
    reach = row.below(pairs.mass)
    live = np.flatnonzero(reach > 0)
    x, y = label[pairs.x[live]], label[pairs.y[live]]
    order = np.lexsort((pairs.mass[live], y, x))
    live, x, y = live[order], x[order], y[order]
    mass, reach = pairs.mass[live], reach[live]
    apart = np.ones(live.size, dtype=bool)
    apart[1:] = (x[1:] != x[:-1]) | (y[1:] != y[:-1])
    by_draft = np.argsort(-row.draft[: int(reach.max(initial=0))], kind="stable")
    least = np.inf
    for coarse in COARSENESS:
        leading = mass.view(np.int64) >> coarse
        opens = apart.copy()
        opens[1:] |= leading[1:] != leading[:-1]
        starts = np.flatnonzero(opens)
        size = np.diff(np.append(starts, live.size))
        if int(reach[starts].sum()) <= budget.cells:
            cut, largest, listing = reach[starts], 0.0, np.arange(row.nobody)
        else:
            cut, largest = cut_off(row.draft[by_draft], mass[starts], budget.cells)
            listing = by_draft
        # What grouping loses, and what a path that is not listed can be rejected with once more.
        lost = float(row.excess(mass, reach).sum() - (size * row.excess(mass[starts], reach[starts])).sum())
        lost += float(mass.sum() * row.drawn(row.below(np.array([largest])))[0])
        if lost < least:
            least, best = lost, (starts, size, cut, largest, listing)
        if largest == 0:
            break
    starts, size, cut, largest, listing = best
    of = np.full(pairs.mass.size, -1)
    of[live] = np.repeat(np.arange(starts.size), size)
    rank = np.full(row.target.size, row.nobody)
    rank[listing] = np.arange(listing.size)
    return Groups(of, mass[starts], size, x[starts], y[starts], reach[starts], listing, rank, cut, largest)

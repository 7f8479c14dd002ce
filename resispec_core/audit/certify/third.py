"""The resample after three rejections: see ``groups`` for what is listed. Derivation: docs/certified.md."""

from __future__ import annotations

import numpy as np

from resispec_core.arrays import Array
from resispec_core.audit.certify.groups import Groups, group
from resispec_core.audit.certify.owed import Owed, owed
from resispec_core.audit.certify.row import Row
from resispec_core.audit.certify.spread import Spread
from resispec_core.audit.certify.states import Budget, First, Pairs


class _Sums:
    """Of every path (or group), sums over its third rejections."""

    def __init__(self, size: int) -> None:
        self.share, self.weight, self.moment = np.zeros(size), np.zeros(size), np.zeros(size)
        self.at_x, self.at_y = np.zeros(size), np.zeros(size)

    def add(self, which: Array, found: Owed, sign: int = 1) -> None:
        """Σ share, Σ weight, Σ weight·level."""
        self._add(self.share, which, sign * found.share)
        self._add(self.weight, which, sign * found.weight)
        self._add(self.moment, which, sign * found.weight * found.level)

    def add_at(self, row: Row, which: Array, found: Owed, x: Array, y: Array) -> None:
        """Σ weight·min(level·q, p) at the holes."""
        self._add(self.at_x, which, found.weight * row.capped(found.level, x))
        self._add(self.at_y, which, found.weight * row.capped(found.level, y))

    @staticmethod
    def _add(sums: Array, which: Array, values: Array) -> None:
        sums += np.bincount(which, weights=values, minlength=sums.size)


def third_resample(
    row: Row, first: First, pairs: Pairs, redistribution: str, budget: Budget
) -> tuple[Array, int]:
    """A lower bound on what the resample after three rejections puts on every token, and the cells summed."""
    spread = Spread(row)
    sums = _Sums(pairs.mass.size)
    _holes_again(row, spread, sums, pairs, redistribution)
    groups = group(row, pairs, budget)
    by_group = _Sums(groups.low.size)
    left = row.excess(groups.low, groups.reach)  # of each group, the third rejections not yet seen
    cells = 0
    for which, token in groups.blocks():
        left -= np.bincount(which, weights=_mass(row, groups, which, token), minlength=left.size)
        keep = (token != groups.x[which]) & (token != groups.y[which])
        which, token = which[keep], token[keep]
        found = _cell(row, groups, which, token, redistribution)
        _count(spread, found, groups.size[which])
        spread.remove(token, groups.size[which] * _at_own(row, found, token))
        by_group.add(which, found)
        by_group.add_at(row, which, found, groups.x[which], groups.y[which])
        cells += which.size
    _rest(row, spread, by_group, groups, left)
    inside = np.flatnonzero(groups.of >= 0)
    for name, of_groups in vars(by_group).items():
        vars(sums)[name][inside] += of_groups[groups.of[inside]]
    for hole, shared in ((pairs.x, groups.x), (pairs.y, groups.y)):
        _take_back(row, spread, sums, groups, hole, shared, redistribution)
    _inherit(row, spread, first, pairs, groups, sums)
    return spread.law(), cells


def _count(spread: Spread, found: Owed, times: Array | int) -> None:
    spread.add(found.level, times * found.weight, found.place)
    spread.add_undrafted(float((times * found.spill).sum()))


def _holes_again(row: Row, spread: Spread, sums: _Sums, pairs: Pairs, redistribution: str) -> None:
    """Third rejections at a hole: nothing is owed there, so all that is drawn is rejected."""
    for hole in (pairs.x, pairs.y):
        which = np.flatnonzero(hole != row.nobody)
        token, mass = hole[which], pairs.mass[which]
        x, y = pairs.x[which], pairs.y[which]
        found = owed(row, mass * row.draft[token], mass * row.others[token], (x, y), redistribution)
        _count(spread, found, 1)
        sums.add(which, found)
        sums.add_at(row, which, found, x, y)


def _mass(row: Row, groups: Groups, which: Array, token: Array) -> Array:
    """The least probability of a path of the group, rejected at ``token`` next."""
    return np.maximum(groups.low[which] * row.draft[token] - row.target[token], 0.0)


def _cell(row: Row, groups: Groups, which: Array, token: Array, redistribution: str) -> Owed:
    """What it owes then, at least."""
    stay = groups.low[which] * row.others[token]
    holes = (token, groups.x[which], groups.y[which])
    return owed(row, _mass(row, groups, which, token), stay, holes, redistribution)


def _at_own(row: Row, found: Owed, token: Array) -> Array:
    """What the sums hold at the token rejected last; before, p was owed there."""
    return found.weight * row.capped(found.level, token) + found.share * row.target[token]


def _chord(row: Row, groups: Groups, mass: Array) -> Owed:
    """min(W·q, p) ≥ (W/L)·min(L·q, p) for W ≤ L: paths that are not listed need only the sum of their W."""
    level = np.full(mass.size, groups.largest)
    nothing = np.zeros(mass.size)
    return Owed(level, row.below(level), mass / groups.largest, nothing, nothing)


def _rest(row: Row, spread: Spread, by_group: _Sums, groups: Groups, left: Array) -> None:
    """The third rejections that are not listed."""
    if groups.largest == 0 or groups.low.size == 0:
        return
    every = np.arange(groups.low.size)
    for hole in (groups.x, groups.y):
        unseen = (hole < groups.reach) & ~groups.listed(every, hole)
        left = left - np.where(unseen, _mass(row, groups, every, hole), 0.0)
    found = _chord(row, groups, np.maximum(left, 0.0))
    _count(spread, found, groups.size)
    by_group.add(every, found)
    by_group.add_at(row, every, found, groups.x, groups.y)
    # At its own token w a path has put at most W·q(w) ≤ low·q(w)², for every group that does not list w.
    drawn = np.bincount(groups.cut, weights=groups.size * groups.low, minlength=groups.listing.size + 1)
    unlisted = np.cumsum(drawn)[: groups.listing.size]
    spread.remove(groups.listing, unlisted * row.draft[groups.listing] ** 2)


def _take_back(
    row: Row,
    spread: Spread,
    sums: _Sums,
    groups: Groups,
    hole: Array,
    shared: Array,
    redistribution: str,
) -> None:
    """A group was summed over every token; its pairs are not rejected at a hole of their own that way."""
    inside = np.flatnonzero((groups.of >= 0) & (hole != row.nobody))
    of, token = groups.of[inside], hole[inside]
    counted = (shared[of] != token) & (token < groups.reach[of])
    listed = groups.listed(of, token)
    for chosen in (np.flatnonzero(counted & listed), np.flatnonzero(counted & ~listed)):
        if chosen.size == 0:
            continue
        which, own = of[chosen], token[chosen]
        if listed[chosen[0]]:
            found = _cell(row, groups, which, own, redistribution)
            spread.remove(own, -_at_own(row, found, own))
        else:
            found = _chord(row, groups, _mass(row, groups, which, own))
        _count(spread, found, -1)
        sums.add(inside[chosen], found, sign=-1)


def _inherit(row: Row, spread: Spread, first: First, pairs: Pairs, groups: Groups, sums: _Sums) -> None:
    """Shares of what the pairs owed, and the holes at their own two tokens."""
    spread.add(pairs.owed.level, sums.share * pairs.owed.weight, pairs.owed.place)
    first.inherit(row, spread, pairs.x, sums.share * pairs.owed.share)
    holes = ((pairs.x, groups.x, sums.at_x), (pairs.y, groups.y, sums.at_y))
    for hole, shared, exact in holes:
        # Of a hole the whole group shares the sum is known; else Σ w·min(l·q, p) ≤ min(q·Σwl, p·Σw).
        most = np.minimum(sums.moment * row.draft[hole], sums.weight * row.target[hole])
        known = groups.of < 0
        if shared.size:
            known |= shared[groups.of] == hole
        spread.remove(hole, np.where(known, exact, most) + sums.share * pairs.at(row, first, hole))

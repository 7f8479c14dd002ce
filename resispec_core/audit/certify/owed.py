"""What the published rule owes after a rejection, as a few numbers a path. Derivation: docs/certified.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from resispec_core.arrays import Array, divide
from resispec_core.audit.certify.row import Row

NEWTON_STEPS = 40
LARGEST_LEVEL = 2.0**1000


class Owed(NamedTuple):
    """``weight·min(level·q, p) + share·r`` outside the path's holes, r what was owed before the rejection.

    Every array has one entry a path. A lower bound entry by entry where ``redistribution`` has no such form.
    """

    level: Array
    place: Array
    """Tokens with ρ < level."""
    weight: Array
    share: Array
    spill: Array
    """Mass on the undrafted tokens, in proportion to p, once every drafted one is full."""


def owed(row: Row, mass: Array, stay: Array, holes: Sequence[Array], redistribution: str) -> Owed:
    """The mass owed by paths of probability ``mass`` that end in a rejection.

    ``stay``: the probability that the path was reached and its last token not drawn, S·(1 − q(x)). ``holes``:
    index arrays, one entry a path; tokens at which nothing is owed (``row.nobody`` for none). What is owed does not
    decrease with the holes, nor with the probability of the pair that was rejected before (docs/certified.md): that
    makes the bounds of grouped paths valid.
    """
    nothing = np.zeros(mass.size)
    if redistribution == "waterfill":
        level, place = _water_level(row, mass, holes)
        return Owed(level, place, nothing + 1, nothing, _spill(row, mass, level, holes))
    place = row.below(mass)
    if redistribution == "uniform":  # the projection alone: the deficit is left unexplored
        return Owed(mass, place, nothing + 1, nothing, nothing)
    deficit = row.excess(mass, place)
    for hole in holes:
        deficit = deficit + row.capped(mass, hole)
    room = deficit + stay
    return Owed(mass, place, divide(stay, room), divide(deficit, room), nothing)


def _water_level(row: Row, mass: Array, holes: Sequence[Array]) -> tuple[Array, Array]:
    """The c with ``Σ min(c·q, p) = mass`` outside the holes, approached from below, and ``row.below(c)``.

    The sum is concave in c, so Newton steps from c = mass (too low, since Σq ≤ 1) stay too low: every iterate is a
    valid bound. A step that fills no token is the last one. A step stops where a hole becomes full: before that its
    own q dominates the slope, and what rounding leaves of the others could be anything.
    """
    level, place = mass.copy(), np.zeros(mass.size, dtype=np.intp)
    active = np.flatnonzero(mass > 0)
    for _ in range(NEWTON_STEPS):
        own = [hole[active] for hole in holes]
        c = level[active]
        full = row.below(np.nextafter(c, np.inf))
        place[active] = full
        held, slope = _at(row, c, full, own)
        stop = _next_full(row, c, own)
        missing = np.maximum(mass[active] - held - c * slope, 0.0)
        with np.errstate(over="ignore"):
            # No slope: as far as rounding can tell only a hole is open, and what is missing lies above it.
            step = np.where(slope > 0, divide(missing, slope), np.where(missing > 0, stop, 0.0))
        moved = np.where((slope > 0) | (stop < LARGEST_LEVEL), np.minimum(c + step, stop), c)
        level[active] = np.maximum(moved, c)
        active = active[(moved > c) & ((moved > row.ratio[full]) | (moved == stop))]
        if active.size == 0:
            break
    place[active] = row.below(level[active])
    return level, place


def _spill(row: Row, mass: Array, level: Array, holes: Sequence[Array]) -> Array:
    """What is left of ``mass`` where every drafted token outside the holes is full."""
    spill = np.zeros(level.size)
    drafted = int(np.searchsorted(row.ratio, LARGEST_LEVEL, side="right"))
    over = np.flatnonzero(level >= row.ratio[drafted - 1])
    own = [hole[over] for hole in holes]
    held, slope = _at(row, level[over], np.full(over.size, drafted), own)
    full = (slope == 0) & (_next_full(row, level[over], own) == LARGEST_LEVEL)
    spill[over] = np.where(full, np.maximum(mass[over] - held, 0.0), 0.0)
    return spill


def _next_full(row: Row, level: Array, holes: Sequence[Array]) -> Array:
    """The lowest ρ of a hole above ``level``."""
    stop = np.full(level.size, LARGEST_LEVEL)
    for hole in holes:
        ratio = row.ratio[hole]
        stop = np.where(ratio > level, np.minimum(stop, ratio), stop)
    return stop


def _at(row: Row, level: Array, full: Array, holes: Sequence[Array]) -> tuple[Array, Array]:
    """Σ p of the ``full`` tokens (ρ ≤ level) and Σ q of the open ones, outside the holes."""
    held, slope = row.held[full], row.open[full]
    for hole in holes:
        own = row.ratio[hole] <= level
        held = held - np.where(own, row.target[hole], 0.0)
        slope = slope - np.where(own, 0.0, row.draft[hole])
    return held, np.maximum(slope, 0.0)

"""The water level: the h with Σ min(h·w, room) = wanted, for whole batches, in fixed point.

The sum is concave and piecewise linear in h. Newton's method from the left approaches the root from below
and needs 3 to 5 steps on real rows; after ``NEWTON_STEPS`` a geometric bisection takes over, which also
finds levels as extreme as subnormal weights need.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from resispec_core.gpu.numerics import UNIT_BITS, cast, column, real, softmax_bits, total

NEWTON_STEPS = 8
LEVEL_STEPS = 72
"""8 Newton steps and 64 halvings of the exponent range: past float64's resolution for any bracket."""


UNBOUNDED = 1e308
"""Stands for no upper bracket yet (an infinity would meet 0·∞)."""


class Level(NamedTuple):
    """One entry per row."""

    height: Any
    unmet: Any
    """float64: what the weighted tokens could not take although full; 0 where the level was found."""


def fill_level(xp: Any, weights: Any, room: Any, *, start: float, wanted: Any) -> Level:
    """Solves Σ min(h·w, room) = ``wanted`` per row.

    ``weights``: (N, V), or None for w = 1 everywhere; ``room``: (N, V), at most 1 each; ``start``: a level
    known to be at or below the root; ``wanted``: (N,), at most 1. Stops within V units of ``wanted``.
    """
    vocabulary = room.shape[-1]
    bits = softmax_bits(vocabulary)
    goal = cast(xp, wanted * 2.0**UNIT_BITS, xp.int64)
    height = xp.full_like(wanted, start)
    low, high = height, xp.full_like(wanted, UNBOUNDED)
    unmet = xp.zeros_like(wanted)
    done = unmet > 0
    at_full = done
    for step in range(LEVEL_STEPS):
        flat, slope = _fill(xp, weights, room, height)
        over = total(xp, flat, bits) > 2 ** (bits + 1)  # the fine sum may have wrapped
        deficit = goal - total(xp, flat)
        full = ~over & (deficit > vocabulary) & ((slope == 0) | at_full)
        near = ~over & (deficit <= vocabulary) & (deficit >= -vocabulary)
        unmet = xp.where(full & ~done, real(xp, deficit), unmet)
        done = done | full | near
        if bool(xp.all(done)):
            break
        low = xp.where(~over & (deficit > 0), height, low)
        high = xp.where(over | (deficit < 0), height, high)
        bounded = high < UNBOUNDED
        at_full = ~bounded & (step >= NEWTON_STEPS)
        middle = xp.sqrt(low) * xp.sqrt(high)
        newton = height + real(xp, deficit) / xp.where(slope > 0, slope, xp.ones_like(slope))
        usable = ~over & (slope > 0) & (newton > low) & (newton < high) & (step < NEWTON_STEPS)
        proposed = xp.where(usable, newton, xp.where(bounded, middle, height))
        if step >= NEWTON_STEPS:
            # Newton is slow where the weights are far below a unit: all may be too little, so ask at the top first.
            proposed = xp.where(at_full, _full_level(xp, weights, room), proposed)
        height = xp.where(done, height, proposed)
    return Level(height, unmet)


def _fill(xp: Any, weights: Any, room: Any, height: Any) -> tuple[Any, Any]:
    """The filled amounts, and the slope of their sum in the level."""
    if weights is None:
        rising = column(height) < room
        count = cast(xp, xp.sum(cast(xp, rising, xp.int64), axis=-1, dtype=xp.int64), xp.float64)
        return xp.where(rising, column(height) + 0 * room, room), count
    offered = column(height) * weights
    rising = offered < room
    slope = real(xp, total(xp, xp.where(rising, weights, xp.zeros_like(weights))))
    filled = xp.where(rising, offered, room)
    return xp.where(weights > 0, filled, xp.zeros_like(filled)), slope


def _full_level(xp: Any, weights: Any, room: Any) -> Any:
    """The level at which every weighted token is full (to an ulp, and at most ``UNBOUNDED``)."""
    if weights is None:
        return xp.max(room, axis=-1)
    weighted = weights > 0
    level = room / xp.maximum(weights, xp.full_like(weights, 1.0 / UNBOUNDED))
    return xp.max(xp.where(weighted, level, xp.zeros_like(level)), axis=-1)

"""Many levels found in one sorted table."""

from __future__ import annotations

import numpy as np

from resispec_core.arrays import Array

SHIFT = 44
"""Bits of a float64 that are dropped: cells of 1/256 of an octave."""
LEVELS_A_CELL = 4
"""With fewer levels than this for each cell a plain search is as fast."""


def counts_below(ascending: Array, levels: Array) -> Array:
    """How many entries of ``ascending`` are < each of the non-negative ``levels``: ``np.searchsorted``, faster.

    A binary search for levels in no order waits for the memory and guesses every branch. Non-negative floats are
    ordered as their bits are, so the leading bits name a cell, and most cells hold no entry: their count is that of
    their lower end. Only levels in the other cells are searched for.
    """
    highest = levels.max(initial=0.0)
    # Only as much of the table as can matter: it is often short enough to stay in the cache.
    ascending = ascending[: np.searchsorted(ascending, highest)]
    if ascending.size == 0:
        return np.zeros(levels.size, dtype=np.intp)
    # Every level below the first entry has a cell without one, and the count 0.
    first = _cell(np.maximum(levels.min(), ascending[0])) - 1
    last = _cell(highest)
    if first < 0 or LEVELS_A_CELL * (last - first) > levels.size:
        return np.searchsorted(ascending, levels)
    ends = (np.arange(first, last + 2) << SHIFT).view(np.float64)
    counts = np.searchsorted(ascending, ends)
    cells = np.maximum(levels.view(np.int64) >> SHIFT, first) - first
    found = counts[cells]
    unclear = np.flatnonzero((counts[1:] > counts[:-1])[cells])
    found[unclear] = np.searchsorted(ascending, levels[unclear])
    return found


def _cell(level: np.float64) -> int:
    return int(level.view(np.int64)) >> SHIFT

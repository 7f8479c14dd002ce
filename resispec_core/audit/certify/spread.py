"""Sums over many paths of what each of them puts on every token, in O(paths + V)."""

from __future__ import annotations

import numpy as np

from resispec_core.arrays import Array, running_sums
from resispec_core.audit.certify.row import Row


class Spread:
    """``Σ_i w_i·min(l_i·q, p) + a·p``, less what falls into holes, for every token at once.

    A level l splits the tokens at ρ < l: those below give p, the others l·q. So all levels that split at the same
    place are one number each for Σ w and Σ w·l, and nothing needs sorting.
    """

    def __init__(self, row: Row) -> None:
        size = row.target.size + 1
        self._row = row
        self._weight = np.zeros(size)
        self._moment = np.zeros(size)
        self._holes = np.zeros(row.target.size)
        self._end = 0
        self._share = 0.0
        self._undrafted = 0.0

    def add(self, level: Array, weight: Array, place: Array | None = None) -> None:
        """Paths that put ``weight·min(level·q, p)`` on the tokens; ``place = row.below(level)``."""
        place = self._row.below(level) if place is None else place
        end = int(place.max(initial=0)) + 1
        self._weight[:end] += np.bincount(place, weights=weight, minlength=end)
        self._moment[:end] += np.bincount(place, weights=weight * level, minlength=end)
        self._end = max(self._end, end)

    def add_target(self, share: float) -> None:
        """Paths that put ``share·p`` on the tokens."""
        self._share += share

    def add_undrafted(self, mass: float) -> None:
        """Mass on the tokens with q = 0, in proportion to p."""
        self._undrafted += mass

    def remove(self, index: Array | slice, mass: Array) -> None:
        """Mass counted at tokens where the path has a hole; the entries of ``index`` may repeat."""
        if isinstance(index, slice):
            self._holes[index] += mass
        else:
            self._holes += np.bincount(index, weights=mass, minlength=self._holes.size)

    def law(self) -> Array:
        """(K,): the sum at every token, not below 0."""
        row, end = self._row, self._end
        moment, weight = running_sums(self._moment[:end], self._weight[:end][::-1])
        # From the last split on no level is above ρ.
        total = row.draft * moment[-1] + row.target * self._share
        if end > 1:
            below, above = moment[1:-1], weight[-2:0:-1]
            total[: end - 1] = row.draft[: end - 1] * below + row.target[: end - 1] * (above + self._share)
        total -= self._holes
        if self._undrafted > 0:
            spare = np.where(row.draft == 0, row.target, 0.0)
            if spare.sum() > 0:
                total += self._undrafted / spare.sum() * spare
        return np.maximum(total, 0.0)[:-1]

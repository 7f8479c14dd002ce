"""For every token one path that leads to it, kept while paths are summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from resispec_core.arrays import Array, zeros


@dataclass(frozen=True)
class Path:
    """One way to a token: the candidates rejected, then an acceptance or a resample."""

    rejected: tuple[int, ...]
    token: int
    accepted: bool
    mass: Any
    """Probability of this path."""


class Carriers(Sequence[Path]):
    """``carriers[token]``: the heaviest path to it after a rejection.

    The acceptance at the first candidate stays where it alone puts more on the token than the target has, or where
    no other path leads to it; a token that no path reaches has one of mass 0. Cost: one pass over the masses of a
    stage. Keeps the rejections of every stage.
    """

    def __init__(self, target: Array) -> None:
        size = target.size
        self._target = target
        self._mass = zeros(size, like=target)
        self._accepted = np.zeros(size, dtype=bool)
        self._stage = np.full(size, -1)
        """Which call of ``see`` the path is from; −1: none."""
        self._row = np.zeros(size, dtype=int)
        self._drawn: list[Array] = []
        self._settled = np.zeros(size, dtype=bool)
        self._first = np.zeros(size, dtype=bool)

    def see(self, masses: Array, drawn: Array, accepted: bool) -> None:
        """``masses``: (paths, V), what each path puts on each token; ``drawn``: (paths, i), its rejections."""
        if masses.shape[0] == 0:
            return
        row = np.argmax(masses, axis=0)
        mass = masses[row, np.arange(row.size)]
        direct = drawn.shape[1] == 0 and accepted
        better = direct | self._first | (mass > self._mass)
        new = np.flatnonzero(better & (mass > 0) & ~self._settled)
        self._mass[new], self._row[new] = mass[new], row[new]
        self._accepted[new], self._stage[new], self._first[new] = accepted, len(self._drawn), direct
        if direct:
            self._settled[new] = mass[new] > self._target[new]
        self._drawn.append(drawn)

    def __len__(self) -> int:
        return self._mass.size

    @overload
    def __getitem__(self, token: int) -> Path: ...
    @overload
    def __getitem__(self, token: slice) -> Sequence[Path]: ...
    def __getitem__(self, token: int | slice) -> Path | Sequence[Path]:
        if isinstance(token, slice):
            return [self[place] for place in range(*token.indices(len(self)))]
        stage = self._stage[token]
        rejected = () if stage < 0 else tuple(self._drawn[stage][self._row[token]].tolist())
        return Path(rejected, int(token) % len(self), bool(self._accepted[token]), self._mass[token])

    def heaviest_rejections(self) -> tuple[int, ...]:
        """The rejected tokens of the heaviest of the longest paths."""
        lengths = np.array([drawn.shape[1] for drawn in self._drawn] + [0])[self._stage]
        longest = np.flatnonzero(lengths == lengths.max())
        return self[int(longest[np.argmax(self._mass[longest])])].rejected

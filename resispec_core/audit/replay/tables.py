"""Context-dependent models for step audits: small Markov tables, with zeros and strong contrasts between rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from resispec_core.arrays import Array
from resispec_core.errors import InputError
from resispec_core.laws import law


class Markov:
    """A model of order one: ``start`` is the law of the first token, ``rows[t]`` the law after token t.

    Callable on a prefix (a sequence of token ids); returns a fresh row of shape (V,).
    """

    def __init__(self, start: Any, rows: Sequence[Any] | Mapping[int, Any]) -> None:
        self.start = law(start, name="start row")
        count = len(rows)
        if count != self.start.size:
            raise InputError(
                f"{count} rows given for a vocabulary of {self.start.size}; give one row per token"
            )
        self.rows = [law(rows[token], name=f"row after token {token}") for token in range(count)]

    @property
    def size(self) -> int:
        """V."""
        return int(self.start.size)

    def __call__(self, prefix: Sequence[int]) -> Array:
        row: Array = self.rows[int(prefix[-1])] if len(prefix) else self.start
        return row.copy()


def fractions(*entries: int) -> list[Fraction]:
    """The law proportional to integer ``entries``."""
    return [Fraction(entry, sum(entries)) for entry in entries]


def hard_pair(size: int = 3) -> tuple[Markov, Markov]:
    """A target and a draft with rows that differ between positions, opposite tendencies and a masked token.

    Symmetric rows, p = q and V = 2 hide most faults; these do not.
    """
    if size < 2:
        raise InputError(f"size is {size}; a table needs at least two tokens")
    target = [fractions(*((3 * i + 2 * t) % 5 + 1 for i in range(size))) for t in range(size)]
    draft = [fractions(*((2 * i + 3 * t + 2) % 7 + 1 for i in range(size))) for t in range(size)]
    if size > 2:
        target[-1] = fractions(*(0 if i == 1 else 2 * i + 1 for i in range(size)))
        draft[0] = fractions(*(0 if i == size - 1 else size - i for i in range(size)))
    rising, falling = range(1, size + 1), range(size, 0, -1)
    return Markov(fractions(*rising), target), Markov(fractions(*falling), draft)


HARD_PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1, 2, 3, 4), (4, 3, 2, 1)),
    ((0, 3, 1, 6), (5, 0, 4, 1)),
    ((2, 9, 9), (10, 8, 2)),
    ((1, 1, 1), (5, 4, 1)),
    ((3, 2, 0), (1, 3, 1)),
    ((1, 0, 0), (1, 1, 1)),
    ((5, 3, 2), (5, 3, 2)),
)
"""Pairs (target, draft) as integer weights that between them show every fault class of the museum."""

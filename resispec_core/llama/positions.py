"""Where the rows of a store come from, kept small: a store may hold millions of positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np


@dataclass(frozen=True)
class Position:
    """One recorded position: the rows predict token ``index`` of the prompt from the tokens before it."""

    prompt: int
    """Which prompt, counted from 0 in ``metadata["prompts"]``."""
    index: int
    """Which token of the prompt, counted from 0; never 0, since a row needs a token before it."""
    context: str
    """The last tokens before it, decoded (at most eight)."""
    next_token: int
    """Token id that followed in the prompt."""
    next_text: str
    """Its text."""


class Positions(Sequence[Position]):
    """Positions in columns: 40 bytes and its two texts each, where an object of Python's takes 500."""

    def __init__(self, entries: Sequence[Mapping[str, Any]]) -> None:
        numbers = [(entry["prompt"], entry["index"], entry["next_token"]) for entry in entries]
        self._numbers = np.array(numbers, dtype=np.int64).reshape(-1, 3)
        # A token that is half a character may have left a lone surrogate.
        texts = [
            entry[name].encode("utf-8", "surrogatepass")
            for entry in entries
            for name in ("context", "next_text")
        ]
        self._texts = b"".join(texts)
        self._ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, row: int) -> Position: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Position]: ...
    def __getitem__(self, row: int | slice) -> Position | Sequence[Position]:
        if isinstance(row, slice):
            return [self[place] for place in range(*row.indices(len(self)))]
        prompt, index, next_token = self._numbers[row].tolist()
        place = row % len(self)
        context, next_text = (self._text(2 * place), self._text(2 * place + 1))
        return Position(prompt, index, context, next_token, next_text)

    def _text(self, place: int) -> str:
        return self._texts[self._ends[place] : self._ends[place + 1]].decode("utf-8", "surrogatepass")

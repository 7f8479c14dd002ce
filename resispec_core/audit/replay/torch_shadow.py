"""Coins in torch tensors: the shadow of a storage, one identifier an element.

Views, slices and in-place writes alias in the shadow exactly as in the data, which hold NaN where a coin is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from resispec_core.audit.replay import draws
from resispec_core.audit.replay.coin import Symbol

NONE = -1


class Pending:
    """A categorical draw whose index nobody has looked at yet: returned unchanged, it is a whole law at once."""

    def __init__(self, weights: list[Any]) -> None:
        self.weights = weights


class Shadows:
    """The coins in the storages of one run."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._flat: dict[int, tuple[torch.Tensor, Any]] = {}

    def of(self, tensor: Any) -> torch.Tensor | None:
        """The identifiers behind ``tensor``, as a view that writes through; None where it holds no coin."""
        if not self._flat or not isinstance(tensor, torch.Tensor):
            return None
        found = self._flat.get(tensor.untyped_storage()._cdata)
        if found is None:
            return None
        return torch.as_strided(found[0], tensor.size(), tensor.stride(), tensor.storage_offset())

    def make(self, tensor: torch.Tensor) -> torch.Tensor:
        """As ``of``, creating the shadow of a storage that has none."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self._flat:
            length = storage.nbytes() // tensor.element_size()
            self._flat[storage._cdata] = (torch.full((length,), NONE, dtype=torch.int64), storage)
        found = self.of(tensor)
        assert found is not None
        return found

    def holds(self, tensor: Any) -> bool:
        """Whether any element of ``tensor`` is a coin."""
        found = self.of(tensor)
        return found is not None and bool((found != NONE).any())

    def values(self, tensor: Any, like: torch.Size | None = None) -> list[Any]:
        """The elements in order, coins as objects and the rest as numbers."""
        if not isinstance(tensor, torch.Tensor):
            return [tensor] * (like.numel() if like is not None else 1)
        shadow = self.of(tensor)
        if like is not None:
            tensor = tensor.expand(like)
            shadow = None if shadow is None else shadow.expand(like)
        plain = tensor.detach().reshape(-1).tolist()
        if shadow is None:
            return plain
        marks = shadow.reshape(-1).tolist()
        return [
            self.entries[mark] if mark != NONE else value for mark, value in zip(marks, plain, strict=True)
        ]

    def write(self, tensor: torch.Tensor, values: Sequence[Any]) -> torch.Tensor:
        """Put ``values`` into ``tensor``: coins into its shadow over NaN, numbers into the data."""
        marks, numbers = [], []
        empty = math.nan if tensor.is_floating_point() else 0
        for value in values:
            coin = isinstance(value, (Symbol, Pending))
            if coin:
                self.entries.append(value)
            marks.append(len(self.entries) - 1 if coin else NONE)
            numbers.append(empty if coin else value)
        tensor.copy_(torch.tensor(numbers, dtype=tensor.dtype).reshape(tensor.shape))
        if any(mark != NONE for mark in marks) or self.of(tensor) is not None:
            self.make(tensor).copy_(torch.tensor(marks, dtype=torch.int64).reshape(tensor.shape))
        return tensor

    def settle(self, tensor: torch.Tensor) -> None:
        """Decide every pending draw that ``tensor`` holds, wherever else it was copied to."""
        shadow = self.of(tensor)
        if shadow is None:
            return
        for mark in {mark for mark in shadow.reshape(-1).tolist() if mark != NONE}:
            entry = self.entries[mark]
            if not isinstance(entry, Pending):
                continue
            index = draws.categorical(entry.weights, "multinomial")
            for flat, storage in self._flat.values():
                hit = flat == mark
                if bool(hit.any()):
                    data = torch.empty(0, dtype=torch.int64).set_(storage)
                    data[hit] = index
                    flat[hit] = NONE

"""Recorded draft trees (schema 2 of the store): target and draft rows at the nodes of speculation steps.

``trees`` in ``store.json`` holds the parents and tokens of each position's tree, root first; empty slots are left out.
A shard's ``target`` has a row for every node, ``draft`` one for every node with children, tree after tree and by node:
the draft law after a leaf is read by no walk. The tokens were drawn from the *stored* draft rows at the temperature in
``drafting``, so a replay is exact for the stored laws, like every audit of a store.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from resispec_core.arrays import Array
from resispec_core.errors import InputError
from resispec_core.laws import law_from_logits
from resispec_core.llama.store import INDEX_FILE, LogitsStore, Row
from resispec_core.trees import DraftTree, Topology


class TreeStore(LogitsStore):
    """A store whose positions are speculation steps. ``row(i)`` are the rows at the root, as in schema 1."""

    def __init__(self, path: Path, metadata: Mapping[str, Any]) -> None:
        super().__init__(path, metadata)
        entries = metadata.get("trees")
        if not isinstance(entries, list) or len(entries) != len(self.positions):
            raise InputError(
                f"cannot use {path / INDEX_FILE}: it lists {len(self.positions)} positions, and not a tree for each; "
                "record again into an empty folder"
            )
        self.trees = tuple(self._tree(number, entry) for number, entry in enumerate(entries))
        """The recorded trees, without their rows."""

    def _tree(self, number: int, entry: Any) -> DraftTree:
        try:
            tree = DraftTree(Topology(tuple(entry["parents"])), tuple(entry["tokens"]))
            if any(token >= self.vocabulary for token in tree.tokens) or -1 in tree.tokens[1:]:
                raise InputError("a token is outside the vocabulary")
        except (InputError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"cannot use {self.path / INDEX_FILE}: trees[{number}] is no tree ({error}); record again"
            ) from error
        return tree

    @property
    def draw(self) -> str:
        """How siblings were drawn."""
        return str(self.metadata["drafting"]["draw"])

    @property
    def temperature(self) -> float:
        """The temperature at which the tokens were drawn; laws at another one do not belong to these trees."""
        return float(self.metadata["drafting"]["temperature"])

    @cached_property
    def _starts(self) -> list[tuple[int, int]]:
        """Where each tree's rows start in the tensors of its shard."""
        starts = []
        for number, shard in enumerate(self.shards):
            at = (0, 0)
            for i in range(int(self._ends[number]) - shard.rows, int(self._ends[number])):
                starts.append(at)
                at = (at[0] + len(self.trees[i].tokens), at[1] + len(inner_nodes(self.trees[i])))
        return starts

    def tensor_rows(self, number: int) -> tuple[int, int]:
        own = self.trees[int(self._ends[number]) - self.shards[number].rows : int(self._ends[number])]
        return sum(len(tree.tokens) for tree in own), sum(len(inner_nodes(tree)) for tree in own)

    def row(self, i: int) -> tuple[Row, Row]:
        if not 0 <= i < len(self):
            raise InputError(f"row {i} is not in {self.path}: it holds rows 0 to {len(self) - 1}")
        target, draft = self.rows_at(i)
        return target[0], draft[0]

    def rows_at(self, i: int) -> tuple[Row, Row]:
        number, _ = self.place(i)
        (p, q), tree = self._starts[i], self.trees[i]
        return self.read(number, slice(p, p + len(tree.tokens)), slice(q, q + len(inner_nodes(tree))))

    def step(self, i: int) -> RecordedStep:
        """The tree of position i with its laws, each made when it is asked for."""
        return RecordedStep(self, i)


class RecordedStep:
    """One recorded step: a tree, and node → (p, q) for ``trees.walk``."""

    def __init__(self, store: TreeStore, i: int) -> None:
        self._store, self._i = store, i
        self.tree = store.trees[i]
        self._target, self._draft = store.rows_at(i)
        self._inner = {node: place for place, node in enumerate(inner_nodes(self.tree))}
        self._laws: dict[int, tuple[Array, Array | None]] = {}

    def rows(self, node: int) -> tuple[Array, Array | None]:
        """The laws after ``node``, float64 of shape (V,); q is None at a leaf."""
        if node not in self._laws:
            q = self._law(self._draft[self._inner[node]], node, "draft") if node in self._inner else None
            self._laws[node] = self._law(self._target[node], node, "target"), q
        return self._laws[node]

    def _law(self, row: Row, node: int, side: str) -> Array:
        where = f"{self._store.path}, position {self._i}, {side} row at tree node {node}"
        return law_from_logits(row, temperature=self._store.temperature, name=where)


def inner_nodes(tree: DraftTree) -> list[int]:
    """The nodes with drafted children, in order: those whose draft rows are kept."""
    return sorted(set(tree.topology.parents[1:]))

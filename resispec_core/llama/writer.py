"""Write a store of recorded logits so that a kill at any moment loses at most the shard in flight.

Order of every step: the shard goes to a temporary name and is renamed over its own name when it is whole;
only then is ``store.json`` replaced, the same way, by one that lists it. A reader therefore never sees a
shard that is listed and not whole. A rerun with the same settings continues after the last listed shard.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

from resispec_core.errors import InputError
from resispec_core.llama.positions import Position
from resispec_core.llama.store import (
    INDEX_FILE,
    KIND,
    SCHEMA,
    TREE_SCHEMA,
    VOCABULARY_FILE,
    read_index,
)
from resispec_core.llama.tree_store import inner_nodes
from resispec_core.trees import DraftTree

PARTIAL = ".part"
_GROWING = ("shards", "positions", "trees")


class StoreWriter:
    """Appends shards to a store in ``folder``, new or left unfinished by an earlier run.

    ``settings`` is everything that decides the rows (models and hashes, prompts, dtypes, library versions,
    and ``vocabulary_size``); ``planned`` lists the positions in row order; ``vocabulary`` the text of every
    token id.

    Raises InputError: the folder holds something else; it was recorded with other settings (the first one
    that differs is named); it cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, Any],
        planned: Sequence[Position],
        vocabulary: Sequence[str],
    ) -> None:
        self._folder = folder
        self._planned = list(planned)
        packed = pack_vocabulary(vocabulary)
        fresh = {
            "kind": KIND,
            "schema": TREE_SCHEMA if "drafting" in settings else SCHEMA,
            **settings,
            "vocabulary_sha256": hashlib.sha256(packed).hexdigest(),
            "planned_rows": len(self._planned),
            "shards": [],
            "positions": [],
            **({"trees": []} if "drafting" in settings else {}),
        }
        # One trip through JSON, so that a fresh index and one read back compare equal (tuples become
        # lists).
        self._index: dict[str, Any] = json.loads(json.dumps(fresh))
        if (folder / INDEX_FILE).exists():
            self._resume()
        else:
            self._start(packed)

    @property
    def done(self) -> int:
        """Rows that are safely in the store."""
        return len(self._index["positions"])

    def append(
        self,
        target: npt.NDArray[np.float16],
        draft: npt.NDArray[np.float16],
        trees: Sequence[DraftTree] | None = None,
    ) -> None:
        """Add one shard: the next planned rows, each array of shape (rows, V), fp16.

        With ``trees``, one a position: ``target`` holds a row for every node of each, ``draft`` one for every inner
        node, both tree after tree and by node.
        """
        rows = len(target) if trees is None else len(trees)
        wanted = (rows, rows)
        if trees is not None:
            wanted = (sum(len(tree.tokens) for tree in trees), sum(len(inner_nodes(tree)) for tree in trees))
        width = self._index["vocabulary_size"]
        shapes = [(count, width) for count in wanted]
        if [target.shape, draft.shape] != shapes or target.dtype != np.float16 or draft.dtype != np.float16:
            needed = " and ".join(str(shape) for shape in dict.fromkeys(shapes))
            raise InputError(
                f"a shard needs fp16 target and draft of shape {needed}; got {target.dtype} {target.shape} "
                f"and {draft.dtype} {draft.shape}"
            )
        if not 0 < rows <= len(self._planned) - self.done:
            raise InputError(f"{rows} rows do not fit: {len(self._planned) - self.done} are still planned")
        number = len(self._index["shards"])
        name = f"shard-{number:05d}.safetensors"
        data = save({"target": np.ascontiguousarray(target), "draft": np.ascontiguousarray(draft)})
        replace_file(self._folder / name, data)
        entry = {"file": name, "sha256": hashlib.sha256(data).hexdigest(), "rows": rows}
        positions = [asdict(position) for position in self._planned[self.done : self.done + rows]]
        index = {
            **self._index,
            "shards": [*self._index["shards"], entry],
            "positions": [*self._index["positions"], *positions],
        }
        if trees is not None:
            new = [{"parents": list(tree.topology.parents), "tokens": list(tree.tokens)} for tree in trees]
            index["trees"] = [*self._index["trees"], *new]
        self._write_index(index)
        self._index = index

    def _start(self, packed: bytes) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            foreign = sorted(entry.name for entry in self._folder.iterdir() if not _ours(entry.name))
        except OSError as error:
            raise InputError(
                f"cannot write to {self._folder}: {error.strerror}; choose another folder"
            ) from error
        if foreign:
            raise InputError(
                f"{self._folder} holds no {INDEX_FILE} and is not empty ({foreign[0]}): choose an empty one"
            )
        replace_file(self._folder / VOCABULARY_FILE, packed)
        self._write_index(self._index)

    def _resume(self) -> None:
        found = read_index(self._folder)
        different = first_difference(_settings(found), _settings(self._index))
        if different:
            raise InputError(
                f"{self._folder} was recorded with other settings: {different}; "
                "rerun with the settings of the store, or choose an empty folder"
            )
        self._index = found

    def _write_index(self, index: Mapping[str, Any]) -> None:
        text = json.dumps(index, ensure_ascii=False, indent=1) + "\n"
        replace_file(self._folder / INDEX_FILE, text.encode())


def pack_vocabulary(texts: Sequence[str]) -> bytes:
    """Gzipped JSON list of the token texts; the same bytes for the same list (no time stamp)."""
    return gzip.compress(json.dumps(list(texts), ensure_ascii=False).encode(), 9, mtime=0)


def replace_file(file: Path, data: bytes) -> None:
    """Put ``data`` at ``file`` as a whole or not at all; raises InputError when the disk refuses."""
    partial = file.with_name(file.name + PARTIAL)
    try:
        try:
            with partial.open("wb") as handle:
                handle.write(data)
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(partial, file)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(
            f"cannot write {file}: {error.strerror or error}; rows already recorded are kept: "
            "make room or fix the permissions, and run the same command again"
        ) from error


def first_difference(
    old: Any, new: Any, path: str = "", *, sides: tuple[str, str] = ("in the store", "now")
) -> str | None:
    """Name the first place where two JSON values differ, with both values; None when they are equal.

    ``sides``: where the old and the new value are, for the message.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):  # in the order written, so that causes come before effects
            inner = first_difference(
                old.get(key), new.get(key), f"{path}.{key}" if path else key, sides=sides
            )
            if inner:
                return inner
        return None
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        named = (first_difference(a, b, f"{path}[{i}]", sides=sides) for i, (a, b) in pairs)
        return next(filter(None, named), None)
    return None if old == new else f"{path} is {_short(old)} {sides[0]} and {_short(new)} {sides[1]}"


def _settings(index: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in index.items() if key not in _GROWING}


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


def _ours(name: str) -> bool:
    """True for what a run killed before its first ``store.json`` can have left behind."""
    return name.removesuffix(PARTIAL) in (VOCABULARY_FILE, INDEX_FILE)

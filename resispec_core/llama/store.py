"""Recorded logits of a target and a draft model, read from disk a row at a time.

A store is a folder: ``store.json`` (what was recorded, with what, and the list of shards), the tokenizer's
vocabulary in ``vocabulary.json.gz``, and safetensors shards that hold ``target`` and ``draft``, each of
shape (rows, V), fp16. docs/recording.md describes every field.

A row holds natural log-probabilities: the log-softmax of the model's logits, taken in float32 and rounded
to fp16. They are valid logits (softmax gives the law back). The rounding is relative, at most 2^-11 of the
value, so it is finest near 0, where the heavy tokens are; a token at log-probability -16 is off by at most
0.8 %. The laws to audit are *those of the stored rows*, normalised again in float64: the audit is exact for
them, and makes no claim about the digits that the rounding dropped.

Reading needs numpy and safetensors only.
"""

from __future__ import annotations

import bisect
import gzip
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from resispec_core.errors import InputError
from resispec_core.llama.positions import Positions

SCHEMA, TREE_SCHEMA = 1, 2
"""1: one row of each model a position. 2: the rows of a draft tree at each position (``tree_store``)."""
KIND = "resispec-logits"
INDEX_FILE = "store.json"
VOCABULARY_FILE = "vocabulary.json.gz"
Row = npt.NDArray[np.float16]


@dataclass(frozen=True)
class Shard:
    """One safetensors file of a store."""

    file: str
    sha256: str
    rows: int


class LogitsStore:
    """A store of recorded rows that reads only the rows asked for.

    Make one with :meth:`open` or :func:`sample_store`. ``len(store)`` is the number of recorded positions.

    Cost: opening reads ``store.json`` and every shard's header; a row reads 4V bytes.
    Cannot detect: a shard whose values were changed in place, unless :meth:`verify` is called.
    """

    def __init__(self, path: Path, metadata: Mapping[str, Any]) -> None:
        self.path = path
        self.metadata: Mapping[str, Any] = MappingProxyType(
            {name: value for name, value in metadata.items() if name != "positions"}
        )
        """Everything in ``store.json`` but the positions."""
        self.positions = Positions(metadata["positions"])
        """The recorded positions, in the order of the rows."""
        self.shards = tuple(Shard(**entry) for entry in metadata["shards"])
        """The shards, in the order of the rows."""
        self._ends = list(np.cumsum([shard.rows for shard in self.shards], dtype=np.int64))

    @classmethod
    def open(cls, path: str | Path) -> LogitsStore:
        """Open the store in a folder and check that its parts fit together.

        Raises InputError: the folder or ``store.json`` is missing, unreadable or of an unknown schema; a
        shard is missing, truncated, not safetensors, or differs in shape or dtype from what ``store.json``
        says.
        """
        folder = Path(path)
        index = read_index(folder)
        if index["schema"] == TREE_SCHEMA and not index.get("drafting"):
            raise _broken(folder / INDEX_FILE, "it is of schema 2 and has no drafting")
        store = cls._of(index)(folder, index)
        for number, shard in enumerate(store.shards):
            _check_shard(folder / shard.file, store.tensor_rows(number), store.vocabulary)
        return store

    @classmethod
    def _of(cls, index: Mapping[str, Any]) -> type[LogitsStore]:
        if index["schema"] == SCHEMA:
            return cls
        from resispec_core.llama.tree_store import TreeStore

        return TreeStore

    def tensor_rows(self, number: int) -> tuple[int, int]:
        """Rows of ``target`` and of ``draft`` in a shard."""
        return (self.shards[number].rows,) * 2

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def vocabulary(self) -> int:
        """V, the width of every row."""
        return int(self.metadata["vocabulary_size"])

    @property
    def complete(self) -> bool:
        """False after an interrupted recording; the rows that are there are whole."""
        return len(self) == int(self.metadata["planned_rows"])

    def row(self, i: int) -> tuple[Row, Row]:
        """Target and draft log-probabilities at position i, each of shape (V,), fp16.

        Raises InputError when i is outside 0..len-1 or the shard can no longer be read.
        """
        if not 0 <= i < len(self):
            raise InputError(f"row {i} is not in {self.path}: it holds rows 0 to {len(self) - 1}")
        number, at = self.place(i)
        target, draft = self.read(number, slice(at, at + 1), slice(at, at + 1))
        return target[0], draft[0]

    def place(self, i: int) -> tuple[int, int]:
        """The shard that holds position i, and its place in it."""
        number = bisect.bisect_right(self._ends, i)
        return number, int(i - (self._ends[number] - self.shards[number].rows))

    def read(self, number: int, target: slice, draft: slice) -> tuple[Row, Row]:
        """Rows of both tensors of a shard; only these are read."""
        file = self.path / self.shards[number].file
        try:
            with safe_open(file, framework="numpy") as tensors:
                return tensors.get_slice("target")[target], tensors.get_slice("draft")[draft]
        except (SafetensorError, OSError) as error:
            raise _broken(file, str(error)) from error

    def rows_at(self, i: int) -> tuple[Row, Row]:
        """Every row of position i: (rows, V) of the target and of the draft."""
        target, draft = self.row(i)
        return target[None], draft[None]

    def decode(self, token_id: int) -> str | None:
        """Text of a token; None for an id that the tokenizer does not use.

        A token that is only a part of a UTF-8 character has no text of its own: the tokenizer's name for it
        is returned instead.
        """
        if not 0 <= token_id < self.vocabulary:
            raise InputError(f"token id {token_id} is outside the vocabulary, 0 to {self.vocabulary - 1}")
        texts = self._texts
        return texts[token_id] if token_id < len(texts) else None

    @cached_property
    def _texts(self) -> list[str]:
        file = self.path / VOCABULARY_FILE
        try:
            texts = json.loads(gzip.decompress(file.read_bytes()))
        except (OSError, EOFError, ValueError) as error:  # ValueError: JSON and UTF-8; zlib.error is below
            raise _broken(file, str(error)) from error
        except Exception as error:  # zlib.error derives from Exception alone
            raise _broken(file, str(error)) from error
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise _broken(file, "it is not a list of strings")
        if len(texts) > self.vocabulary:
            raise _broken(file, f"it lists {len(texts)} tokens, but the rows hold {self.vocabulary}")
        return texts

    def verify(self) -> int:
        """Check every byte and every row; return the number of rows.

        Hashes of the shards and of the vocabulary; no NaN and no +inf; each row sums to one within what
        fp16 rounding allows; the token that followed is the prompt's own.

        Raises InputError at the first fault. Cost: one pass over all bytes.
        Cannot detect: a store rewritten as a whole, hashes included (they are no signature).
        """
        for shard in self.shards:
            _check_hash(self.path / shard.file, shard.sha256)
        _check_hash(self.path / VOCABULARY_FILE, str(self.metadata["vocabulary_sha256"]))
        _ = self._texts
        # log Σ p e^δ with |δ(x)| <= 2^-11 |log p(x)| is at most 2^-11 times the entropy, to first order,
        # and the entropy is at most log V. Twice that leaves room for the second order and for the float32
        # log-softmax.
        tolerance = 2.0**-10 * max(math.log(self.vocabulary), 1.0)
        for i, position in enumerate(self.positions):
            token_ids = self.metadata["prompts"][position.prompt]["token_ids"]
            if token_ids[position.index] != position.next_token:
                raise InputError(
                    f"row {i} of {self.path} says token {position.next_token} followed, but the prompt has "
                    f"{token_ids[position.index]} there: {INDEX_FILE} was edited; record again"
                )
            for name, rows in zip(("target", "draft"), self.rows_at(i), strict=True):
                for node, row in enumerate(rows):
                    wrong = log_probability_fault(row, tolerance)
                    if wrong:
                        where = f"{name} row {i}" + (f", row {node} of its tree," if len(rows) > 1 else "")
                        raise InputError(f"{where} of {self.path}: {wrong}; record again")
        return len(self)


def sample_store() -> LogitsStore:
    """Open the store that ships with the package: a real Llama target and a layer-skipping draft of it."""
    return LogitsStore.open(Path(str(resources.files("resispec_core.llama") / "sample")))


def log_probability_fault(row: npt.NDArray[Any], tolerance: float) -> str | None:
    """Say what keeps a row from being log-probabilities; None when nothing does."""
    values = row.astype(np.float64)
    if np.isnan(values).any():
        return f"token {int(np.flatnonzero(np.isnan(values))[0])} is NaN"
    if (values == np.inf).any():
        return f"token {int(np.flatnonzero(values == np.inf)[0])} is +inf"
    total = float(np.exp(np.minimum(values, 700.0)).sum())
    if total <= 0.0 or abs(math.log(total)) > tolerance:
        return f"its probabilities sum to {total:.6g}, not to 1 within {tolerance:.2g}"
    return None


def read_index(folder: Path) -> dict[str, Any]:
    """Read and check ``store.json``; raises InputError."""
    if not folder.exists():
        raise InputError(f"{folder} does not exist; pass a folder written by `resispec record`")
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; pass the folder that `resispec record` wrote")
    file = folder / INDEX_FILE
    try:
        index = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{folder} holds no {INDEX_FILE}: it is no store of logits; make one with `resispec record`"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}; check its permissions") from error
    except (ValueError, RecursionError) as error:
        raise _broken(file, f"it is not JSON ({error})") from error
    if not isinstance(index, dict) or index.get("kind") != KIND:
        raise _broken(file, f'it does not say "kind": "{KIND}"')
    _check_schema(file, index.get("schema"))
    _check_index(file, index)
    return index


def _check_schema(file: Path, schema: object) -> None:
    if schema in (SCHEMA, TREE_SCHEMA) and isinstance(schema, int) and not isinstance(schema, bool):
        return
    newer = isinstance(schema, int) and schema > TREE_SCHEMA
    remedy = "upgrade resispec-core, or record again" if newer else "record again"
    raise InputError(
        f"{file} has schema {schema!r}; this release reads schemas {SCHEMA} and {TREE_SCHEMA}: "
        f"{remedy} with this release"
    )


_FIELDS: dict[str, type] = {
    "target": dict,
    "draft": dict,
    "libraries": dict,
    "tokenizer_sha256": str,
    "vocabulary_sha256": str,
    "vocabulary_size": int,
    "planned_rows": int,
    "dtype": str,
    "prompts": list,
    "positions": list,
    "shards": list,
}
_POSITION = {"prompt": int, "index": int, "context": str, "next_token": int, "next_text": str}
_SHARD = {"file": str, "sha256": str, "rows": int}
_PROMPT = {"name": str, "text": str, "token_ids": list}


def _check_index(file: Path, index: dict[str, Any]) -> None:
    _check_fields(file, "it", index, _FIELDS, exact=False)
    for part, fields in (("positions", _POSITION), ("shards", _SHARD), ("prompts", _PROMPT)):
        for number, entry in enumerate(index[part]):
            _check_fields(file, f"{part}[{number}]", entry, fields, exact=True)
    if index["vocabulary_size"] < 1:
        raise _broken(file, f"vocabulary_size is {index['vocabulary_size']}")
    for shard in index["shards"]:
        # The file name comes from outside: it must not lead out of the folder.
        if Path(shard["file"]).name != shard["file"] or not shard["file"].endswith(".safetensors"):
            raise _broken(file, f"shard name {shard['file']!r} is not a plain .safetensors file name")
        if shard["rows"] < 1:
            raise _broken(file, f"shard {shard['file']} has {shard['rows']} rows")
    rows = sum(shard["rows"] for shard in index["shards"])
    if rows != len(index["positions"]):
        raise _broken(file, f"its shards hold {rows} rows, but it lists {len(index['positions'])} positions")
    if rows > index["planned_rows"]:
        raise _broken(file, f"it holds {rows} rows of {index['planned_rows']} planned")
    for number, position in enumerate(index["positions"]):
        prompt = position["prompt"]
        if not 0 <= prompt < len(index["prompts"]):
            raise _broken(file, f"positions[{number}] names prompt {prompt} of {len(index['prompts'])}")
        if not 1 <= position["index"] < len(index["prompts"][prompt]["token_ids"]):
            raise _broken(file, f"positions[{number}] is outside its prompt (index {position['index']})")
        if not 0 <= position["next_token"] < index["vocabulary_size"]:
            raise _broken(
                file, f"positions[{number}] names token {position['next_token']}, outside the vocabulary"
            )


def _check_fields(file: Path, where: str, entry: object, fields: Mapping[str, type], *, exact: bool) -> None:
    if not isinstance(entry, dict):
        raise _broken(file, f"{where} is not an object")
    for name, kind in fields.items():
        value = entry.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise _broken(file, f"{where} has no {name} of type {kind.__name__}")
    if exact and len(entry) > len(fields):
        raise _broken(file, f"{where} has unknown fields {sorted(set(entry) - set(fields))}")


def _check_shard(file: Path, rows: tuple[int, int], vocabulary: int) -> None:
    try:
        with safe_open(file, framework="numpy") as tensors:
            names = set(tensors.keys())
            if names != {"target", "draft"}:
                raise _broken(file, f"it holds {sorted(names)} instead of target and draft")
            for name, own in zip(("target", "draft"), rows, strict=True):
                part = tensors.get_slice(name)
                shape, dtype = tuple(part.get_shape()), part.get_dtype()
                if shape != (own, vocabulary) or dtype != "F16":
                    raise _broken(
                        file,
                        f"{name} is {dtype} {shape}, but {INDEX_FILE} says F16 {(own, vocabulary)}",
                    )
    except FileNotFoundError:
        raise _broken(file, "it is missing") from None
    except (SafetensorError, OSError) as error:
        raise _broken(file, str(error)) from error


def _check_hash(file: Path, expected: str) -> None:
    try:
        found = file_sha256(file)
    except OSError as error:
        raise _broken(file, error.strerror or str(error)) from error
    if found != expected:
        raise _broken(
            file, f"its sha256 is {found[:16]}…, but {INDEX_FILE} says {expected[:16]}…: it was changed"
        )


def file_sha256(file: Path) -> str:
    """Hex SHA-256 of a file, read in blocks."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _broken(file: Path, reason: str) -> InputError:
    return InputError(
        f"cannot use {file}: {reason}; copy the store again, or record again into an empty folder"
    )

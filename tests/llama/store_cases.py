"""A small store for the tests: five tokens, one prompt, six rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from resispec_core.llama.positions import Position
from resispec_core.llama.writer import StoreWriter

VOCABULARY = ["<unk>", "a", "b", "c", "d"]


def log_rows(rows: int, width: int, seed: int) -> np.ndarray:
    """Rows of fp16 log-probabilities, (rows, width)."""
    logits = np.random.default_rng(seed).normal(0.0, 3.0, (rows, width))
    return (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))).astype(np.float16)


def settings(**changes: Any) -> dict[str, Any]:
    prompts = [{"name": "p", "text": "a b c d a b c", "token_ids": [1, 2, 3, 4, 1, 2, 3]}]
    base = {
        "target": {"id": "T"},
        "draft": {"id": "D", "layers_skipped": [1]},
        "libraries": {"numpy": "2"},
        "tokenizer_sha256": "0" * 64,
        "vocabulary_size": 5,
        "dtype": "float16",
        "prompts": prompts,
    }
    return base | changes


def planned(rows: int = 6) -> list[Position]:
    ids = [1, 2, 3, 4, 1, 2, 3]
    return [Position(0, i, "a", ids[i], VOCABULARY[ids[i]]) for i in range(1, rows + 1)]


def write_shards(folder: Path, writer_class: type[StoreWriter] = StoreWriter, **changes: Any) -> None:
    """Write (or go on writing) a store of three shards of two rows each."""
    writer = writer_class(folder, settings(**changes), planned(), VOCABULARY)
    target, draft = log_rows(6, 5, seed=1), log_rows(6, 5, seed=2)
    while writer.done < 6:
        at = slice(writer.done, writer.done + 2)
        writer.append(target[at], draft[at])

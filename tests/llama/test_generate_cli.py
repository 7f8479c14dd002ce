"""`resispec generate` and `resispec speed --live` on tiny models: what they refuse, and resuming."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from resispec_core.audit import audit
from resispec_core.cli.generate import generate
from resispec_core.cli.speed import speed
from resispec_core.errors import InputError
from resispec_core.laws import parse_law
from resispec_core.llama import live, memory, models
from resispec_core.llama.journal import Journal
from resispec_core.llama.live import Configuration, run_here
from resispec_core.llama.prompts import STARTS, Prompt
from resispec_core.llama.speed_rows import read_journal, summarise
from resispec_core.llama.systems import SYSTEMS, system
from resispec_core.rules import rule
from resispec_core.rules.resispec import REDISTRIBUTIONS


def run(command: Any, *arguments: str) -> Any:
    return CliRunner().invoke(command, list(arguments), catch_exceptions=True)


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    file = tmp_path / "texts.jsonl"
    file.write_text('{"name": "a", "text": "w1 w2 w3"}\n{"name": "b", "text": "w3 w3 w1 w0"}\n')
    return file


def test_generate_prints_the_text_and_json(tiny: Path, prompts: Path) -> None:
    options = ["--target", str(tiny), "--skip-layers", "3", "--tree", "3x2", "--max-new-tokens", "6"]
    data = json.loads(run(generate, *options, "--prompts", str(prompts), "--json").stdout)
    assert data["method"] == {"tree": "3x2", "rule": "shaped", "draw": "iid"}
    assert [result["prompt"] for result in data["results"]] == ["a", "b"]
    assert all(len(result["tokens"]) == 6 for result in data["results"])
    text = run(generate, *options, "--prompt", "w1 w2 w3")
    assert "--- prompt-1: 6 tokens in" in text.stdout
    assert "generating" in text.stderr
    other = json.loads(run(generate, *options, "--prompts", str(prompts), "--json", "--seed", "1").stdout)
    # Prompt i uses seed + i: prompt b at seed 0 has the coins of prompt a at seed 1, not its own at seed 1.
    assert other["results"][1]["tokens"] != data["results"][1]["tokens"]


def test_an_interrupted_generation_goes_on(
    tiny: Path, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--target", str(tiny), "--skip-layers", "3", "--tree", "3x2", "--max-new-tokens", "5"]
    options += ["--prompts", str(prompts), "--out", str(tmp_path / "out.jsonl"), "--json"]
    add = Journal.add

    def interrupt(self: Journal, key: str, result: Any) -> None:
        if key == "b":
            raise KeyboardInterrupt
        add(self, key, result)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", interrupt)
        assert run(generate, *options).exit_code != 0
    kept = (tmp_path / "out.jsonl").read_bytes()
    assert len(kept.splitlines()) == 2
    first = json.loads(run(generate, *options).stdout)
    assert (tmp_path / "out.jsonl").read_bytes().startswith(kept)
    monkeypatch.setattr(models, "load_model", None)  # all is there: no weights are read
    assert json.loads(run(generate, *options).stdout) == first
    changed = run(generate, *options, "--seed", "7").exception
    assert "made with other settings: seed is 0 in the store and 7 now" in str(changed)


def test_what_cannot_work_is_refused_before_weights_are_read(
    tiny: Path,
    make_llama: Callable[..., Path],
    tmp_path: Path,
    prompts: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide = make_llama("wide", vocab=20)
    monkeypatch.setattr(models, "load_model", None)
    base = ["--target", str(tiny), "--skip-layers", "3", "--prompt", "w1 w2"]
    for options, words in (
        (["--target", "nowhere", "--prompt", "w1"], "no model at nowhere"),
        (["--target", str(tiny), "--draft", str(wide), "--prompt", "w1"], "vocabularies differ"),
        ([*base, "--max-new-tokens", "80"], "prompt 'prompt-1' has 2 tokens; with 80 new ones"),
        ([*base, "--rule", "nosuch"], "unknown rule 'nosuch'"),
        ([*base, "--tree", "eagle", "--rule", "optimal"], "is meant for candidates drawn iid"),
        ([*base, "--tree", "lookup"], "drafts without a model"),
        ([*base, "--temperature", "-1"], "temperature is -1.0"),
        ([*base, "--threads", "0"], "threads is 0"),
        ([*base, "--prompts", str(prompts)], "exclude each other"),
        (["--target", str(tiny), "--skip-layers", "9", "--prompt", "w1"], "cannot skip layer 9"),
    ):
        result = run(generate, *options)
        assert isinstance(result.exception, InputError), (options, result.exception)
        assert words in str(result.exception)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1000)
    refused = run(generate, *base).exception
    assert "needs 0.0 GiB for its weights, and cpu has 0.0 GiB free: choose a smaller dtype" in str(refused)


def test_the_size_of_the_weights_is_known_before_they_are_read(tiny: Path) -> None:
    source = models.find_model(tiny)
    model = models.load_model(source)
    counted = sum(weight.numel() * 4 for weight in model.parameters())
    assert memory.weight_bytes(models.load_config(source), "float32") == counted
    assert memory.weight_bytes(models.load_config(source), "bfloat16") == counted // 2
    assert memory.free_bytes("cpu") is None or memory.free_bytes("cpu") > 2**20


def test_a_file_that_is_no_journal(tmp_path: Path) -> None:
    for text, words in (
        ("no\n", "is not JSON"),
        ("[1]\n", "is no result"),
        ('{"a": 1}\n', "no journal"),
        ("x", "no journal"),
    ):
        file = tmp_path / "j"
        file.write_text(text)
        with pytest.raises(InputError, match=words):
            Journal(file, {})
        assert file.read_text() == text


def configuration(tiny: Path, name: str, **options: Any) -> Configuration:
    defaults = {"tree": "3x2", "temperature": 1.0, "threads": 1, "max_new_tokens": 6, "seed": 0}
    return Configuration((str(tiny), None, "3", "float32", "cpu"), name, **(defaults | options))


TEXTS = [Prompt("a", "w1 w2 w3"), Prompt("b", "w3 w3 w1"), Prompt("c", "w5")]


@pytest.mark.parametrize(
    "name", ["autoregressive", "speculative", "sequoia", "eagle", "lookup", "shaped", "resispec"]
)
def test_a_live_configuration(tiny: Path, tmp_path: Path, name: str) -> None:
    assert list(run_here(configuration(tiny, name), TEXTS, tmp_path / "j")) == [(1, 3), (2, 3), (3, 3)]
    row = summarise(*read_journal(tmp_path / "j"))
    assert (row["system"], row["prompts"], row["tokens"]) == (name, 3, 18)
    assert row["tokens_per_second"] > 0
    assert (row["accepted_length"] == 1.0) == (name == "autoregressive")
    assert (row["total_variation"] is None) == (row["audited_rows"] == 0)
    if name == "resispec":
        assert row["total_variation"] > 0


def test_a_breakdown_has_components_and_no_throughput(tiny: Path, tmp_path: Path) -> None:
    list(run_here(configuration(tiny, "resispec", breakdown=True), TEXTS, tmp_path / "j"))
    row = summarise(*read_journal(tmp_path / "j"))
    assert row["tokens_per_second"] is None
    parts = row["components"]
    assert set(parts) == {
        "drafting",
        "target",
        "verification",
        "cache",
        "budgeting",
        "redistribution",
        "proxy",
    }
    assert 0 < parts["budgeting"] + parts["redistribution"] + parts["proxy"] < parts["verification"]


def test_an_interrupted_live_run_goes_on_and_the_coins_are_the_same(tiny: Path, tmp_path: Path) -> None:
    part = run_here(configuration(tiny, "shaped"), TEXTS, tmp_path / "j")
    next(part)
    part.close()
    assert list(run_here(configuration(tiny, "shaped"), TEXTS, tmp_path / "j")) == [(2, 3), (3, 3)]
    list(run_here(configuration(tiny, "shaped"), TEXTS, tmp_path / "whole"))
    tokens = [[result["tokens"] for result in read_journal(tmp_path / file)[1]] for file in ("j", "whole")]
    assert tokens[0] == tokens[1]


def test_speed_runs_each_configuration_in_a_process(
    tiny: Path, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    popen = live.subprocess.Popen
    monkeypatch.setattr(live.subprocess, "Popen", lambda *a, **k: started.append(a) or popen(*a, **k))
    out = tmp_path / "runs"
    options = [
        "--live",
        "--target",
        str(tiny),
        "--skip-layers",
        "3",
        "--prompts",
        str(prompts),
        "--out",
        str(out),
    ]
    options += ["--system", "shaped", "--tree", "3x2", "--max-new-tokens", "4", "--json"]
    result = run(speed, *options)
    assert result.exit_code == 0, result.exception
    assert len(started) == 1
    assert json.loads(result.stdout)["rows"][0]["tokens"] == 8
    assert {file.name for file in out.iterdir()} == {"shaped-3x2-T1.jsonl", "speed.csv"}
    refused = run(speed, *options, "--system", "nosuch")
    assert "unknown system 'nosuch'" in str(refused.exception)
    assert "made with other settings: max_new_tokens" in str(
        run(speed, *options, "--max-new-tokens", "5").exception
    )


def test_systems() -> None:
    assert system("eagle", "5x3").tree == "eagle:121:3:10"
    assert system("lookup", "4x4").tree == "lookup:3:3"
    assert system("speculative", "5x3").tree == "chain:4"
    for name in SYSTEMS:
        system(name, "4x2")
    with pytest.raises(InputError, match=r"unknown system 'shape'; did you mean 'shaped'\?"):
        system("shape", "4x2")


def test_there_are_twenty_prompts_and_their_names_differ() -> None:
    assert len({prompt.name for prompt in STARTS}) == len({prompt.text for prompt in STARTS}) == 24


@pytest.mark.parametrize("redistribution", REDISTRIBUTIONS)
def test_on_deterministic_candidates_the_published_rule_is_exact_and_gains_nothing(
    redistribution: str,
) -> None:
    """Why there is no `resispec-eagle`: with q a point mass the shaped residual is p without the rejected token."""
    p, q = parse_law("1/3,1/4,1/4,1/6"), parse_law("1/10,2/5,3/10,1/5")
    found = audit(rule("resispec", redistribution=redistribution), p, q, 3, draw="top-k")
    plain = audit("deterministic", p, q, 3)
    assert found.verdict.value == plain.verdict.value == "EXACT"
    assert found.acceptance == plain.acceptance == found.ceiling
    # The planted fault: the same candidates verified as if they were drawn from q.
    assert audit(rule("resispec"), p, q, 3, draw="top-k", mismatched=True).verdict.value == "BIASED"

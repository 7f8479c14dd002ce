"""`resispec speed --kernels`: no GPU figure without a GPU, and nothing lost at an interrupt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from resispec_core.cli.main import main
from resispec_core.gpu import bench

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in this process, on small rows, as on a machine without a GPU."""
    monkeypatch.setattr(bench, "why_no_device", lambda: "no GPU path: tested without")
    monkeypatch.setattr(bench, "VOCABULARIES", (64,))

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(["speed", *arguments])
        return (int(stop.value.code or 0), *capsys.readouterr())

    return call


def test_without_a_device_it_claims_none(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "speed.json"
    code, out, _ = run("--kernels", "--out", str(file))
    assert code == 0
    assert "no GPU figures" in out
    assert "no GPU path: tested without" in out
    assert "TB/s" not in out
    stored = json.loads(file.read_text())
    assert (stored["gpu"], stored["interrupted"]) == (False, False)
    assert [row["rule"] for row in stored["cpu_times_not_gpu_figures"]] == list(bench.RULES)
    assert len(stored["would_run"]) == len(list(bench.cases()))
    assert "timed" not in stored


def test_json_goes_to_standard_output_alone(run: Run) -> None:
    code, out, err = run("--kernels", "--json")
    assert code == 0
    assert json.loads(out)["gpu"] is False
    assert "CPU only, no GPU figure" in err


def test_what_was_timed_before_an_interrupt_is_kept(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, left = bench.inputs, [1]

    def inputs(case: bench.Case, seed: int) -> dict[str, object]:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return real(case, seed)

    monkeypatch.setattr(bench, "inputs", inputs)
    file = tmp_path / "speed.json"
    code, _, err = run("--kernels", "--out", str(file))
    assert code == 130
    assert "resispec: interrupted" in err
    stored = json.loads(file.read_text())
    assert stored["interrupted"] is True
    assert [row["rule"] for row in stored["cpu_times_not_gpu_figures"]] == [bench.RULES[0]]


def test_it_must_be_told_what_to_time(run: Run) -> None:
    code, _, err = run()
    assert code == 2
    assert "--kernels" in err


def test_a_folder_is_no_file_to_write(run: Run, tmp_path: Path) -> None:
    code, _, err = run("--kernels", "--out", str(tmp_path))
    assert code == 2
    assert f"--out {tmp_path} is a folder; with --kernels name a file" in err


def test_the_module_runs_alone(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main([]) == 0
    assert "no GPU figures" in capsys.readouterr().out
    assert bench.main(["--nonsense"]) == 2


def test_the_table_of_a_device_run_and_what_an_interrupt_left() -> None:
    """Invented numbers: how a device's result would be laid out."""
    row = {
        **bench.Case("specinfer", 64, "float32", 1, 2)._asdict(), "seconds": 1.0, "of_copy_rate": 0.5,
        "array_level_ratio": 2.0, "eager_torch_ratio": None,
    }  # fmt: skip
    result = {
        "gpu": True,
        "interrupted": True,
        "timed": [row],
        "not_run": [row],
        "copy_bytes_per_second": 1e12,
    }
    lines = bench.table(result)
    assert len(lines) == 3
    assert "0.50 of copy rate" in lines[1]
    assert lines[2] == "1 cases not run (interrupted)"
    assert bench.table({**result, "timed": []} | {"copy_bytes_per_second": None})[-1] == lines[2]

"""The fuzzer finds a fault planted in each of its targets, writes it down, and survives crashes and hangs."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzz import corpus, driver, worker
from resispec_core.audit import Verdict
from resispec_core.audit.counterexample import load, reproduce
from resispec_core.cli.main import main
from tests.fuzz import planted
from tests.shim import build

SECONDS = 240
"""At most; every planted fault is found within seconds of an idle core."""
FAULTS = {
    "laws": "lenient_rule",
    "kernels": "broken_kernel",
    "files": "careless_parser",
    "commands": "careless_command",
}


def hunt(tmp_path: Path, target: str, fault: str, **options) -> driver.Summary:
    return driver.run(
        target, SECONDS, 1, plant=f"tests.fuzz.planted:{fault}", into=tmp_path / "corpus", words=tmp_path / "words",
        **{"first": True, **options},
    )  # fmt: skip


@pytest.mark.parametrize("target", FAULTS)
def test_a_planted_fault_is_found_and_its_file_fails(tmp_path: Path, target: str) -> None:
    if target == "kernels" and build.unavailable() is not None:
        pytest.skip(str(build.unavailable()))
    summary = hunt(tmp_path, target, FAULTS[target])
    assert summary.ended == "first failure", summary
    file = Path(next(iter(summary.failures.values())))
    corpus.replay(file)  # the code is right, so the case passes ...
    with_fault = f"from tests.fuzz import planted; planted.{FAULTS[target]}()"
    code = f"{with_fault}\nfrom fuzz import corpus; corpus.replay({str(file)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=driver.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, "... and with the fault it fails"
    assert json.loads(file.read_text())["found"]["seed"] == 1


def test_a_rule_s_failure_is_a_counterexample_that_replay_reads(tmp_path: Path) -> None:
    summary = driver.run("laws", 8, 3, plant="tests.fuzz.planted:lenient_rule", into=tmp_path)
    assert summary.ended == "time"
    cases = [load(path) for path in corpus.files(tmp_path)]
    assert {case.subject for case in cases} & {"specinfer", "single-draft"}  # the second inherits the fault
    assert min(len(case.target) for case in cases) <= 4  # most cases drawn are larger
    assert all(
        reproduce(case).verdict in (Verdict.EXACT, Verdict.EXACT_WITHIN) for case in cases
    )  # the rule is right


@pytest.mark.parametrize("engine", worker.ENGINES)
def test_either_engine_finds_a_careless_parser(tmp_path: Path, engine: str) -> None:
    if engine == "atheris" and importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed")
    assert hunt(tmp_path, "files", "careless_parser", with_engine=engine).failures


@pytest.mark.parametrize(("fault", "ended"), [("crash", "crash"), ("hang", "hang")])
def test_a_worker_that_dies_or_hangs_leaves_its_case(
    tmp_path: Path, fault: str, ended: str, monkeypatch
) -> None:
    monkeypatch.setattr(driver, "HANG_SECONDS", 10)
    summary = hunt(tmp_path, "files", fault)
    assert summary.ended == ended
    (file,) = corpus.files(tmp_path / "corpus")
    assert corpus.read(file)[1]["parser"] in ("store.json", "shard", "vocabulary")


def test_an_interrupt_ends_the_run_and_keeps_its_figures(tmp_path: Path) -> None:
    words = f"words=Path({str(tmp_path)!r})"
    code = f"from fuzz import driver; from pathlib import Path; print(driver.run('files', 600, 1, {words}))"
    child = subprocess.Popen([sys.executable, "-c", code], cwd=driver.ROOT, stdout=subprocess.PIPE, text=True)
    time.sleep(8)
    os.kill(child.pid, signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert "ended='interrupted'" in out


def test_the_command_reports_and_exits_with_0(capsys) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["fuzz", "--minutes", "0.05", "--target", "laws", "--seed", "5", "--json"])
    assert stop.value.code == 0
    out, err = capsys.readouterr()
    (run,) = json.loads(out)["runs"]
    assert (run["target"], run["seed"], run["failures"], run["ended"]) == ("laws", 5, {}, "time")
    assert "seed 5" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--target", "lawz"], "unknown target 'lawz'"), (["--minutes", "0"], "--minutes is 0.0")],
)
def test_bad_options(capsys, words: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["fuzz", *words])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_every_target_has_a_planted_fault() -> None:
    from fuzz.target import TARGETS

    assert FAULTS.keys() == TARGETS.keys()
    assert all(hasattr(planted, name) for name in FAULTS.values())

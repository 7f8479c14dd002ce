"""Runs of the command line: in this process, and once for all workers on the shipped logits."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_cases import Result, log_law, run_process, write_store

from resispec_core.cli.main import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run the command in this process: ``run("audit", "--json").json``."""

    def call(*arguments: str) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        return Result(int(stop.value.code or 0), *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def sample_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Result]:
    """A run on the shipped logits, made by the first worker that asks and read by the others."""
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent

    def call(*arguments: str) -> Result:
        file = shared / ("sample_run" + "".join(arguments).replace("/", "_") + ".json")
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                file.write_text(json.dumps(run_process(*arguments)))
        return Result(*json.loads(file.read_text()))

    return call


@pytest.fixture
def small_store(tmp_path: Path) -> Path:
    """Three positions at V = 4: laws that differ, equal laws, and disjoint supports."""
    targets = [[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.0, 0.0, 0.5, 0.5]]
    drafts = [[0.4, 0.3, 0.2, 0.1], [0.7, 0.1, 0.1, 0.1], [0.5, 0.5, 0.0, 0.0]]
    return write_store(
        tmp_path / "small", [log_law(row) for row in targets], [log_law(row) for row in drafts]
    )

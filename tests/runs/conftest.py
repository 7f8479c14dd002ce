"""A small store, an undisturbed run over it, and the command in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from run_cases import Result, audited, make_store

from resispec_core.cli.main import main
from resispec_core.llama.store import LogitsStore


@pytest.fixture
def store(tmp_path: Path) -> LogitsStore:
    """Twelve positions in three shards."""
    return make_store(tmp_path / "store")


@pytest.fixture
def whole(store: LogitsStore, tmp_path: Path) -> Path:
    """An undisturbed run over ``store``."""
    assert audited(store, tmp_path / "whole").complete
    return tmp_path / "whole"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run the command in this process: ``run("diff", one, other, "--json").json``."""

    def call(*arguments: object) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in arguments])
        return Result(int(stop.value.code or 0), *capsys.readouterr())

    return call

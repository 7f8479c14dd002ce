"""A small store and an undisturbed run over it."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_cases import audited, make_store

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

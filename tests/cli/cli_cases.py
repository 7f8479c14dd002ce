"""How the tests of the command line run it, and small stores for it to read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save_file

from resispec_core.llama.positions import Position
from resispec_core.llama.writer import StoreWriter

COMMAND = (sys.executable, "-c", "from resispec_core.cli.main import main; main()")
WITNESS = ("--target", "1/3,1/3,1/3", "--draft", "1/2,2/5,1/10")


class Result(NamedTuple):
    """What one run of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(*folders: Path) -> dict[str, str]:
    """The tests' own environment, with this checkout and ``folders`` first on the path and warnings as errors."""
    first = [Path(__file__).parents[2], *folders]
    path = os.pathsep.join(filter(None, (*map(str, first), os.environ.get("PYTHONPATH", ""))))
    return os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "error", "COLUMNS": "110"}


def run_process(*arguments: str, folders: tuple[Path, ...] = (), **options: Any) -> Result:
    """The command in a process of its own, with ``folders`` on its path."""
    done = subprocess.run(
        (*COMMAND, *arguments),
        env=environment(*folders),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        **options,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def log_law(probabilities: list[float]) -> list[float]:
    """Natural logarithms, -inf for zero."""
    with np.errstate(divide="ignore"):
        return np.log(np.array(probabilities)).tolist()


def write_store(folder: Path, targets: list[list[float]], drafts: list[list[float]]) -> Path:
    """A store in one shard, of rows of log-probabilities."""
    width = len(targets[0])
    names = [f"t{token}" for token in range(width)]
    token_ids = [0] * (len(targets) + 1)
    settings = {
        "target": {"id": "T"},
        "draft": {"id": "D"},
        "libraries": {},
        "tokenizer_sha256": "0" * 64,
        "vocabulary_size": width,
        "dtype": "float16",
        "prompts": [{"name": "p", "text": "t0", "token_ids": token_ids}],
    }
    positions = [Position(0, place + 1, "t0", 0, "t0") for place in range(len(targets))]
    writer = StoreWriter(folder, settings, positions, names)
    writer.append(np.array(targets, dtype=np.float16), np.array(drafts, dtype=np.float16))
    return folder


def overwrite_rows(folder: Path, **rows: Any) -> None:
    """Replace the only shard's tensors, as a fault on disk would."""
    save_file({name: np.array(row, dtype=np.float16) for name, row in rows.items()}, shard(folder))


def shard(folder: Path) -> Path:
    """The only shard of a small store."""
    (file,) = folder.glob("*.safetensors")
    return file

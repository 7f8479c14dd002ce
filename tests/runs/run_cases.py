"""Small stores, rules that misbehave on purpose, and ways to end a run."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from resispec_core.errors import InputError
from resispec_core.llama.positions import Position
from resispec_core.llama.store import LogitsStore, file_sha256
from resispec_core.llama.writer import StoreWriter
from resispec_core.rules import SpecInfer
from resispec_core.runs import Outcome, Plan, Run, audit_store, in_process
from resispec_core.runs.run import open_unchecked
from tests.cli import cli_cases
from tests.cli.cli_cases import Result

WIDTH = 5
PLAN = Plan(("resispec", "specinfer"), candidates=2)
HERE = Path(__file__).parent


def environment() -> dict[str, str]:
    """The environment of the command, which finds the rules of this file."""
    return cli_cases.environment(HERE)


def run_process(*arguments: str, **options: Any) -> Result:
    """The command in a process of its own, which finds the rules of this file."""
    return cli_cases.run_process(*arguments, folders=(HERE,), **options)


def make_store(folder: Path, positions: int = 12, per_shard: int = 4, seed: int = 1) -> LogitsStore:
    """A store of random rows of five tokens, in shards."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, WIDTH, positions + 1).tolist()
    names = [f"t{token}" for token in range(WIDTH)]
    settings = {
        "target": {"id": "T"},
        "draft": {"id": "D"},
        "libraries": {},
        "tokenizer_sha256": "0" * 64,
        "vocabulary_size": WIDTH,
        "dtype": "float16",
        "prompts": [{"name": "prompt | one", "text": "t", "token_ids": ids}],
    }
    planned = [
        Position(0, place + 1, f"<b>&\n|{place}", ids[place + 1], names[ids[place + 1]])
        for place in range(positions)
    ]
    writer = StoreWriter(folder, settings, planned, names)
    for start in range(0, positions, per_shard):
        rows = min(per_shard, positions - start)
        logits = rng.normal(0, 2, (2, rows, WIDTH))
        logits -= np.log(np.exp(logits).sum(axis=2, keepdims=True))
        writer.append(*logits.astype(np.float16))
    return LogitsStore.open(folder)


def audited(store: LogitsStore | Path, out: Path, plan: Plan = PLAN) -> Outcome:
    """A session in this process."""
    found = store if isinstance(store, LogitsStore) else open_unchecked(store)
    with in_process() as pool:
        return audit_store(found, plan, out, pool)


def rows(out: Path) -> list[dict[str, Any]]:
    """Every row of a run, without the one column that is no result; NaN-free, so that == means bit for bit."""
    table = Run.open(out).table([name for name in columns() if name != "seconds"])
    return table.to_pylist()


def columns() -> list[str]:
    from resispec_core.runs.records import schema

    return list(schema().names)


def check_whole(out: Path, whole: Path) -> None:
    """A run holds every row of an undisturbed run, once, bit for bit."""
    run = Run.open(out)
    assert run.complete
    found = rows(out)
    keys = [(row["position"], row["rule"]) for row in found]
    assert len(keys) == len(set(keys))
    assert found == rows(whole)


def flip_byte(file: Path) -> None:
    """One bit of the last byte of a file."""
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))


def plant_nan(store: Path, shard: int, row: int) -> None:
    """A NaN that was there when the store was recorded: the hash agrees."""
    index = json.loads((store / "store.json").read_text())
    entry = index["shards"][shard]
    target = np.full((entry["rows"], WIDTH), np.log(1 / WIDTH), dtype=np.float16)
    target[row, 3] = np.nan
    save_file({"target": target, "draft": np.full_like(target, np.log(1 / WIDTH))}, store / entry["file"])
    entry["sha256"] = file_sha256(store / entry["file"])
    (store / "store.json").write_text(json.dumps(index))


class Deadly(SpecInfer):
    """Kills its worker where the marked token is the target's favourite."""

    name = "deadly"

    def __init__(self, token: int = 0) -> None:
        self.token = token

    def accept(self, stage: Any) -> Any:
        if int(np.argmax(np.asarray(stage.target, dtype=float))) == self.token:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().accept(stage)


class Slow(SpecInfer):
    """Leaves its process id in a folder, and takes its time."""

    name = "slow"

    def __init__(self, folder: str = "", seconds: float = 0.0) -> None:
        self.folder, self.seconds = folder, seconds

    def accept(self, stage: Any) -> Any:
        if self.folder and stage.index == 0:
            (Path(self.folder) / str(os.getpid())).touch()
            time.sleep(self.seconds)
        return super().accept(stage)


class Raising(SpecInfer):
    """Has a bug."""

    name = "raising"

    def accept(self, stage: Any) -> Any:
        raise ZeroDivisionError("a bug of the rule")


def wait_for(condition: Any, seconds: float = 60.0) -> Any:
    """What ``condition()`` returns once it is true; fails after so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise InputError("waited in vain")


def alive(pid: int) -> bool:
    """A process that runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False

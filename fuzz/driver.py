"""Runs the worker, watches it, and says what came of it. A crash or a hang of the worker is a failure, too."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fuzz import corpus
from fuzz.worker import HANG_SECONDS

GUIDED = ("files", "commands")
"""Targets whose faults hide behind branches; those of arithmetic hide behind values, which coverage cannot see."""
ROOT = Path(__file__).parents[1]
WORDS = ROOT / ".resispec" / "fuzz"
"""libFuzzer's own corpora, kept so that a run goes on where the last one ended."""


@dataclass
class Summary:
    """One run of a target.

    ``failures``: file by signature; ``ended``: time, interrupted, crash, hang or first failure.
    """

    target: str
    engine: str
    seed: int
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    cases: int = 0
    failing: int = 0
    branches: int | None = None
    """Covered branches of ``resispec_core``, as libFuzzer counts them."""
    ended: str = "time"
    failures: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def engine(target: str) -> str:
    """atheris for parsers, where it is installed (Linux, CPython 3.11 to 3.13); else Hypothesis (fuzz/README.md)."""
    return "atheris" if target in GUIDED and importlib.util.find_spec("atheris") else "hypothesis"


def run(
    target: str,
    seconds: float,
    seed: int,
    *,
    with_engine: str | None = None,
    into: Path = corpus.CORPUS,
    words: Path = WORDS,
    plant: str | None = None,
    first: bool = False,
    report: Callable[[Summary], object] = bool,
) -> Summary:
    """Fuzz ``target`` for ``seconds``; ``report`` is called twice a second. Ctrl-C ends the run and keeps the rest.

    ``first`` stops at the first failure on file."""
    summary = Summary(target, with_engine or engine(target), seed)
    with tempfile.TemporaryDirectory(prefix="resispec-fuzz-") as scratch:
        folder = Path(scratch)
        command = [sys.executable, "-m", "fuzz.worker", "--target", target, "--seconds", str(seconds)]
        command += [
            "--seed",
            str(seed),
            "--engine",
            summary.engine,
            "--folder",
            str(folder),
            "--corpus",
            str(into),
        ]
        command += ["--words", str(words / target)] + (["--plant", plant] if plant else [])
        with (folder / "log").open("w") as log:
            child = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            try:
                watch(child, folder, summary, report, first)
            except KeyboardInterrupt:
                summary.ended = "interrupted"
            finally:
                stop(child)
        update(summary, folder)
        if summary.ended == "time" and child.returncode != 0:
            summary.ended = "crash"
        if summary.ended in ("crash", "hang"):
            note(summary, folder, into, child.returncode)
        report(summary)
    return summary


def watch(
    child: Any, folder: Path, summary: Summary, report: Callable[[Summary], object], first: bool
) -> None:
    """Until the worker ends, or has been silent for too long (shrinking a failure tells, too)."""
    moved, last = time.monotonic(), -1
    while child.poll() is None:
        time.sleep(0.5)
        update(summary, folder)
        report(summary)
        if first and summary.failures:
            summary.ended = "first failure"
            return
        if summary.cases != last:
            moved, last = time.monotonic(), summary.cases
        if time.monotonic() - moved > 2 * HANG_SECONDS:
            summary.ended = "hang"
            return


def stop(child: Any) -> None:
    """End the worker, politely first."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def update(summary: Summary, folder: Path) -> None:
    """Take over the worker's figures."""
    status = folder / "status.json"
    if status.exists():
        data = json.loads(status.read_text())
        summary.seconds, summary.cpu_seconds = data["seconds"], data["cpu_seconds"]
        summary.cases, summary.failing = data["cases"], data["failing"]
        summary.failures.update(data["files"])
    found = re.findall(r"cov: (\d+)", (folder / "log").read_text(errors="replace"))
    summary.branches = int(found[-1]) if found else None


def note(summary: Summary, folder: Path, into: Path, code: int) -> None:
    """The case that was running when the worker went, as a failure."""
    tail = (folder / "log").read_text(errors="replace")[-2000:]
    running = folder / "running.json"
    if not running.exists() or not running.read_text():
        raise RuntimeError(f"the fuzzing worker ended with {code} before its first case:\n{tail}")
    kind = f"worker {summary.ended} (exit {code})"
    found = {"error": tail, "signature": kind, "engine": summary.engine, "seed": summary.seed}
    summary.failures[kind] = str(corpus.write(summary.target, json.loads(running.read_text()), found, into))

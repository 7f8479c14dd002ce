"""The process that fuzzes: one target, until its time is over. driver.py starts it, and reads what it leaves.

``status.json``: figures so far. ``running.json``: the case under test, so that a crash or a hang has a name.
Two engines: atheris (libFuzzer: branches of ``resispec_core`` guide the mutation of the bytes from which Hypothesis
draws a case), and Hypothesis alone, where atheris has no build.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.database import InMemoryExampleDatabase

ENGINES = ("atheris", "hypothesis")
WORDS = 64
"""Buffers of random bytes that a first run starts from."""
BUFFER = 2048
HANG_SECONDS = 120


class Hunt:
    """Runs cases of one target, keeps count, and writes down each new way to fail once, shrunk."""

    def __init__(
        self, target: Any, folder: Path, into: Path, found_with: dict[str, Any], seconds: float
    ) -> None:
        self.target, self.folder, self.into, self.found_with = target, folder, into, found_with
        self.started, self.deadline = time.monotonic(), time.monotonic() + seconds
        self.cases = self.failing = 0
        self.known: dict[str, str] = {}
        self.hunting: str | None = None
        self.smallest: tuple[dict[str, Any], Exception] | None = None
        self.told = 0.0
        self.running = os.open(folder / "running.json", os.O_RDWR | os.O_CREAT)

    def one(self, case: dict[str, Any]) -> None:
        """Check one case; raise only for the failure being shrunk, or for a new one, which then is."""
        text = json.dumps(case).encode()
        os.pwrite(self.running, text, 0)
        os.ftruncate(self.running, len(text))
        self.cases += 1
        try:
            self.target.check(case)
        except Exception as error:
            self.failing += 1
            kind = signature(error)
            if self.hunting is None and kind not in self.known:
                self.hunting = kind
                self.known[kind] = self.file(case, error)  # at once, in case the shrinking is interrupted
            if self.hunting == kind:
                self.smallest = case, error
                raise
        finally:
            self.tell()

    def settle(self) -> None:
        """The shrunk failure takes the place of the first one."""
        if self.hunting is not None and self.smallest is not None:
            large, small = self.known[self.hunting], self.file(*self.smallest)
            self.known[self.hunting] = small
            self.tell(now=True)
            if small != large:
                Path(large).unlink(missing_ok=True)
        self.hunting = self.smallest = None
        self.tell(now=True)

    def file(self, case: dict[str, Any], error: Exception) -> str:
        """A failing case, written down."""
        words = "".join(traceback.format_exception_only(error)).strip()
        found = {"error": words, "signature": self.hunting, **self.found_with}
        corpus = importlib.import_module("fuzz.corpus")
        return str(corpus.write(self.target.name, case, found, self.into))

    def tell(self, now: bool = False) -> None:
        """Write the figures, at most twice a second."""
        clock = time.monotonic()
        if now or clock - self.told > 0.5:
            self.told = clock
            figures = {
                "cases": self.cases,
                "failing": self.failing,
                "files": self.known,
                "seconds": clock - self.started,
                "cpu_seconds": time.process_time(),
            }
            part = self.folder / "status.part"
            part.write_text(json.dumps(figures))
            part.replace(self.folder / "status.json")


def signature(error: BaseException) -> str:
    """What makes two failures the same: the type, the line of ours that raised, and the words without numbers."""
    root = str(Path(__file__).parents[1])
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(root)]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "?"
    words = re.sub(r"[0-9.e+-]*[0-9]", "#", str(error).split("\n")[0])[:60]
    return f"{type(error).__name__} {place} {words}"


def property_of(hunt: Hunt, **options: Any) -> Any:
    """The Hypothesis test that both engines drive."""

    @settings(deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False, **options)
    @given(case=hunt.target.cases())
    def check(case: dict[str, Any]) -> None:
        hunt.one(case)

    return check


def with_hypothesis(hunt: Hunt, seed: int) -> None:
    """Fresh random examples, batch after batch. (No ``hypothesis.target``: a right rule gives nothing to climb.)"""
    phases = (Phase.generate, Phase.shrink)
    batch = 0
    while time.monotonic() < hunt.deadline:
        check = property_of(hunt, database=None, max_examples=200, phases=phases)
        try:
            hypothesis.seed(seed * 1_000_003 + batch)(check)()
        except Exception:
            if hunt.hunting is None:
                raise
            hunt.settle()
        batch += 1
    hunt.tell(now=True)


def with_atheris(hunt: Hunt, seed: int, seconds: float, words: Path) -> None:
    """libFuzzer over Hypothesis's bytes; does not return."""
    import atheris

    words.mkdir(parents=True, exist_ok=True)
    if not any(words.iterdir()):
        rng = np.random.default_rng(seed)
        for number in range(WORDS):
            (words / f"start-{number}").write_bytes(rng.bytes(int(rng.integers(64, BUFFER))))
    database = InMemoryExampleDatabase()
    check = property_of(hunt, database=database, max_examples=10_000, phases=(Phase.reuse, Phase.shrink))
    fuzz_one = check.hypothesis.fuzz_one_input

    def once(data: bytes) -> None:
        try:
            fuzz_one(data)
        except Exception:
            if hunt.hunting is None:
                raise
            with contextlib.suppress(Exception):  # the shrunk failure; hunt.smallest has it
                check()  # finds the failure in the database and shrinks it
            hunt.settle()

    options = (
        f"-max_total_time={max(1, round(seconds))}", f"-seed={seed % 2**31 or 1}", f"-max_len={BUFFER}",
        "-len_control=0",
        f"-timeout={HANG_SECONDS}", "-rss_limit_mb=4096", f"-artifact_prefix={hunt.folder}/",
    )  # fmt: skip
    atheris.Setup([sys.argv[0], str(words), *options], once)
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, kind in {"target": str, "seconds": float, "seed": int, "engine": str}.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    for name in ("folder", "corpus", "words"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--plant", help="module:function to call first; tests plant faults with it")
    given_options = parser.parse_args()
    if given_options.engine == "atheris":
        import atheris

        watched: Any = atheris.instrument_imports(include=["resispec_core"])
    else:
        watched = contextlib.nullcontext()
    with watched:  # whatever imports resispec_core is imported here, so that its branches are counted
        importlib.import_module("fuzz.corpus")
        target = importlib.import_module("fuzz.target").load(given_options.target)
    if given_options.plant:
        module, _, function = given_options.plant.partition(":")
        getattr(importlib.import_module(module), function)()
    found_with = {"engine": given_options.engine, "seed": given_options.seed}
    hunt = Hunt(target, given_options.folder, given_options.corpus, found_with, given_options.seconds)
    hunt.tell(now=True)
    if given_options.engine == "atheris":
        with_atheris(hunt, given_options.seed, given_options.seconds, given_options.words)
    else:
        with_hypothesis(hunt, given_options.seed)


if __name__ == "__main__":
    main()

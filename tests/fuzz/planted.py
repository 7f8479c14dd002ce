"""Faults for the fuzzer to find, one for each target; ``fuzz.worker --plant`` calls these first."""

from __future__ import annotations

import json
import os
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from resispec_core import rules
from resispec_core.arrays import divide


def lenient_rule() -> None:
    """SpecInfer accepts a hundredth more than it may."""

    def accept(self, stage):
        return np.minimum(divide(stage.residual * Fraction(101, 100), stage.draft), 1)

    rules.SpecInfer.accept = accept


def broken_kernel() -> None:
    """The residual's scale of SpecInfer's kernel is wrong after the first rejection."""
    from tests.meta.kernels.bugs import BUGS, plant
    from tests.shim import build

    (bug,) = (bug for bug in BUGS if bug.name == "residual of the wrong stage")
    kernels, run = plant(bug, Path(tempfile.mkdtemp(prefix="resispec-planted-"))), build.run

    def planted(config, *arguments, **options):
        more = {"kernels": kernels} if config.rule == "specinfer" else {}
        return run(config, *arguments, **options, **more)

    build.run = planted


def careless_parser() -> None:
    """A counterexample file that is no JSON ends in a ValueError."""
    from fuzz.targets import files

    load = files.load

    def careless(path):
        json.loads(path.read_text(encoding="utf-8"))
        return load(path)

    files.load = careless


def careless_command() -> None:
    """``info`` on a folder that holds no store ends in a KeyError."""
    from resispec_core.cli import info
    from resispec_core.llama.store import LogitsStore

    class Careless(LogitsStore):
        @classmethod
        def open(cls, path):
            if not (Path(path) / "store.json").exists():
                raise KeyError("store.json")
            return LogitsStore.open(path)

    info.LogitsStore = Careless


def crash() -> None:
    """Reading a damaged shard ends the process."""
    from fuzz.targets import files

    files.check_store = lambda folder: os.abort()


def hang() -> None:
    """Reading a store never ends."""
    from fuzz.targets import files

    files.check_store = lambda folder: time.sleep(3600)

"""What can be fuzzed: a strategy of cases, and a check that raises on the ones that show a fault."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from resispec_core.errors import InputError

Case = dict[str, Any]
"""JSON, so that a case is its own file."""

TARGETS = {
    "laws": "every rule × draw mode × dtype keeps the law it claims to keep",
    "kernels": "reference, array-level twin and the CUDA source run on the CPU agree",
    "files": "stores of logits and counterexample files: any bytes give an InputError or a valid object",
    "commands": "the command line: any argument list ends with a documented exit code and no traceback",
}


@dataclass(frozen=True)
class Target:
    """``cases()`` draws a case; ``check(case)`` raises where it shows a fault, and otherwise returns None."""

    name: str
    cases: Callable[[], st.SearchStrategy[Case]]
    check: Callable[[Case], None]


def load(name: str) -> Target:
    """The target called ``name``; imports what it needs (the kernels need g++)."""
    if name not in TARGETS:
        raise InputError(f"unknown target {name!r}; known: {', '.join(TARGETS)}")
    found: Target = importlib.import_module(f"fuzz.targets.{name}").TARGET
    return found

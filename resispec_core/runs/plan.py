"""What decides the rows of a run, as a value: the same plan on the same store gives the same rows."""

from __future__ import annotations

import hashlib
import inspect
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import resispec_core
from resispec_core.errors import InputError
from resispec_core.llama.store import INDEX_FILE, LogitsStore, file_sha256
from resispec_core.rules.base import Rule
from resispec_core.rules.registry import rule as named_rule

_LAW_ROOMS = ("arrays.py", "inclusion.py", "laws.py", "drafts.py", "rules", "audit")


@dataclass(frozen=True)
class Plan:
    """Rules audited side by side at every position, and how.

    ``rules``: of different labels. ``draw``: None for each rule's own mode. ``shaping``: keywords of
    ``laws.law_from_logits``, applied to both rows.

    Raises InputError for no rule, for two of one label, for fewer than one candidate, and for a draw mode that a rule
    is not meant for (unless ``mismatched``).
    """

    rules: Sequence[Rule | str]
    candidates: int = 3
    draw: str | None = None
    mismatched: bool = False
    shaping: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        labels = self.labels
        if not labels:
            raise InputError("a run needs at least one rule")
        for name in labels:
            if labels.count(name) > 1:
                raise InputError(f"rule {name!r} is given twice; a run keeps each rule once")
        if self.candidates < 1:
            raise InputError(f"candidates is {self.candidates}; at least one must be drafted")
        if not self.mismatched:
            for rule in self.own_rules:
                rule.draw_mode(self.draw)

    @cached_property
    def own_rules(self) -> tuple[Rule, ...]:
        """The rules as instances."""
        return tuple(named_rule(rule) for rule in self.rules)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Name of each rule in tables, with the options that are not the default."""
        return tuple(label(rule) for rule in self.own_rules)

    def identity(self, store: LogitsStore) -> dict[str, Any]:
        """Everything that decides the rows, JSON-ready; a run is only ever continued under an equal one.

        The order is the order in which differences are named: causes before effects.
        """
        return {
            "candidates": self.candidates,
            "draw": self.draw,
            "mismatched": self.mismatched,
            "shaping": {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None} | self.shaping,
            "rules": [
                {
                    "label": label(rule),
                    "name": rule.name,
                    "class": f"{type(rule).__module__}:{type(rule).__qualname__}",
                    "options": {name: getattr(rule, name) for name in rule.options()},
                    "lossy": rule.lossy,
                    "source_sha256": _source_sha256(type(rule)),
                }
                for rule in self.own_rules
            ],
            "store": {
                "target": store.metadata["target"].get("id"),
                "draft": store.metadata["draft"].get("id"),
                "draft_layers_skipped": store.metadata["draft"].get("layers_skipped"),
                "vocabulary": store.vocabulary,
                "positions": len(store),
                "index_sha256": file_sha256(store.path / INDEX_FILE),
            },
            "versions": versions(),
        }


def label(rule: Rule) -> str:
    """The rule's name, and its options where they are not the default."""
    options = {
        name: getattr(rule, name) for name, usual in rule.options().items() if getattr(rule, name) != usual
    }
    return rule.name + ("" if not options else f"({', '.join(f'{k}={v}' for k, v in options.items())})")


def versions() -> dict[str, str]:
    """What computes the rows: a worker with other versions is refused, and so is a resumed run.

    ``code_sha256`` covers the sources of laws, draws, rules and audits, so that a change in them cannot hide behind
    an unchanged version number.
    """
    return {
        "resispec_core": resispec_core.__version__,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
        "code_sha256": _code_sha256(),
    }


@lru_cache(maxsize=1)
def _code_sha256() -> str:
    root = Path(resispec_core.__file__).parent
    found = hashlib.sha256()
    for room in _LAW_ROOMS:
        place = root / room
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            found.update(f"{file.relative_to(root).as_posix()}\0{file_sha256(file)}\n".encode())
    return found.hexdigest()


def _source_sha256(kind: type[Rule]) -> str | None:
    """Of the file a rule is written in; None for one typed into a prompt, whose changes go unnoticed."""
    try:
        file = inspect.getsourcefile(kind)
    except TypeError:
        return None
    return file_sha256(Path(file)) if file and Path(file).is_file() else None

"""Counterexamples as files: small JSON, rationals as strings, and everything needed to see the fault again."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from resispec_core.audit.pair import audit
from resispec_core.audit.replay.engine import replay_step, replay_verify
from resispec_core.audit.replay.tables import Markov
from resispec_core.audit.tape import tape_audit
from resispec_core.errors import InputError
from resispec_core.laws import law
from resispec_core.rules.registry import rule as named_rule

SCHEMA = "resispec-counterexample"
VERSION = 1
KINDS = ("rule", "verify", "step", "kernel")
_PAIR = {"candidates": int, "draw": str}
_REPLAY = {"library": str, "numbers": str, "precision": str, "grid": bool, "monte_carlo": int}
SETTINGS: dict[str, dict[str, type]] = {
    "rule": {**_PAIR, "mismatched": bool, "max_cells": int, "partial": bool},
    "verify": {**_PAIR, **_REPLAY},
    "step": {**_REPLAY, "horizon": int, "extend": str, "prompt": list},
    "kernel": {**_PAIR, "coins": int, "bits": int, "max_calls": int},
}
"""By kind, the arguments of the audit that a file can set."""


@dataclass
class Counterexample:
    """One input on which a subject fails.

    ``kind``: "rule" (``subject`` is a rule's name, ``options`` its options), or a callable's signature ("verify",
    "step", "kernel"; ``subject`` is "module:callable" or "file.py:callable"). ``target``, ``draft``: a row of
    strings, or for a step a table ``{"start": row, "rows": [row, ...]}``. ``settings``: further arguments of the
    audit (candidates, draw, library, numbers, horizon, extend, prompt, coins).
    """

    kind: str
    subject: str
    target: Any
    draft: Any
    settings: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    """What the audit that wrote the file saw: verdict, total_variation, witness."""

    def to_json(self) -> dict[str, Any]:
        """The file's contents."""
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "kind": self.kind,
            "subject": self.subject,
            "options": self.options,
            "target": self.target,
            "draft": self.draft,
            "settings": self.settings,
            "found": self.found,
            "written_with": {
                "resispec-core": metadata.version("resispec-core"),
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
        }

    def save(self, path: Path | str) -> Path:
        """Write the file (whole or not at all)."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(path.suffix + ".part")
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"
        # A lone surrogate, which JSON can hold and UTF-8 cannot, is written as JSON's own escape.
        part.write_text(text, encoding="utf-8", errors="backslashreplace")
        part.replace(path)
        return path


def texts(row: Any) -> list[str]:
    """A row as strings: rationals "a/b", floats in shortest exact form."""
    return [str(entry) if isinstance(entry, (Fraction, int)) else repr(float(entry)) for entry in row]


def table(model: Markov) -> dict[str, Any]:
    """A Markov table as JSON."""
    return {"start": texts(model.start), "rows": [texts(row) for row in model.rows]}


def from_report(
    report: Any, kind: str, subject: str, target: Any, draft: Any, **settings: Any
) -> Counterexample:
    """The counterexample that ``report`` found on this input."""
    data = report.to_json()
    return Counterexample(
        kind,
        subject,
        table(target) if isinstance(target, Markov) else texts(target),
        table(draft) if isinstance(draft, Markov) else texts(draft),
        settings,
        found={key: data.get(key) for key in ("verdict", "total_variation", "witness", "law", "expected")},
    )


def load(path: Path | str) -> Counterexample:
    """Read and check a counterexample file; ``InputError`` names the file and the entry that is wrong."""
    path = Path(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); give the path of a counterexample file"
        ) from None
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); it may be cut off, write it again") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise InputError(f"{path}: not a counterexample file; its 'schema' must be {SCHEMA!r}")
    if data.get("version") != VERSION:
        raise InputError(
            f"{path}: version {data.get('version')!r} is not known here (known: {VERSION}); update resispec"
        )
    for key, kind in {"subject": str, "settings": dict, "options": dict, "found": dict}.items():
        if not isinstance(data.get(key), kind):
            raise InputError(f"{path}: entry {key!r} is {data.get(key)!r}; it must be a {kind.__name__}")
    if data.get("kind") not in KINDS:
        raise InputError(f"{path}: kind is {data.get('kind')!r}; known: {', '.join(KINDS)}")
    for key, value in data["settings"].items():
        expected = SETTINGS[data["kind"]].get(key)
        if expected is None:
            known = ", ".join(SETTINGS[data["kind"]])
            raise InputError(
                f"{path}: settings: {key!r} is unknown for kind {data['kind']!r}; known: {known}"
            )
        if type(value) is not expected and not (value is None and key in ("precision", "max_cells", "coins")):
            raise InputError(f"{path}: settings: {key!r} is {value!r:.60}; it must be a {expected.__name__}")
    for key in ("target", "draft"):
        shape = data.get(key)
        wanted = dict if data["kind"] == "step" else list
        if not isinstance(shape, wanted):
            raise InputError(
                f"{path}: entry {key!r} is {shape!r:.60}; it must be a {wanted.__name__} of rows"
            )
        model(shape, f"{path}: {key}") if wanted is dict else row(shape, f"{path}: {key}")
    entries = ("kind", "subject", "target", "draft", "settings", "options", "found")
    return Counterexample(**{key: data[key] for key in entries})


def row(entries: Any, name: str) -> Any:
    """A law from strings: rational unless an entry is in float notation."""
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise InputError(f"{name}: {entries!r:.60} is not a list of strings")
    if any("." in entry or "e" in entry for entry in entries):
        try:
            return law(np.array([float(entry) for entry in entries]), name=name)
        except ValueError as error:
            raise InputError(f"{name}: {error}") from None
    return law(entries, name=name)


def model(entries: Any, name: str) -> Markov:
    """A Markov table from JSON."""
    if not isinstance(entries, dict) or not isinstance(entries.get("rows"), list):
        raise InputError(f"{name}: expected {{'start': row, 'rows': [row, ...]}}")
    rows = [row(entry, f"{name}, row {place}") for place, entry in enumerate(entries["rows"])]
    return Markov(row(entries.get("start"), f"{name}, start"), rows)


def reproduce(case: Counterexample, function: Callable[..., Any] | None = None) -> Any:
    """Audit the subject on the counterexample's input again and return the report.

    ``function``: the loaded callable, for every kind but "rule".
    """
    if case.kind == "rule":
        rule = named_rule(case.subject, **case.options)
        return audit(rule, row(case.target, "target"), row(case.draft, "draft"), **case.settings)
    if function is None:
        raise InputError(f"a {case.kind} counterexample needs its callable, {case.subject}; load it first")
    if case.kind == "step":
        return replay_step(
            function, model(case.target, "target"), model(case.draft, "draft"), **case.settings
        )
    run = replay_verify if case.kind == "verify" else tape_audit
    return run(function, row(case.target, "target"), row(case.draft, "draft"), **case.settings)

"""Cases as files: a counterexample file where the case is a rule's, else the case itself beside what was seen."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from fuzz.target import TARGETS, Case, load
from resispec_core.audit.counterexample import SCHEMA as COUNTEREXAMPLE
from resispec_core.audit.counterexample import Counterexample
from resispec_core.errors import InputError

SCHEMA, VERSION = "resispec-fuzz", 1
CORPUS = Path(__file__).with_name("corpus")


def write(name: str, case: Case, found: dict[str, Any], folder: Path = CORPUS) -> Path:
    """``case`` of target ``name`` as a file in ``folder/name``, called after its contents."""
    if name == "laws":
        settings = {"candidates": case["candidates"], "draw": case["draw"]}
        if case["max_cells"] is not None:
            settings["max_cells"] = case["max_cells"]
        found = {"coins": case["coins"], **found}
        return Counterexample(
            "rule", case["rule"], case["target"], case["draft"], settings, case["options"], found
        ).save(_place(folder, name, case))
    data = {"schema": SCHEMA, "version": VERSION, "target": name, "case": case, "found": found}
    path = _place(folder, name, case)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return path


def _place(folder: Path, name: str, case: Case) -> Path:
    digest = hashlib.sha256(json.dumps(case, sort_keys=True).encode()).hexdigest()
    return folder / name / f"{digest[:12]}.json"


def read(path: Path | str) -> tuple[str, Case]:
    """The target's name and the case in a file."""
    path = Path(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error})") from None
    if isinstance(data, dict) and data.get("schema") == COUNTEREXAMPLE and data.get("kind") == "rule":
        settings = data["settings"]
        return "laws", {
            "rule": data["subject"],
            "options": data["options"],
            "draw": settings["draw"],
            "candidates": settings["candidates"],
            "max_cells": settings.get("max_cells"),
            "target": data["target"],
            "draft": data["draft"],
            "coins": data["found"]["coins"],
        }
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or data.get("target") not in TARGETS:
        raise InputError(
            f"{path}: not a case of this fuzzer; its 'schema' must be {SCHEMA!r} or {COUNTEREXAMPLE!r}"
        )
    return data["target"], data["case"]


def replay(path: Path | str) -> None:
    """Check the case in a file again; raises what the check raises."""
    name, case = read(path)
    load(name).check(case)


def files(folder: Path = CORPUS) -> list[Path]:
    """Every case on record."""
    return sorted(folder.rglob("*.json"))

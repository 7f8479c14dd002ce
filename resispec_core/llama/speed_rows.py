"""Rows of an end-to-end run, from its journals."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from resispec_core.errors import InputError
from resispec_core.llama.diagnostics import ceiling_length
from resispec_core.llama.method import Method
from resispec_core.llama.recorded import groups
from resispec_core.llama.systems import PUBLISHED

COLUMNS = (
    "pair",
    "source",
    "system",
    "tree",
    "budget",
    "temperature",
    "prompts",
    "tokens",
    "steps",
    "verification_cost",
    "tokens_per_second",
    "accepted_length",
    "accepted_length_error",
    "ceiling_length",
    "acceptance_by_index",
    "verdict",
    "total_variation",
    "audited_rows",
)


def read_journal(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Settings and results of a journal; raises InputError for another file."""
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return lines[0]["settings"], lines[1:]
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise InputError(f"{file} is no journal of a speed run: {error}") from error


def summarise(settings: dict[str, Any], results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One configuration as a row.

    ``accepted_length``: mean tokens a step over whole steps, the last step of a prompt included as walked;
    ``accepted_length_error``: its standard error over prompts. ``acceptance_by_index``: of the times candidate i was
    looked at, how often it was accepted (set rules look at all candidates at once: there each index counts as looked at
    unless an earlier one was taken). ``tokens_per_second``: new tokens over wall seconds, None in a breakdown run.
    """
    lengths = [[len(step) for step in result["steps"]] for result in results]
    steps = sum(map(len, lengths))
    seconds = sum(result["seconds"] for result in results)
    tokens = sum(len(result["tokens"]) for result in results)
    nodes = [node for result in results for node in result.get("nodes", ())]
    audited = [node for node in nodes if "verdict" in node]
    verdicts = sorted({node["verdict"] for node in audited})
    per_prompt = [
        float(np.mean([len(step) for result in own for step in result["steps"]]))
        for own in groups(results).values()
    ]
    bias = float(np.mean([node["total_variation"] for node in audited])) if audited else None
    if settings["system"] in PUBLISHED and bias is None and not settings["breakdown"]:
        raise InputError(f"{settings['system']} has no audited row yet, and is not reported without its bias")
    return {
        "pair": pair_label(settings),
        "source": "recorded" if "recorded" in settings else "live",
        "system": settings["system"],
        "tree": settings["tree"],
        "budget": _budget(settings),
        "temperature": settings["sampling"]["temperature"],
        "prompts": len(per_prompt),
        "tokens": tokens,
        "steps": steps,
        "verification_cost": sum(result["verified"] for result in results) / steps,
        "tokens_per_second": None if settings["breakdown"] else tokens / seconds,
        "accepted_length": sum(map(sum, lengths)) / steps,
        "accepted_length_error": float(np.std(per_prompt, ddof=1) / np.sqrt(len(per_prompt)))
        if len(per_prompt) > 1
        else None,
        "ceiling_length": ceiling_length(nodes) if nodes else None,
        "acceptance_by_index": acceptance_by_index(
            visit for result in results for step in result["steps"] for visit in step
        ),
        "verdict": " ".join(verdicts) if verdicts else None,
        "total_variation": bias,
        "audited_rows": len(audited),
        **({"components": _components(results)} if settings["breakdown"] else {}),
    }


def _budget(settings: dict[str, Any]) -> int:
    """Positions of the tree as it was asked for: systems with one budget are compared with one another."""
    parents = settings.get("drafting", {}).get("parents")
    if parents:
        return len(parents)
    head, *numbers = str(settings["tree"]).split(":")
    if head == "eagle":
        return int(numbers[0]) if numbers else 60
    topology = Method(str(settings["tree"]), "specinfer").topology()
    return len(topology) if topology else 1


def pair_label(settings: dict[str, Any]) -> str:
    """The target and the draft, in words."""
    models = settings.get("recorded", settings)
    target, draft = models["target"], models["draft"]
    skipped = draft.get("layers_skipped")
    if not skipped:
        return f"{target['id']} + {draft['id']}"
    return f"{target['id']} without {len(skipped)} of {target['layers']} layers ({skipped[0]}-{skipped[-1]})"


def acceptance_by_index(visits: Iterable[Sequence[int]]) -> list[float]:
    """Acceptance of candidate i given that it was looked at, from [candidates, accepted] of every visited node."""
    looked: dict[int, int] = {}
    taken: dict[int, int] = {}
    for candidates, accepted in visits:
        for i in range(candidates if accepted < 0 else accepted + 1):
            looked[i] = looked.get(i, 0) + 1
        if accepted >= 0:
            taken[accepted] = taken.get(accepted, 0) + 1
    return [taken.get(i, 0) / looked[i] for i in sorted(looked)]


def _components(results: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Seconds a step, by component."""
    steps = sum(len(result["steps"]) for result in results)
    names = dict.fromkeys(name for result in results for name in result["components"])
    return {name: sum(result["components"].get(name, 0.0) for result in results) / steps for name in names}


def write_csv(rows: Sequence[dict[str, Any]], file: Path) -> None:
    """The rows as CSV; lists are joined by spaces. A breakdown's components are seconds a step."""
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        parts = list(dict.fromkeys(part for row in rows for part in row.get("components", ())))
        writer.writerow([*COLUMNS, *(f"{part}_seconds" for part in parts)])
        for row in rows:
            cells = [
                " ".join(f"{x:.4f}" for x in cell) if isinstance(cell, list) else cell
                for cell in map(row.get, COLUMNS)
            ]
            writer.writerow([*cells, *(row["components"].get(part) for part in parts)])

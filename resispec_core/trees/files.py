"""Topologies as text and as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resispec_core.errors import InputError
from resispec_core.trees.topology import Topology, parse_topology

FORMAT, VERSION = "resispec-topology", 1


def picture(topology: Topology, label: Callable[[int], str] = str) -> str:
    """The tree as text, one node a line, siblings in the order of verification; ``label`` names a node."""
    lines = []
    waiting = [(0, "", "")]  # node, what stands before it, what stands before its children
    while waiting:
        node, lead, indent = waiting.pop()
        lines.append(lead + label(node))
        children = topology.children(node)
        below = [(child, indent + "├── ", indent + "│   ") for child in children[:-1]]
        below += [(child, indent + "└── ", indent + "    ") for child in children[-1:]]
        waiting += reversed(below)
    return "\n".join(lines)


def describe(topology: Topology) -> str:
    """One line: depth, cost, and the nodes of each level."""
    widths = " · ".join(str(len(level)) for level in topology.levels)
    return f"depth {topology.depth}, {topology.cost} positions ({topology.drafted} drafted), levels {widths}"


def to_json(topology: Topology) -> dict[str, Any]:
    """The JSON-ready form that ``load`` reads."""
    return {"format": FORMAT, "version": VERSION, "parents": list(topology.parents)}


def save(topology: Topology, path: str | Path) -> None:
    """Write ``topology`` to ``path`` as JSON."""
    Path(path).write_text(json.dumps(to_json(topology)) + "\n", encoding="utf-8")


def load(path: str | Path) -> Topology:
    """The topology in the file ``path``; ``InputError`` naming the file and what is wrong with it."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; write one with `resispec trees 5x3 --save {path}`") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: not JSON ({error}); write it with `resispec trees 5x3 --save {path}`"
        ) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f'{path}: not a topology; its "format" must be "{FORMAT}"')
    if data.get("version") != VERSION:
        raise InputError(
            f"{path}: version {data.get('version')!r} of the topology format; this release reads version {VERSION}"
        )
    parents = data.get("parents")
    if not isinstance(parents, list) or not all(type(parent) is int for parent in parents):
        raise InputError(f'{path}: "parents" must be a list of integers, -1 first')
    try:
        return Topology(tuple(parents))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_topology(text: str) -> Topology:
    """A topology from ``5x3`` or ``d5b3``, or from a file whose name ends in ``.json``."""
    return load(text) if text.endswith(".json") else parse_topology(text)

"""Topologies and rule × draw-mode pairs that the tree tests share."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from resispec_core.rules import RULES
from resispec_core.testing import draft_trees
from resispec_core.trees import Topology, breadth_first, tree_of

EXACT = [
    (name, draw)
    for name, kind in RULES.items()
    if name != "resispec" and not kind.lossy
    for draw in kind.draws
]
"""Every rule that claims to keep the target law, with every draw mode it is meant for."""


def ordered_trees(nodes: int, depth: int | None = None) -> Iterator[Topology]:
    """Every topology of exactly ``nodes`` nodes and at most ``depth`` levels."""

    def grow(parents: tuple[int, ...], depths: tuple[int, ...]) -> Iterator[Topology]:
        if len(parents) == nodes:
            yield Topology(parents)
            return
        for parent in range(max(parents[-1], 0), len(parents)):  # breadth first: parents never decrease
            if depth is None or depths[parent] < depth:
                yield from grow((*parents, parent), (*depths, depths[parent] + 1))

    return grow((-1,), (1,))


def shallow(nodes: tuple[tuple[int, int], ...], levels: int) -> Topology:
    """The topology of drafted ``nodes``; what would lie deeper than ``levels`` hangs from its grandparent instead."""
    parents, depths = [-1], [1]
    for parent, _ in nodes:
        place = parent + 1
        while depths[place] >= levels:
            place = parents[place]
        parents.append(place)
        depths.append(depths[place] + 1)
    return breadth_first(parents)[0]


def topologies(drafted: int = 6, levels: int = 3) -> st.SearchStrategy[Topology]:
    """Topologies of at most ``drafted`` + 1 nodes and ``levels`` levels."""
    return draft_trees(drafted, 1).map(lambda nodes: shallow(nodes, levels))


def fits(name: str, topology: Topology) -> bool:
    """Whether the rule verifies as many siblings as ``topology`` has."""
    return name != "single-draft" or topology.branching <= 1


def quick(name: str, topology: Topology) -> bool:
    """Whether a fresh table is summed in milliseconds: ``optimal`` places intervals for V^n tuples."""
    return fits(name, topology) and (name != "optimal" or topology.branching <= 3)


__all__ = ["EXACT", "fits", "ordered_trees", "quick", "shallow", "topologies", "tree_of"]

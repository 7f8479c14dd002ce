"""Tree topologies: which position of a speculation step continues which, before any token is known.

Node 0 is the root: the last token of the context, whose row verifies the first drafted level. Every other node is a
slot for one drafted token. Nodes are numbered breadth first, so siblings are neighbours and stand in the order in
which they are verified.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from resispec_core.errors import InputError

MAX_NODES = 65_536
"""No larger topology is built: it would be a slip, such as 60x5 for 5x60."""


@dataclass(frozen=True)
class Topology:
    """A tree of slots: ``parents[node]`` is the node it continues, −1 for the root alone.

    Breadth first means that parents never decrease along ``parents``. Raises ``InputError`` naming the node otherwise;
    ``breadth_first`` renumbers any tree.
    """

    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        parents = tuple(int(parent) for parent in self.parents)
        object.__setattr__(self, "parents", parents)
        if not parents or parents[0] != -1:
            first = f"parents starts with {parents[0]}" if parents else "parents is empty"
            raise InputError(f"topology: {first}; node 0 is the root and its parent is -1")
        if len(parents) > MAX_NODES:
            raise InputError(f"topology: {len(parents)} nodes, more than the {MAX_NODES} that are supported")
        for node in range(1, len(parents)):
            if not 0 <= parents[node] < node:
                raise InputError(
                    f"topology: node {node} has parent {parents[node]}; a parent is an earlier node, 0 to {node - 1}"
                )
            if parents[node] < parents[node - 1]:
                raise InputError(
                    f"topology: node {node} has parent {parents[node]} after a child of node {parents[node - 1]}; "
                    "number the nodes breadth first (trees.breadth_first does it)"
                )

    def __len__(self) -> int:
        return len(self.parents)

    @cached_property
    def _children(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents[1:], start=1):
            found[parent].append(node)
        return tuple(map(tuple, found))

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Depth of every node; the root has depth 1, as the paper counts."""
        found = [1]
        for parent in self.parents[1:]:
            found.append(found[parent] + 1)
        return tuple(found)

    def children(self, node: int) -> tuple[int, ...]:
        """The slots that continue ``node``, in the order in which they are verified."""
        if not 0 <= node < len(self):
            raise InputError(
                f"node {node} is not in this topology of {len(self)} nodes, 0 to {len(self) - 1}"
            )
        return self._children[node]

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from the root to ``node``, both included."""
        self.children(node)
        found = [node]
        while found[-1]:
            found.append(self.parents[found[-1]])
        return tuple(reversed(found))

    @property
    def depth(self) -> int:
        """Levels, the root included: d5b3 has depth 5, drafts four levels and yields 1 to 5 tokens a step."""
        return self.depths[-1]

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The nodes of each depth; the first level is the root alone."""
        found: list[list[int]] = [[] for _ in range(self.depth)]
        for node, depth in enumerate(self.depths):
            found[depth - 1].append(node)
        return tuple(map(tuple, found))

    @property
    def cost(self) -> int:
        """The verification cost as the paper counts it: positions of the target's forward pass, root included."""
        return len(self.parents)

    @property
    def drafted(self) -> int:
        """Slots for drafted tokens: every node but the root."""
        return len(self.parents) - 1

    @cached_property
    def branching(self) -> int:
        """The most children of any node."""
        return max(map(len, self._children))

    def ranks(self) -> tuple[int, ...]:
        """The place of every node among its siblings, from 0; 0 for the root."""
        found = [0]
        for node in range(1, len(self)):
            same = self.parents[node] == self.parents[node - 1]
            found.append(found[-1] + 1 if same else 0)
        return tuple(found)

    def keep(self, nodes: Sequence[int]) -> tuple[Topology, tuple[int, ...]]:
        """The topology of ``nodes`` and the root alone, with the old number of each new node.

        Raises ``InputError`` for a node whose parent is not kept.
        """
        old = tuple(sorted({0, *nodes}))
        new = {node: place for place, node in enumerate(old)}
        for node in old[1:]:
            self.children(node)
            if self.parents[node] not in new:
                raise InputError(
                    f"node {node} is kept without its parent {self.parents[node]}; keep both or neither"
                )
        return Topology((-1, *(new[self.parents[node]] for node in old[1:]))), old


def breadth_first(parents: Sequence[int]) -> tuple[Topology, tuple[int, ...]]:
    """The topology of a tree in any parents-first numbering, and the old number of each new node.

    ``parents[0]`` is −1 and every other node comes after its parent. Siblings keep their order.
    """
    for node, parent in enumerate(parents):
        if not (parent == -1 if node == 0 else 0 <= parent < node):
            raise InputError(
                f"topology: node {node} has parent {parent}; the root comes first with parent -1, and every other node "
                "after its parent"
            )
    if not parents:
        return Topology(()), ()
    children: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents[1:], start=1):
        children[parent].append(node)
    order, new_parents = [0], [-1]
    for place, node in enumerate(order):  # grows while it is read
        order += children[node]
        new_parents += [place] * len(children[node])
    return Topology(tuple(new_parents)), tuple(order)


def complete(depth: int, branching: int) -> Topology:
    """The complete tree d × b: ``depth`` levels counting the root, ``branching`` children at every inner node.

    Cost 1 + b + … + b^(d−1): d5b3 = 121, d7b2 = 127, d4b5 = 156, d3b11 = 133, d4b4 = 85.
    """
    if depth < 1 or branching < 1:
        raise InputError(
            f"depth is {depth} and branching {branching}; both are at least 1 (depth counts the root)"
        )
    size, level = 1, 1
    for _ in range(depth - 1):
        level *= branching
        size += level
        if size > MAX_NODES:
            raise InputError(
                f"a complete tree of depth {depth} and branching {branching} has more than {MAX_NODES} nodes; choose a "
                "smaller one (depth comes first: 5x3 has 121)"
            )
    inner = size - level
    return Topology((-1, *(node for node in range(inner) for _ in range(branching))))


def chain(drafted: int) -> Topology:
    """One sequence of ``drafted`` tokens (γ of speculative decoding): depth γ + 1."""
    if drafted < 0:
        raise InputError(f"drafted is {drafted}; a chain drafts 0 tokens or more")
    return complete(drafted + 1, 1)


def parse_topology(text: str) -> Topology:
    """A complete tree from ``5x3`` or ``d5b3``: depth (counting the root), then branching."""
    found = re.fullmatch(r"\s*(?:(\d{1,6})\s*[x×]\s*(\d{1,6})|d(\d{1,6})b(\d{1,6}))\s*", text, re.IGNORECASE)
    if found is None:
        raise InputError(
            f"topology {text!r} is not understood; write depth x branching, such as 5x3 or d5b3 (depth counts the root)"
        )
    depth, branching = (int(part) for part in found.groups() if part is not None)
    return complete(depth, branching)


def expected_tokens(topology: Topology, acceptance: Sequence[Any]) -> Any:
    """Tokens per step if candidate k is the accepted one with probability ``acceptance[k]`` at every node.

    Sequoia's positional model: the sum over the nodes of the product of the acceptances along the path; the root's 1
    is the bonus or resampled token. A measured mean, not the law of any one tree: real acceptance depends on the
    context. Source: Sequoia (2402.12374), section 3. Cost: O(nodes).
    """
    ranks = topology.ranks()
    if max(ranks) >= len(acceptance):
        raise InputError(
            f"the topology has {max(ranks) + 1} siblings under one parent, but acceptance has {len(acceptance)} "
            "entries; give one for every candidate index"
        )
    reached: list[Any] = [1]
    for node in range(1, len(topology)):
        reached.append(reached[topology.parents[node]] * acceptance[ranks[node]])
    return sum(reached)

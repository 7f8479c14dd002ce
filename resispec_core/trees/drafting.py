"""Drafting: a topology filled with tokens, level by level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from resispec_core.arrays import Array
from resispec_core.drafts import DrawMode, draw_mode
from resispec_core.errors import InputError
from resispec_core.laws import law
from resispec_core.trees.topology import Topology, breadth_first

ABSENT = -1
"""The token of the root, and of a slot that was not drafted (a placeholder); never verified."""

Coins: TypeAlias = np.random.Generator | Iterator[Any] | Callable[[int], Sequence[Any]]
"""A source of uniforms in [0, 1): a NumPy generator, an iterator of coins, or a function count → coins."""


def take(coins: Coins, count: int) -> Sequence[Any]:
    """The next ``count`` coins of ``coins``; ``InputError`` where an iterator ends before."""
    if isinstance(coins, np.random.Generator):
        return [coins.random() for _ in range(count)]
    if callable(coins):
        return coins(count)
    taken = [coin for _, coin in zip(range(count), coins, strict=False)]
    if len(taken) < count:
        raise InputError(
            f"the coins ended: {count} were needed and {len(taken)} left; give a longer sequence"
        )
    return taken


@dataclass(frozen=True)
class DraftTree:
    """A topology with a drafted token in every slot, or ``ABSENT`` where none was drafted.

    ``tokens[0]`` is ``ABSENT``: the root is the context. A slot below an absent one is absent. Siblings may repeat a
    token: drawn independently they do, and each is a candidate of its own.
    """

    topology: Topology
    tokens: tuple[int, ...]
    draft_rows: Mapping[int, Array] = field(default_factory=dict, compare=False, repr=False)
    """The draft law q, shape (V,), from which the children of each inner node were drawn."""

    def __post_init__(self) -> None:
        tokens = tuple(int(token) for token in self.tokens)
        object.__setattr__(self, "tokens", tokens)
        if len(tokens) != len(self.topology):
            raise InputError(
                f"{len(tokens)} tokens given for a topology of {len(self.topology)} nodes; give one each"
            )
        if tokens[0] != ABSENT:
            raise InputError(f"the root has token {tokens[0]}; it stands for the context, so give {ABSENT}")
        for node in range(1, len(tokens)):
            parent = self.topology.parents[node]
            if tokens[node] < ABSENT:
                raise InputError(
                    f"node {node} has token {tokens[node]}; give an id ≥ 0, or {ABSENT} for an empty slot"
                )
            if tokens[node] != ABSENT and parent and tokens[parent] == ABSENT:
                raise InputError(
                    f"node {node} has token {tokens[node]}, but its parent {parent} is an empty slot"
                )

    def children(self, node: int) -> tuple[int, ...]:
        """The drafted children of ``node``, in the order in which they are verified."""
        return tuple(child for child in self.topology.children(node) if self.tokens[child] != ABSENT)

    def prefix(self, node: int) -> tuple[int, ...]:
        """The drafted tokens from the root to ``node``: the context of its rows, after the prompt."""
        return tuple(self.tokens[step] for step in self.topology.path(node)[1:])

    def probabilities(self, node: int) -> tuple[Any, ...]:
        """The draft law's probability of each token of ``prefix(node)`` in its own row."""
        path = self.topology.path(node)
        return tuple(self.draft_rows[above][self.tokens[step]] for above, step in pairwise(path))

    def compact(self) -> tuple[DraftTree, tuple[int, ...]]:
        """The same tree without its empty slots, and the old number of each new node."""
        drafted = [node for node, token in enumerate(self.tokens) if token != ABSENT]
        topology, old = self.topology.keep(drafted)
        rows = {place: self.draft_rows[node] for place, node in enumerate(old) if node in self.draft_rows}
        return DraftTree(topology, tuple(self.tokens[node] for node in old), rows), old


Propose: TypeAlias = Callable[[DraftTree, Sequence[int]], Sequence[Array]]
"""The draft model: the tree as far as it is drafted, and nodes of one level → the draft law after each, shape (V,).

One call a level, so that a model can answer it with one forward pass. ``tree.prefix(node)`` is the node's context."""

Stop: TypeAlias = Callable[[tuple[int, ...], tuple[Any, ...], Array], bool]
"""Whether a node stays a leaf: its drafted prefix, the draft's probability of each of those tokens, and the draft law
after it. Asked before the node's children are drawn, so it cannot depend on their tokens: stopping keeps the law."""


def unlikely(threshold: Any) -> Stop:
    """Stop below a node that the draft itself reaches with probability less than ``threshold``, in [0, 1].

    The adaptive length of SpecDec++ (2405.19715), which stops where it predicts that a rejection has become too likely,
    with the draft's own probabilities in place of its trained predictor of acceptance. The root is never stopped.
    """
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold is {threshold}; it is a probability, 0 (never stop) to 1")

    def stop(_prefix: tuple[int, ...], probabilities: tuple[Any, ...], _row: Array) -> bool:
        return bool(math.prod(probabilities) < threshold)

    return stop


def draft_tree(
    topology: Topology,
    propose: Propose,
    coins: Coins,
    *,
    draw: str | DrawMode = "iid",
    stop: Stop | None = None,
) -> DraftTree:
    """``topology`` filled with tokens that ``propose`` makes likely, siblings drawn as ``draw`` says.

    Where the draft law can give fewer distinct tokens than there are slots (without replacement), the last slots stay
    empty; their number depends on the draft law alone. ``coins``: one uniform a candidate, breadth first.
    Deterministic modes take coins too, so that modes can be compared on equal streams.
    Cost: one call of ``propose`` a level, O(V) a candidate.
    """
    mode = draw_mode(draw)
    tokens = [ABSENT] * len(topology)
    rows: dict[int, Array] = {}
    for level in topology.levels[:-1]:
        so_far = DraftTree(topology, tuple(tokens), dict(rows))
        open_nodes = [
            node for node in level if topology.children(node) and (node == 0 or tokens[node] != ABSENT)
        ]
        if not open_nodes:
            break
        proposed = propose(so_far, open_nodes)
        if len(proposed) != len(open_nodes):
            raise InputError(
                f"the draft gave {len(proposed)} rows for {len(open_nodes)} nodes ({open_nodes}); give one each"
            )
        for node, row in zip(open_nodes, proposed, strict=True):
            row = law(row, name=f"draft row of node {node}")
            if stop is not None and stop(so_far.prefix(node), so_far.probabilities(node), row):
                continue
            slots = topology.children(node)
            count = candidates_of(mode, row, len(slots))
            drawn = mode.draw(row, count, take(coins, count))
            for slot, token in zip(slots, drawn, strict=False):
                tokens[slot] = token
            rows[node] = row
    return DraftTree(topology, tuple(tokens), rows)


def candidates_of(mode: DrawMode, row: Array, slots: int) -> int:
    """How many of ``slots`` siblings can be drawn from ``row``: fewer where the mode runs out of tokens."""
    most = mode.support(row)
    return slots if most is None else min(slots, most)


def tree_of(nodes: Sequence[tuple[int, int]]) -> DraftTree:
    """A draft tree from (parent, token) pairs, parents first and −1 for the root, in any such order."""
    topology, old = breadth_first([-1, *(parent + 1 for parent, _ in nodes)])
    return DraftTree(topology, tuple(ABSENT if node == 0 else nodes[node - 1][1] for node in old))

"""EAGLE-2's dynamic tree: the draft decides where to grow, then the best nodes are kept."""

from __future__ import annotations

from typing import Any

from resispec_core.arrays import Array
from resispec_core.drafts import top_tokens
from resispec_core.errors import InputError
from resispec_core.laws import law
from resispec_core.trees.drafting import ABSENT, DraftTree, Propose
from resispec_core.trees.topology import Topology


def eagle(propose: Propose, *, total_token: int = 60, depth: int = 5, top_k: int = 10) -> DraftTree:
    """The ``total_token`` best positions, root included, of a tree grown where the draft is confident.

    The root gets its ``top_k`` likeliest tokens; then ``depth`` times the ``top_k`` best nodes of the last level get
    theirs; then all nodes are ranked again and the best ``total_token`` − 1 are kept. "Best" is the product of draft
    probabilities along the path. Drafted levels: at most ``depth`` + 1. Ties go to the node drafted first, so a node is
    never kept without its parent, and each parent keeps its likeliest children: siblings are the ``top-k`` draw mode,
    to be verified by a rule for it.

    Topology and tokens are functions of the draft's rows alone; no coin is used. So any rule that is exact on
    deterministic candidates stays exact here. Cost: ``depth`` + 1 calls of ``propose``.
    Source: EAGLE-2 (2406.16858), sections 4.1 and 4.2; the parameters as in its released code.
    """
    for name, value, least in (("total_token", total_token, 1), ("depth", depth, 0), ("top_k", top_k, 1)):
        if value < least:
            raise InputError(f"{name} is {value}; it must be at least {least}")
    parents, tokens, scores = [-1], [ABSENT], [1]
    rows: dict[int, Array] = {}
    frontier = [0]
    for _ in range(depth + 1):
        so_far = DraftTree(Topology(tuple(parents)), tuple(tokens), dict(rows))
        proposed = propose(so_far, frontier)
        if len(proposed) != len(frontier):
            raise InputError(
                f"the draft gave {len(proposed)} rows for {len(frontier)} nodes ({frontier}); give one each"
            )
        level: list[int] = []
        for node, row in zip(frontier, proposed, strict=True):
            rows[node] = law(row, name=f"draft row of node {node}")
            for token in top_tokens(rows[node], top_k):
                level.append(len(parents))
                parents.append(node)
                tokens.append(token)
                scores.append(scores[node] * rows[node][token])
        frontier = sorted(_best(level, scores, top_k))  # in order, so that the numbering stays breadth first
    kept = _best(range(1, len(parents)), scores, total_token - 1)
    topology, old = Topology(tuple(parents)).keep(kept)
    inner = {place: rows[node] for place, node in enumerate(old) if topology.children(place)}
    return DraftTree(topology, tuple(tokens[node] for node in old), inner)


def _best(nodes: Any, scores: list[Any], count: int) -> list[int]:
    """The ``count`` nodes of largest score, the earlier of equals first."""
    return sorted(nodes, key=lambda node: -scores[node])[:count]

"""Draft trees: topologies, drafting, the tree walk, and the law of the tokens that a walk emits."""

from resispec_core.trees.drafting import ABSENT, DraftTree, draft_tree, tree_of
from resispec_core.trees.topology import (
    Topology,
    breadth_first,
    chain,
    complete,
    expected_tokens,
    parse_topology,
)
from resispec_core.trees.walk import Visit, Walk, walk

__all__ = [
    "ABSENT",
    "DraftTree",
    "Topology",
    "Visit",
    "Walk",
    "breadth_first",
    "chain",
    "complete",
    "draft_tree",
    "expected_tokens",
    "parse_topology",
    "tree_of",
    "walk",
]

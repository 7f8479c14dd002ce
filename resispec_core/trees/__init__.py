"""Draft trees: topologies, drafting, the tree walk, and the law of the tokens that a walk emits."""

from resispec_core.trees.drafting import ABSENT, DraftTree, draft_tree, tree_of, unlikely
from resispec_core.trees.eagle import eagle
from resispec_core.trees.files import describe, load, picture, read_topology, save
from resispec_core.trees.joint import JointReport, audit_tree, replay_tree, tree_step
from resispec_core.trees.sequoia import measured_acceptance, sequoia
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
    "JointReport",
    "Topology",
    "Visit",
    "Walk",
    "audit_tree",
    "breadth_first",
    "chain",
    "complete",
    "describe",
    "draft_tree",
    "eagle",
    "expected_tokens",
    "load",
    "measured_acceptance",
    "parse_topology",
    "picture",
    "read_topology",
    "replay_tree",
    "save",
    "sequoia",
    "tree_of",
    "tree_step",
    "unlikely",
    "walk",
]

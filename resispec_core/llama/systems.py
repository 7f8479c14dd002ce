"""The systems that are compared, as decoding methods over one topology."""

from __future__ import annotations

import difflib

from resispec_core.errors import InputError
from resispec_core.llama.method import Method
from resispec_core.trees import Topology
from resispec_core.trees.files import read_topology

SYSTEMS: dict[str, tuple[str, str, str | None]] = {
    "autoregressive": ("none", "autoregressive", None),
    "speculative": ("chain", "single-draft", None),
    "specinfer": ("tree", "specinfer", "iid"),
    "sequoia": ("tree", "specinfer", "without-replacement"),
    "eagle": ("eagle", "deterministic", None),
    "top-k": ("tree", "deterministic", "top-k"),
    "lookup": ("lookup", "deterministic", None),
    "k-seq": ("tree", "k-seq", None),
    "resispec": ("tree", "resispec", "iid"),
    "resispec-sequoia": ("tree", "resispec", "without-replacement"),
    "shaped": ("tree", "shaped", None),
    "optimal": ("tree", "optimal", None),
    "shaped-sequoia": ("tree", "shaped-without-replacement", None),
    "ranked-sequoia": ("tree", "ranked", None),
}
"""System → (tree, rule, draw). ``tree`` is the topology given, ``chain`` a chain of its depth, ``eagle`` a dynamic tree
of its cost and depth, ``lookup`` a copied chain of its depth."""

DEFAULT_SYSTEMS = ("specinfer", "sequoia", "eagle", "resispec", "shaped", "optimal")
PUBLISHED = ("resispec", "resispec-sequoia")
"""Systems that verify by the published ResiSpec rule: their rows carry the measured bias."""


def system(name: str, tree: str) -> Method:
    """The system called ``name`` on the topology ``tree`` (``5x3``, ``chain:4`` or a file).

    ``sequoia`` means its verification on that topology: siblings drawn without replacement, recursive rejection; its
    own topology comes from ``resispec trees`` as a file. ``eagle`` means EAGLE-2's dynamic tree, deterministic
    siblings, over an ordinary draft model (not its trained drafter).
    """
    if name not in SYSTEMS:
        near = difflib.get_close_matches(name.lower(), SYSTEMS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"unknown system {name!r}{hint} (known: {', '.join(SYSTEMS)})")
    shape, rule, draw = SYSTEMS[name]
    if shape == "none":
        return Method("none", rule)
    topology: Topology = Method(tree, "specinfer").topology() or read_topology(tree)
    own = {
        "tree": tree,
        "chain": f"chain:{topology.depth - 1}",
        "eagle": f"eagle:{topology.cost}:{max(topology.depth - 2, 0)}:10",
        "lookup": f"lookup:{max(topology.depth - 1, 1)}:3",
    }
    return Method(own[shape], rule, draw)

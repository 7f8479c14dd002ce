"""Verification alone, on recorded trees: accepted length and seconds a step without any model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from resispec_core.errors import InputError
from resispec_core.llama.diagnostics import node_diagnostics
from resispec_core.llama.journal import Journal
from resispec_core.llama.session import accepted_indices
from resispec_core.llama.store import LogitsStore
from resispec_core.llama.systems import SYSTEMS
from resispec_core.llama.tree_store import TreeStore
from resispec_core.rules import rule as named_rule
from resispec_core.trees import walk


def open_trees(folder: str | Path) -> TreeStore:
    """A store of recorded trees; raises InputError for another store or an empty one."""
    store = LogitsStore.open(folder)
    if not isinstance(store, TreeStore):
        raise InputError(f"{store.path} holds rows and no trees: record with `resispec record --tree 5x3`")
    if len(store) == 0:
        raise InputError(f"{store.path} holds no recorded step; finish it with `resispec record`")
    return store


def systems_for(store: TreeStore) -> list[str]:
    """The systems whose candidates are drawn as in the store."""
    dynamic = str(store.metadata["drafting"]["tree"]).startswith("eagle")
    found = []
    for name, (shape, rule, draw) in SYSTEMS.items():
        if shape == "tree" and not dynamic and (draw or named_rule(rule).draws[0]) == store.draw:
            found.append(name)
        if shape == "eagle" and dynamic:
            found.append(name)
    return found


def replay(
    store: TreeStore, system: str, journal: Path, *, repeats: int = 4, seed: int = 0, audit_every: int = 6
) -> Iterator[tuple[int, int]]:
    """Walk every recorded tree ``repeats`` times with ``system``'s rule; results go to ``journal``, one a step.

    Yields (steps done, steps). Walk r of step i takes its coins from the seed (seed, i, r): rules are compared on the
    same coins and trees. ``seconds`` times the walks alone, after one that is dropped; the laws are there before.
    The root row of every ``audit_every``-th step is audited. Cost: one ``verify`` a visited node.
    """
    if system not in systems_for(store):
        raise InputError(
            f"{store.path} has siblings drawn {store.draw}: {system!r} does not verify those "
            f"(known here: {', '.join(systems_for(store))})"
        )
    if repeats < 1 or audit_every < 1:
        raise InputError(f"repeats is {repeats} and audit_every {audit_every}; both are at least 1")
    rule = named_rule(SYSTEMS[system][1])
    drafting = dict(store.metadata["drafting"])
    settings = {
        "system": system,
        "tree": drafting["tree"],
        "sampling": {"temperature": store.temperature},
        "recorded": {key: store.metadata[key] for key in ("target", "draft", "tokenizer_sha256")},
        "drafting": drafting,
        "rows": [shard.sha256 for shard in store.shards],
        "repeats": repeats,
        "seed": seed,
        "audit_every": audit_every,
        "breakdown": False,
    }
    kept = Journal(journal, settings)
    for i in range(len(store)):
        key = str(i)
        if key not in kept.results:
            kept.add(key, _replayed(store, i, rule, repeats, seed, law=i % audit_every == 0))
        yield i + 1, len(store)


def _replayed(store: TreeStore, i: int, rule: Any, repeats: int, seed: int, *, law: bool) -> dict[str, Any]:
    step = store.step(i)

    def once(repeat: int) -> Any:
        return walk(step.tree, step.rows, rule, np.random.default_rng([seed, i, repeat]), draw=store.draw)

    walks = [once(repeat) for repeat in range(repeats)]  # makes the laws, and is the warm-up
    start = perf_counter()
    for repeat in range(repeats):
        once(repeat)
    seconds = perf_counter() - start
    laws = {visit.node: step.rows(visit.node) for visit in walks[0].visits}
    return {
        "prompt": store.metadata["prompts"][store.positions[i].prompt]["name"],
        "steps": [accepted_indices(found.visits) for found in walks],
        "tokens": [token for found in walks for token in found.tokens],
        "verified": repeats * len(step.tree.tokens),
        "seconds": seconds,
        "nodes": node_diagnostics(step.tree, walks[0], laws, rule, store.draw, law=law),
    }


def groups(results: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Results by prompt: positions of one text are no independent samples."""
    found: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        found.setdefault(str(result["prompt"]), []).append(result)
    return found

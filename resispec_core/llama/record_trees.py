"""Record speculation steps: a drafted tree at a position, with the rows of both models at its nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resispec_core.arrays import Array
from resispec_core.errors import InputError
from resispec_core.llama import models
from resispec_core.llama.drafters import ModelDrafter, Sampling
from resispec_core.llama.method import Method
from resispec_core.llama.pair import Pair
from resispec_core.llama.positions import Position
from resispec_core.llama.scorer import TreeScorer
from resispec_core.llama.store import Row
from resispec_core.llama.tree_store import inner_nodes
from resispec_core.trees import DraftTree


@dataclass(frozen=True)
class Drafting:
    """How the trees are drafted. ``tree`` and ``draw`` as in ``method.Method``; position i draws with seed + i."""

    tree: str
    draw: str = "iid"
    temperature: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method.kind in ("lookup", "none"):
            raise InputError(f"tree {self.tree!r} drafts no rows to record; use depth x branching or eagle")
        topology = self.method.topology()
        if topology is not None and len(topology) < 2:
            raise InputError(f"tree {self.tree!r} has no drafted node; use at least 2x1")
        Sampling(self.temperature).check()

    @property
    def method(self) -> Method:
        """The method that drafts so (its rule only has to allow the draw mode)."""
        draw = "top-k" if self.tree.split(":")[0] in ("eagle", "lookup") else self.draw
        return Method(self.tree, "target-match", draw)

    @property
    def depth(self) -> int:
        """The most positions of a path, root included."""
        return self.method.drafter(None, 1, Sampling(self.temperature)).depth

    def to_json(self) -> dict[str, Any]:
        """What ``store.json`` says of it: the topology itself too, since a file can change under its name."""
        topology = self.method.topology()
        own = {"parents": list(topology.parents)} if topology else {}
        return {
            "tree": self.tree.rsplit("/", 1)[-1],
            "draw": self.method.siblings,
            "temperature": self.temperature,
            "seed": self.seed,
            **own,
        }


class RoundingScorer(TreeScorer):
    """Scores nodes with the rows that a store keeps: log-softmax in float32, rounded to fp16.

    What follows (the draft's draws) is then a function of the stored rows.
    """

    def __init__(self, model: Any, prompt: Sequence[int]) -> None:
        super().__init__(model, prompt)
        self.scored: dict[tuple[int, ...], Row] = {}
        """Row by the tokens from the root: duplicated siblings share one."""

    def logits(self, tree: DraftTree, nodes: Sequence[int]) -> Array:
        torch, _ = models.libraries()
        rows = (
            torch.log_softmax(torch.from_numpy(super().logits(tree, nodes)), dim=-1).to(torch.float16).numpy()
        )
        for node, row in zip(nodes, rows, strict=True):
            if np.isnan(row).any():
                raise InputError(
                    "the model returns NaN at a tree node; its weights are damaged, or use float32"
                )
            self.scored[tree.prefix(node)] = row
        return rows


def recorded_steps(
    pair: Pair, token_ids: Sequence[Sequence[int]], planned: Sequence[Position], done: int, drafting: Drafting
) -> Iterator[tuple[DraftTree, list[Row], list[Row]]]:
    """The tree, the target rows at every node and the draft rows at inner nodes, for positions from ``done`` on."""
    drafter = drafting.method.drafter(pair.draft, pair.vocabulary, Sampling(drafting.temperature))
    assert isinstance(drafter, ModelDrafter)
    drafter.scorer = RoundingScorer
    for number, position in enumerate(planned[done:], start=done):
        context = token_ids[position.prompt][: position.index]
        drafter.start(context)
        tree, _ = drafter.draft(np.random.default_rng(drafting.seed + number)).compact()
        drafted = drafter.current
        assert isinstance(drafted, RoundingScorer)
        scorer = RoundingScorer(pair.target, context)
        target = list(scorer.logits(tree, range(len(tree.tokens))))
        yield tree, target, [drafted.scored[tree.prefix(node)] for node in inner_nodes(tree)]

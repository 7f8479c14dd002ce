"""What proposes the tokens of a step: a model over a fixed or dynamic tree, or the prompt itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resispec_core.arrays import Array, one_hot
from resispec_core.drafts import draw_mode
from resispec_core.errors import InputError
from resispec_core.laws import law_from_logits
from resispec_core.llama.scorer import TreeScorer
from resispec_core.trees import DraftTree, Topology, draft_tree
from resispec_core.trees.drafting import ABSENT
from resispec_core.trees.eagle import eagle


@dataclass(frozen=True)
class Sampling:
    """The filters that turn logits into laws, the same for target and draft."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def check(self) -> None:
        """Refuse values that no row could be filtered with."""
        self.law(np.zeros(1), "logits")

    def law(self, logits: Array, name: str) -> Array:
        """The float64 law of a row of logits, shape (V,)."""
        return law_from_logits(
            logits,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            name=name,
        )


class Drafter(ABC):
    """Proposes a draft tree for a context and is told what became of it."""

    draw: str
    """How siblings are drawn: what the verifier must assume."""
    depth: int
    """The most positions of a path, root included: no step reaches further past the context."""

    @abstractmethod
    def start(self, prompt: Sequence[int]) -> None:
        """Begin a new context."""

    @abstractmethod
    def draft(self, rng: np.random.Generator) -> DraftTree:
        """The draft tree of this step, with the draft law of every inner node."""

    @abstractmethod
    def keep(self, path: Sequence[int], tokens: Sequence[int]) -> None:
        """The accepted nodes, root first, and the emitted tokens."""


class ModelDrafter(Drafter):
    """A Llama that fills a fixed topology, level by level: one forward pass a level.

    Candidates of a deterministic draw mode are ranked at temperature 1 where the sampling is greedy: a point mass
    would have no second candidate.
    """

    scorer: type[TreeScorer] = TreeScorer

    def __init__(self, model: Any, topology: Topology, *, draw: str, sampling: Sampling) -> None:
        self.model, self.topology, self.depth = model, topology, topology.depth
        self.draw = draw_mode(draw).name
        ranked = sampling.temperature == 0 and self.draw == "top-k"
        self.sampling = Sampling() if ranked else sampling

    def start(self, prompt: Sequence[int]) -> None:
        self._scorer = self.scorer(self.model, prompt)

    @property
    def current(self) -> TreeScorer:
        """The scorer of the context at hand."""
        return self._scorer

    def propose(self, tree: DraftTree, nodes: Sequence[int]) -> list[Array]:
        """The draft laws after ``nodes``."""
        rows = self._scorer.logits(tree, nodes)
        return [
            self.sampling.law(row, f"draft logits at tree node {node}")
            for row, node in zip(rows, nodes, strict=True)
        ]

    def draft(self, rng: np.random.Generator) -> DraftTree:
        return draft_tree(self.topology, self.propose, rng, draw=self.draw)

    def keep(self, path: Sequence[int], tokens: Sequence[int]) -> None:
        self._scorer.keep(path, tokens)


class EagleDrafter(ModelDrafter):
    """EAGLE-2's dynamic tree over an ordinary draft model: grown and cut by the draft's confidence, no randomness."""

    def __init__(
        self, model: Any, *, total_token: int = 60, depth: int = 5, top_k: int = 10, sampling: Sampling
    ) -> None:
        super().__init__(model, Topology((-1,)), draw="top-k", sampling=sampling)
        self.total_token, self.levels, self.top_k = total_token, depth, top_k
        self.depth = depth + 2

    def draft(self, rng: np.random.Generator) -> DraftTree:
        self._kept = eagle(self.propose, total_token=self.total_token, depth=self.levels, top_k=self.top_k)
        return self._kept

    def propose(self, tree: DraftTree, nodes: Sequence[int]) -> list[Array]:
        self._grown = tree
        return super().propose(tree, nodes)

    def keep(self, path: Sequence[int], tokens: Sequence[int]) -> None:
        """The cache is numbered by the grown tree, the path by the kept one: translate by the tokens on the way."""
        own = [0]
        for kept in path[1:]:
            children = self._grown.children(own[-1])  # distinct tokens: they are the draft's top k
            child = next((c for c in children if self._grown.tokens[c] == self._kept.tokens[kept]), None)
            if child is None or not self._scorer.holds(child):
                break  # a leaf of the kept tree, which needed no rows of its own
            own.append(child)
        self._scorer.keep(own, tokens)


class LookupDrafter(Drafter):
    """A chain copied from what followed the last occurrence of the context's last tokens (prompt lookup).

    Deterministic candidates, one a node: verified by a rule for the ``top-k`` draw mode. No match: no candidate, and
    the step is one token of the target. Cost: a scan of the context; no model.
    """

    draw = "top-k"

    def __init__(self, vocabulary: int, *, drafted: int = 4, ngram: int = 3) -> None:
        if drafted < 1 or ngram < 1:
            raise InputError(f"drafted is {drafted} and ngram {ngram}; both are at least 1")
        self._vocabulary, self._drafted, self._ngram = vocabulary, drafted, ngram
        self.depth = drafted + 1

    def start(self, prompt: Sequence[int]) -> None:
        self._context = list(prompt)

    def draft(self, rng: np.random.Generator) -> DraftTree:
        found = continuation(self._context, self._ngram, self._drafted)
        rows = {
            place: one_hot(np.array(token), self._vocabulary, like=np.empty(0))
            for place, token in enumerate(found)
        }
        return DraftTree(Topology(tuple(range(-1, len(found)))), (ABSENT, *found), rows)

    def keep(self, path: Sequence[int], tokens: Sequence[int]) -> None:
        self._context += tokens


def continuation(context: Sequence[int], ngram: int, count: int) -> list[int]:
    """What followed the latest earlier occurrence of the longest end of ``context``, of at most ``ngram`` tokens."""
    for size in range(min(ngram, len(context) - 1), 0, -1):
        end = list(context[-size:])
        for at in range(len(context) - size - 1, -1, -1):
            if list(context[at : at + size]) == end:
                return list(context[at + size : at + size + count])
    return []

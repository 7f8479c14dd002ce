"""Live speculative decoding: draft a tree, score it in one pass of the target, walk it, keep the accepted path.

The walk is ``trees.walk``, the one that the joint-law audit enumerates; the laws come from ``laws.law_from_logits`` on
both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from resispec_core.arrays import Array
from resispec_core.errors import InputError
from resispec_core.llama.drafters import Drafter, Sampling
from resispec_core.llama.scorer import TreeScorer
from resispec_core.rules import Rule
from resispec_core.trees import DraftTree, Walk, walk

Stopwatch = Callable[[str], AbstractContextManager[Any]]
"""Component name → a context whose time counts for it. Used in breakdown runs only: it may synchronise."""


def no_stopwatch(component: str) -> AbstractContextManager[Any]:
    """Time nothing."""
    del component
    return nullcontext()


@dataclass(frozen=True)
class Step:
    """One speculation step."""

    tree: DraftTree
    walk: Walk
    laws: dict[int, tuple[Array, Array | None]]
    """Target and draft law of every visited node."""
    margin: float
    """Smallest gap between the two largest target logits at a visited node: below the models' rounding, two correct
    implementations may disagree on the greedy token."""


@dataclass(frozen=True)
class Generation:
    """What one prompt gave."""

    tokens: tuple[int, ...]
    """New tokens; ends with a stop token where one was reached."""
    steps: tuple[Walk, ...]
    """The walks, one a step. The last may hold tokens past the end, which were dropped."""
    verified: int
    """Positions that the target scored after the prompt, roots included."""
    seconds: float
    """Wall time after the prompt was read (the prompt's own pass belongs to the first step)."""
    margin: float
    """Smallest margin of any step."""

    @property
    def accepted_length(self) -> float:
        """Mean tokens a step, the bonus or resampled one included; whole steps only."""
        return float(np.mean([step.accepted_length for step in self.steps])) if self.steps else 0.0


def steps(
    target: Any,
    drafter: Drafter,
    prompt: Sequence[int],
    *,
    rule: Rule,
    sampling: Sampling,
    seed: int,
    stopwatch: Stopwatch = no_stopwatch,
) -> Iterator[Step]:
    """Endless speculation steps after ``prompt``. Draft and verifier have separate streams of coins from ``seed``.

    Exact (the emitted tokens follow the target's law) when ``rule`` is exact for the drafter's draw mode; at
    temperature 0 they are the target's greedy tokens whatever the rule.
    """
    draft_coins, coins = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    scorer = TreeScorer(target, prompt)
    drafter.start(prompt)
    while True:
        with stopwatch("drafting"):
            tree, slots = drafter.draft(draft_coins).compact()
        with stopwatch("target"):
            logits = scorer.logits(tree, range(len(tree.tokens)))
        laws: dict[int, tuple[Array, Array | None]] = {}

        def rows(
            node: int, tree: DraftTree = tree, logits: Any = logits, laws: dict[int, Any] = laws
        ) -> tuple[Array, Array | None]:
            p = sampling.law(logits[node], f"target logits at tree node {node}")
            laws[node] = p, tree.draft_rows.get(node)
            return laws[node]

        with stopwatch("verification"):
            found = walk(tree, rows, rule, coins, draw=drafter.draw)
        with stopwatch("cache"):
            scorer.keep(found.path, found.tokens)
            drafter.keep([slots[node] for node in found.path], found.tokens)
        yield Step(tree, found, laws, min(_margin(logits[node]) for node in laws))


def _margin(row: Array) -> float:
    top = np.partition(row, -2)[-2:] if row.size > 1 else np.array([-np.inf, 0.0])
    return float(top[1]) - float(top[0])


def generate(
    target: Any,
    drafter: Drafter,
    prompt: Sequence[int],
    *,
    max_new_tokens: int,
    rule: Rule,
    sampling: Sampling | None = None,
    seed: int = 0,
    stop_tokens: Sequence[int] = (),
    stopwatch: Stopwatch = no_stopwatch,
    watch: Callable[[Step], None] | None = None,
) -> Generation:
    """Up to ``max_new_tokens`` new tokens after ``prompt`` (token ids), by speculative decoding.

    ``target``: a LlamaForCausalLM in evaluation mode. Generation ends after a token of ``stop_tokens``. ``rule`` must
    be meant for the drafter's draw mode. ``watch`` is called with every step; its time does not count. Raises
    InputError before any work for a prompt that does not fit.
    Cost: per step the drafter's passes, one pass of the target over the tree, and one ``verify`` a visited node.
    """
    sampling = sampling or Sampling()
    rule.draw_mode(drafter.draw)
    check_fits(len(prompt), max_new_tokens, drafter.depth, int(target.config.max_position_embeddings))
    tokens: list[int] = []
    walks: list[Walk] = []
    verified, margin, start = 0, float("inf"), perf_counter()
    for step in steps(target, drafter, prompt, rule=rule, sampling=sampling, seed=seed, stopwatch=stopwatch):
        walks.append(step.walk)
        if watch is not None:
            paused = perf_counter()
            watch(step)
            start += perf_counter() - paused
        verified += len(step.tree.tokens)
        margin = min(margin, step.margin)
        for token in step.walk.tokens:
            tokens.append(token)
            if token in stop_tokens or len(tokens) == max_new_tokens:
                return Generation(tuple(tokens), tuple(walks), verified, perf_counter() - start, margin)
    raise AssertionError("steps are endless")


def check_fits(prompt: int, new: int, depth: int, limit: int, name: str = "the prompt") -> None:
    """Refuse a prompt that leaves no room for the new tokens and one tree beyond them."""
    if new < 1:
        raise InputError(f"max_new_tokens is {new}; pass at least 1")
    # The last step starts at most at token new − 1 and reaches depth − 1 positions past its root.
    needed = prompt + new - 1 + depth - 1
    if needed > limit:
        raise InputError(
            f"{name} has {prompt} tokens; with {new} new ones and a tree of depth {depth} that is {needed} positions, "
            f"and the model takes {limit}: shorten the prompt or generate less"
        )

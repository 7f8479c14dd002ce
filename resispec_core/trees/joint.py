"""The joint law of the tokens that repeated speculation steps emit, against the target's own.

Single positions can be right while the sequence is wrong: a child verified with its parent's row, a bonus token from
another leaf. Here whole steps are run on small tables (``audit.replay.tables.Markov``) until L tokens are out. Two
ways that share nothing but the rule:

- ``audit_tree`` sums the law node by node. What a subtree emits depends on its shape and on the tokens above it, not on
  rejected siblings, so equal subtrees are computed once and no whole tree is enumerated.
- ``replay_tree`` runs ``draft_tree`` and ``walk`` themselves and visits every draft tree and every fall of the coins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from resispec_core.arrays import Array
from resispec_core.audit.enumerate import enumerate_paths
from resispec_core.audit.marginal import rounding_bound
from resispec_core.audit.replay import ReplayReport, replay_step
from resispec_core.audit.replay.rows import Numbers
from resispec_core.audit.verdict import EXIT_CODES, Verdict, decide, plain
from resispec_core.drafts import DrawMode
from resispec_core.errors import BudgetExceededError, InputError
from resispec_core.laws import law, same_vocabulary
from resispec_core.rules.base import Rule, SetRule
from resispec_core.rules.registry import rule as named_rule
from resispec_core.trees.drafting import Stop, candidates_of, draft_tree
from resispec_core.trees.topology import Topology
from resispec_core.trees.walk import walk

Tokens: TypeAlias = tuple[int, ...]
Model: TypeAlias = Callable[[Tokens], Any]
"""A language model: a prefix → the law of the next token."""
Plan: TypeAlias = Topology | Callable[[Tokens], Topology]
"""A topology, or one for every prefix (EAGLE-2), decided before any token of the step is drawn."""
Shape: TypeAlias = "tuple[Shape, ...]"
"""A subtree without its numbering: the shapes of its children, in order."""
MAX_SEQUENCES = 2**14
MAX_STATES = 2**18
MAX_DEPTH = 128
"""Budgets of one audit: V^L, (subtree, prefix) pairs, and levels of a tree."""


@dataclass(frozen=True)
class JointReport:
    """What was established about the first L tokens."""

    rule: str
    draw: str
    topology: Topology
    """Of the first step."""
    horizon: int
    """L."""
    vocabulary: int
    verdict: Verdict
    total_variation: Any
    """Between the law of the first L tokens and the target's; a ``Fraction`` for rational tables."""
    by_length: tuple[Any, ...]
    """The same for the first 1, 2, …, L tokens; non-decreasing."""
    witness: tuple[Tokens, Any, Any] | None
    """The sequence most overproduced, its probability here, and under the target; None where none is."""
    accepted_length: Any
    """Mean tokens of the first step, the resampled or bonus one included."""
    states: int
    """(subtree, prefix) pairs that were summed."""
    rounding: float
    law: dict[Tokens, Any] = field(repr=False)
    expected: dict[Tokens, Any] = field(repr=False)

    @property
    def bound(self) -> Any:
        """The true total variation is at most this."""
        return self.total_variation + (self.rounding or 0)

    @property
    def exit_code(self) -> int:
        """0 exact, within rounding, or lossy by design; 1 biased."""
        return EXIT_CODES[self.verdict]

    def to_json(self, *, with_law: bool = True) -> dict[str, Any]:
        """A JSON-ready dictionary; rationals become strings ``"a/b"``."""
        data: dict[str, Any] = {
            "engine": "joint",
            "rule": self.rule,
            "draw": self.draw,
            "parents": list(self.topology.parents),
            "horizon": self.horizon,
            "vocabulary": self.vocabulary,
            "verdict": self.verdict.value,
            "total_variation": plain(self.total_variation),
            "bound": plain(self.bound),
            "by_length": [plain(gap) for gap in self.by_length],
            "accepted_length": plain(self.accepted_length),
            "states": self.states,
            "rounding": self.rounding,
            "witness": None,
        }
        if self.witness is not None:
            tokens, found, expected = self.witness
            data["witness"] = {"tokens": list(tokens), "law": plain(found), "target": plain(expected)}
        if with_law:
            data["law"] = [[list(tokens), plain(mass)] for tokens, mass in sorted(self.law.items())]
        return data


def audit_tree(
    rule: Rule | str,
    target_model: Model,
    draft_model: Model,
    topology: Plan,
    *,
    draw: str | DrawMode | None = None,
    horizon: int = 3,
    prompt: Sequence[int] = (),
    stop: Stop | None = None,
) -> JointReport:
    """Does ``rule`` on such trees keep the law of the next ``horizon`` tokens?

    Steps are repeated until ``horizon`` tokens follow ``prompt``, a longer last step is cut, and the law of those
    tokens, over every draft tree and every coin, is compared with the target's. Rational tables: exact means zero.
    Float tables: within L·``rounding_bound``. Each of the L tokens is one verification, off by at most that in total
    mass; the few roundings of its product and sum lie within the comparison stage that the bound includes.

    ``draw``: how siblings are drawn, by default the rule's first mode. ``stop``: see ``drafting.Stop``.
    Cannot detect: faults of an engine that drafts or walks otherwise than ``draft_tree`` and ``walk`` do; for those see
    ``audit.replay.replay_step``. Raises ``BudgetExceededError`` where V^L or the states are too many; nothing is left
    out. Cost: shapes × V^depth states, a path enumeration for each new (p, q, n), and V^L masses.
    """
    rule = named_rule(rule)
    if horizon < 1:
        raise InputError(f"horizon is {horizon}; at least one token must be compared")
    prompt = tuple(prompt)
    steps = _Steps(rule, target_model, draft_model, topology, rule.draw_mode(draw), stop)
    first, _ = steps.rows(prompt)
    size = first.size
    if size**horizon > MAX_SEQUENCES:
        raise BudgetExceededError(
            f"V^L = {size}^{horizon} = {size**horizon} sequences, over the budget of {MAX_SEQUENCES}; use a smaller "
            "table or a shorter horizon"
        )
    waiting: dict[Tokens, Any] = {(): 1 + 0 * first[0]}
    found: dict[Tokens, Any] = {}
    for length in range(horizon):
        # A step adds a token at least, so every start of this length is known by now.
        for start in [prefix for prefix in waiting if len(prefix) == length]:
            weight = waiting.pop(start)
            for tokens, mass in steps.law(prompt + start, horizon - length).items():
                home = found if len(start + tokens) == horizon else waiting
                home[start + tokens] = home.get(start + tokens, 0) + weight * mass
    expected: dict[Tokens, Any] = {(): 1 + 0 * first[0]}
    for _ in range(horizon):
        expected = {
            (*prefix, token): weight * mass
            for prefix, weight in expected.items()
            for token, mass in enumerate(steps.rows(prompt + prefix)[0].tolist())
            if mass > 0
        }
    gaps = tuple(_distance(found, expected, length) for length in range(1, horizon + 1))
    accepted_length = steps.accepted_length(prompt)
    bound = horizon * rounding_bound(size, steps.most, first)
    # An integer zero keeps rationals rational.
    low = max(gaps[-1] - (bound or 0), 0 * gaps[-1])
    return JointReport(
        rule=rule.name,
        draw=steps.mode.name,
        topology=steps.topology(prompt),
        horizon=horizon,
        vocabulary=size,
        verdict=decide(low, gaps[-1] + bound, complete=True, rounding=bound, lossy=rule.lossy),
        total_variation=gaps[-1],
        by_length=gaps,
        witness=_witness(found, expected, bound),
        accepted_length=accepted_length,
        states=steps.states,
        rounding=bound,
        law=found,
        expected=expected,
    )


class _Steps:
    """The law of one step from any prefix. Every function of a prefix is computed once."""

    def __init__(
        self, rule: Rule, target: Model, draft: Model, plan: Plan, mode: DrawMode, stop: Stop | None
    ) -> None:
        self.rule, self.mode, self.stop = rule, mode, stop
        self._target, self._draft, self._plan = target, draft, plan
        self.states = 0
        self.most = 1
        """The most candidates verified at one node."""
        self.rows = lru_cache(None)(self._rows)
        self.topology = lru_cache(None)(self._topology)
        self.branches = lru_cache(None)(self._branches)

    def _rows(self, prefix: Tokens) -> tuple[Array, Array]:
        p = law(self._target(prefix), name=f"target row after {list(prefix)}")
        q = law(self._draft(prefix), name=f"draft row after {list(prefix)}")
        same_vocabulary(p, q)
        return p, q

    def _topology(self, prefix: Tokens) -> Topology:
        found = self._plan if isinstance(self._plan, Topology) else self._plan(prefix)
        if found.depth > MAX_DEPTH:
            raise BudgetExceededError(
                f"the tree has {found.depth} levels, over the budget of {MAX_DEPTH}; audit a smaller one"
            )
        return found

    def _branches(self, prompt: Tokens, shape: Shape, path: Tokens) -> list[tuple[Shape | None, list[Any]]]:
        """What can happen at a node: (shape of the subtree to go on with, mass of each token), None at the end.

        Children of equal shape are one branch: below them, the same tokens have the same law.
        """
        self.states += 1
        if self.states > MAX_STATES:
            raise BudgetExceededError(
                f"more than {MAX_STATES} (subtree, prefix) states; use a smaller table or a shallower tree"
            )
        p, q = self.rows(prompt + path)
        if not shape or (self.stop is not None and self.stop(path, self._chances(prompt, path), q)):
            return [(None, p.tolist())]
        count = candidates_of(self.mode, q, len(shape))
        self.most = max(self.most, count)
        *accepted, resampled = _node_parts(self.rule, self.mode, tuple(p), tuple(q), count)
        merged: dict[Shape, Array] = {}
        for below, masses in zip(shape, accepted, strict=False):
            merged[below] = merged[below] + masses if below in merged else masses
        return [*((below, masses.tolist()) for below, masses in merged.items()), (None, resampled.tolist())]

    def _chances(self, prompt: Tokens, path: Tokens) -> tuple[Any, ...]:
        return tuple(self.rows(prompt + path[:place])[1][token] for place, token in enumerate(path))

    def law(self, prompt: Tokens, room: int) -> dict[Tokens, Any]:
        """Emitted sequence → mass, for one step from ``prompt``, cut to ``room`` tokens."""

        @lru_cache(None)
        def emitted(shape: Shape, path: Tokens) -> dict[Tokens, Any]:
            if len(path) == room:
                return {(): 1}
            found: dict[Tokens, Any] = {}
            for below, masses in self.branches(prompt, shape, path):
                for token, mass in enumerate(masses):
                    if mass > 0:
                        rests = {(): 1} if below is None else emitted(below, (*path, token))
                        for rest, share in rests.items():
                            found[token, *rest] = found.get((token, *rest), 0) + mass * share
            return found

        return emitted(_shape(self.topology(prompt)), ())

    def accepted_length(self, prompt: Tokens) -> Any:
        """Mean tokens of one step from ``prompt``, not cut."""

        @lru_cache(None)
        def tokens(shape: Shape, path: Tokens) -> Any:
            return sum(
                mass * (1 if below is None else 1 + tokens(below, (*path, token)))
                for below, masses in self.branches(prompt, shape, path)
                for token, mass in enumerate(masses)
                if mass > 0
            )

        return tokens(_shape(self.topology(prompt)), ())


@lru_cache(1024)
def _node_parts(
    rule: Rule, mode: DrawMode, p: tuple[Any, ...], q: tuple[Any, ...], count: int
) -> tuple[Array, ...]:
    """Mass put on each token by accepting candidate 0, 1, … and, last, by the resample, at one node."""
    target, draft = np.array(p), np.array(q)
    return enumerate_paths(rule, target, draft, count, drawn_as=mode, assumed=mode).parts


@lru_cache(256)
def _shape(topology: Topology) -> Shape:
    shapes: list[Shape] = [()] * len(topology)
    for node in reversed(range(len(topology))):
        shapes[node] = tuple(shapes[child] for child in topology.children(node))
    return shapes[0]


def _distance(found: dict[Tokens, Any], expected: dict[Tokens, Any], length: int) -> Any:
    """The total variation between the laws of the first ``length`` tokens."""
    gaps: dict[Tokens, Any] = {}
    for masses, sign in ((found, 1), (expected, -1)):
        for tokens, mass in masses.items():
            gaps[tokens[:length]] = gaps.get(tokens[:length], 0) + sign * mass
    return sum(map(abs, gaps.values())) / 2


def _witness(
    found: dict[Tokens, Any], expected: dict[Tokens, Any], bound: float
) -> tuple[Tokens, Any, Any] | None:
    excess = {tokens: mass - expected.get(tokens, 0 * mass) for tokens, mass in found.items()}
    worst = max(excess, key=lambda tokens: excess[tokens])
    if excess[worst] <= bound:
        return None
    return worst, found[worst], expected.get(worst, 0 * found[worst])


def tree_step(
    rule: Rule | str, topology: Plan, *, draw: str | DrawMode | None = None, stop: Stop | None = None
) -> Callable[..., list[int]]:
    """One speculation step as ``step(target_model, draft_model, prefix, rng) -> tokens``: draft, then walk.

    The form that ``replay_step`` audits and ``resispec audit file.py:name`` accepts; models as for ``audit_tree``.
    """
    rule = named_rule(rule)
    mode = rule.draw_mode(draw)

    def step(target_model: Model, draft_model: Model, prefix: Sequence[int], rng: Any) -> list[int]:
        prompt = tuple(prefix)
        tree = draft_tree(
            topology if isinstance(topology, Topology) else topology(prompt),
            lambda so_far, nodes: [draft_model(prompt + so_far.prefix(node)) for node in nodes],
            rng,
            draw=mode,
            stop=stop,
        )
        found = walk(
            tree,
            lambda node: (target_model(prompt + tree.prefix(node)), tree.draft_rows.get(node)),
            rule,
            rng,
            draw=mode.name,
        )
        return list(found.tokens)

    return step


def replay_tree(
    rule: Rule | str,
    target_model: Model,
    draft_model: Model,
    topology: Plan,
    *,
    draw: str | DrawMode | None = None,
    horizon: int = 3,
    stop: Stop | None = None,
    numbers: Numbers = "rational",
) -> ReplayReport:
    """As ``audit_tree``, by running ``draft_tree`` and ``walk`` on every draft tree and every fall of the coins.

    A set rule is run through its selection law (its own coins race each other, which the replay does not follow).
    Cost: one run for every path, V^nodes trees times the paths of each: for tables of 2 or 3 tokens and a few nodes.
    """
    rule = named_rule(rule)
    step = tree_step(
        _BySelection(rule) if isinstance(rule, SetRule) else rule, topology, draw=draw, stop=stop
    )
    return replay_step(
        step,
        target_model,
        draft_model,
        horizon=horizon,
        numbers=numbers,
        monte_carlo=0,
        name=f"{rule.name} tree",
    )


class _BySelection(SetRule):
    """A set rule that runs on the three coins of ``SetRule.decide``: select, accept, resample."""

    def __init__(self, rule: SetRule) -> None:
        self._rule = rule
        self.name, self.draws, self.lossy = rule.name, rule.draws, rule.lossy  # type: ignore[misc]

    def plan(self, target: Array, draft: Array, candidates: int) -> Any:
        return self._rule.plan(target, draft, candidates)

    def select(self, plan: Any, tokens: Sequence[int]) -> Array:
        return self._rule.select(plan, tokens)

    def accept(self, plan: Any) -> Array:
        return self._rule.accept(plan)

    def residual(self, plan: Any) -> Array:
        return self._rule.residual(plan)

"""Sequoia's dynamic program: the topology that yields most tokens a step for a budget of positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from resispec_core.arrays import Array
from resispec_core.audit import audit
from resispec_core.errors import InputError
from resispec_core.rules import Rule
from resispec_core.trees.topology import Topology

MAX_BUDGET = 2048
"""Beyond it one level of the program needs more than a second and 100 MB."""


def sequoia(budget: int, acceptance: Sequence[Any], max_depth: int | None = None) -> Topology:
    """The topology of at most ``budget`` positions with the largest ``expected_tokens``.

    ``budget``: M, the root included. ``acceptance[k]``: the probability, when a node is reached, that its candidate k
    is the one accepted (``AuditReport.acceptance_by_candidate``, or its mean over positions), so their sum is at most
    1; no node gets more children than there are entries. ``max_depth`` counts the root; None for no limit. Smaller
    subtrees win ties. Rational entries are handled exactly.

    With V(d, n) the best value of a tree of at most n nodes and depth at most d, and B(k, m) the best that children
    k, k + 1, … make of m nodes:  V(d, n) = 1 + B(0, n − 1),  B(k, m) = max(0, max_j acceptance[k]·V(d − 1, j) +
    B(k + 1, m − j)). Depths are added until nothing improves.

    Optimal for its model only: that acceptance depends on a candidate's place among its siblings and not on the
    context. Cost: O(d·K·M²), K entries; about 10 ms a level at M = 384, K = 16.
    Source: Sequoia (2402.12374), section 3 and its appendix. Checked against every tree of up to seven nodes.
    """
    chances = _checked(budget, acceptance, max_depth)
    width = min(len(chances), budget - 1)
    zero = 0 * chances[0]
    # Index 0 is no tree at all. A node reached yields its own token: the accepted, resampled or bonus one.
    value = np.array([zero] + [zero + 1] * budget, dtype=chances.dtype)
    taken = np.arange(budget)
    left = taken[:, None] - taken[None, :]  # [m, j]: nodes left of m when child k gets j
    choices: list[Array] = []
    while max_depth is None or len(choices) + 1 < max_depth:
        rest = np.array([zero] * budget, dtype=chances.dtype)
        chosen = np.zeros((width, budget), dtype=int)
        for child in reversed(range(width)):
            gain = np.where(left >= 0, chances[child] * value[:budget][None, :] + rest[left], zero - 1)
            gain[:, 0] = zero  # j = 0: neither this child nor a later one
            chosen[child] = np.argmax(gain, axis=1)
            rest = gain[taken, chosen[child]]
        deeper = np.concatenate([value[:1], 1 + rest])
        if np.array_equal(deeper, value):
            break
        choices.append(chosen)
        value = deeper
    parents = [-1]
    sizes = [budget]  # of the best subtree under each node, breadth first
    depths = [len(choices)]  # levels it may have below that node
    for node, size in enumerate(sizes):  # grows while it is read
        room = size - 1
        for child in range(width if depths[node] else 0):
            given = int(choices[depths[node] - 1][child, room])
            if given == 0:
                break
            parents.append(node)
            sizes.append(given)
            depths.append(depths[node] - 1)
            room -= given
    return Topology(tuple(parents))


def _checked(budget: int, acceptance: Sequence[Any], max_depth: int | None) -> Array:
    if not 1 <= budget <= MAX_BUDGET:
        raise InputError(f"budget is {budget}; it counts positions, the root included: 1 to {MAX_BUDGET}")
    if max_depth is not None and max_depth < 1:
        raise InputError(f"max_depth is {max_depth}; it counts levels, the root included, so at least 1")
    chances = np.array(list(acceptance))
    if chances.ndim != 1 or chances.size == 0:
        raise InputError("acceptance is empty; give the acceptance probability of every candidate index")
    for place, chance in enumerate(chances.tolist()):
        if not 0 <= chance <= 1:
            raise InputError(f"acceptance of candidate {place} is {chance}; it must be a probability")
    # Means of measured rows add up with rounding; a real excess is far larger.
    if chances.sum() > 1 + 1e-9:
        raise InputError(
            f"the acceptances sum to {float(chances.sum()):.6g}; they are the probabilities that candidate k is the "
            "accepted one, which exclude one another (acceptance_by_candidate, not conditional_acceptance)"
        )
    return chances


def measured_acceptance(
    rule: Rule | str, pairs: Iterable[tuple[Array, Array]], candidates: int, *, draw: str | None = None
) -> tuple[float, ...]:
    """Mean probability that candidate k is the one accepted, over ``pairs`` (target, draft): what ``sequoia`` takes.

    From the audit of each pair, not from samples. Raises ``InputError`` where an audit is only a bound (some rules at
    large vocabularies when candidates are drawn without replacement). Cost: one audit a pair.
    """
    found: list[Array] = []
    for place, (target, draft) in enumerate(pairs):
        report = audit(rule, target, draft, candidates, draw=draw)
        if report.unexplored > 1e-9:
            raise InputError(
                f"pair {place}: the acceptance of {report.rule} under {report.draw} draws is only known up to "
                f"{float(report.unexplored):.3g} at V = {report.vocabulary} and n = {candidates}; use draw='iid' or "
                "fewer candidates"
            )
        found.append(np.array([float(chance) for chance in report.acceptance_by_candidate]))
    if not found:
        raise InputError("no pair of laws was given to measure acceptance on")
    return tuple(np.mean(found, axis=0).tolist())

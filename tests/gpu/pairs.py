"""PAIRS: every rule of the reference beside its twin on the GPU path, and what "the same" means for floats.

The two compute in different arithmetic (the reference sums floats, the twin integers), so a decision may differ
where a coin lies within rounding of its threshold. The bound is derived, not tuned. With E the error of one row
sum and δ the L1 error of a residual of mass one, a rejection that leaves mass m of it gives δ' ≤ 4(δ + E)/m: the
subtraction or projection, its redistribution and its normaliser each err by at most δ + E before the division.
A threshold R(x)/q(x) is then off by at most δ/q(x), the inverse CDF by δ + E.
E = V·2^-55 (fixed point) + (32 + 4 log2 V)·2^-53 (the reference's pairwise sums and elementwise rounding),
+ |Σp − 1| + |Σq − 1| where rows come without normalisers, + V·2^-bits and the rounding of exp's argument for logits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from resispec_core import rules
from resispec_core.gpu import array
from resispec_core.gpu.array import Decisions
from resispec_core.gpu.numerics import UNIT, softmax_bits
from resispec_core.gpu.rows import Policy, side
from resispec_core.gpu.shaping import shaped_horizon
from resispec_core.laws import inverse_cdf
from resispec_core.rules.base import Outcome, SequentialRule, Stage
from resispec_core.rules.shaped import Shaped, ShapedPlan
from tests.gpu.cases import Nodes


class Pair(NamedTuple):
    """(reference, twin)."""

    name: str
    rule: str
    draw: str
    redistribution: str = ""
    budget: str = "local"

    def reference(self) -> Any:
        if self.rule == "resispec":
            return rules.rule("resispec", redistribution=self.redistribution, budget=self.budget)
        return rules.rule(self.rule.replace("_", "-"))

    def options(self) -> dict[str, str]:
        return {"redistribution": self.redistribution, "budget": self.budget} if self.redistribution else {}


PAIRS = (
    Pair("specinfer", "specinfer", "iid"),
    Pair("single draft", "single_draft", "iid"),
    Pair("deterministic siblings", "deterministic", "top-k"),
    Pair("resispec proportional", "resispec", "iid", "proportional"),
    Pair("resispec water-filling", "resispec", "iid", "waterfill"),
    Pair("resispec uniform", "resispec", "iid", "uniform"),
    Pair("resispec proportional, Eq. 13", "resispec", "iid", "proportional", "eq13"),
    Pair("resispec water-filling, Eq. 13", "resispec", "iid", "waterfill", "eq13"),
    Pair("shaped", "shaped", "iid"),
)


def policy_of(nodes: Nodes) -> Policy:
    kind = "logits" if nodes.logits else "probabilities"
    return Policy(kind, nodes.case.temperature, nodes.dtype, nodes.case.validate)


def array_level(pair: Pair, nodes: Nodes, xp: Any = np) -> Decisions:
    """The array-level twin under ``xp``."""
    case = nodes.case
    given = [None if a is None else xp.asarray(a) for a in case.arrays()]
    target, draft, target_norm, draft_norm, tokens, coins = given
    return array.verify(
        pair.rule, target, draft, tokens, coins, **pair.options(), target_norm=target_norm, draft_norm=draft_norm,
        policy=policy_of(nodes),
    )  # fmt: skip


@dataclass(frozen=True)
class Trace:
    """What the reference did on one node, as far as it would go: thresholds, residual, and their bounds."""

    thresholds: list[float]
    bounds: list[float]
    residual: np.ndarray
    residual_bound: float

    def outcome(self, tokens: np.ndarray, coins: np.ndarray) -> Outcome:
        for i, threshold in enumerate(self.thresholds):
            if coins[i] < threshold:
                return Outcome(int(tokens[i]), i)
        return Outcome(inverse_cdf(self.residual, coins[-1]), -1)


def row_error(nodes: Nodes, node: int) -> float:
    """E of the module docstring."""
    size = nodes.target_law.shape[1]
    error = size * UNIT + (32 + 4 * math.log2(size)) * 2.0**-53 + nodes.mass_gap[node]
    if nodes.logits:
        error += 400 * 2.0**-52  # |logit / T − lse| < 100 here, twice, rounded to 2^-53 of 100
        error += 0.0 if nodes.case.target_norm is not None else 2 * size * 2.0 ** -softmax_bits(size)
    return error


def trace(pair: Pair, nodes: Nodes, node: int) -> Trace:
    """Runs the reference on one node, past acceptances, so that every threshold is known."""
    p, q = nodes.target_law[node], nodes.draft_law[node]
    tokens = nodes.case.tokens[node]
    error = row_error(nodes, node)
    rule = pair.reference()
    if isinstance(rule, Shaped):
        if tokens.size > 1:
            return _shaped_trace(rule, p, q, tokens, error, as_read(nodes, node))
        rule = rules.rule("specinfer")  # one candidate: the same rule, T = 1
    return _sequential_trace(rule, pair.draw, p, q, tokens, error)


def _sequential_trace(
    rule: SequentialRule, draw: str, p: np.ndarray, q: np.ndarray, tokens: np.ndarray, error: float
) -> Trace:
    mode = rule.draw_mode(draw)
    residual, delta = p, error
    thresholds, bounds = [], []
    plan = rule.plan(p, q, tokens.size)
    for i, token in enumerate(tokens):
        row = mode.conditional(q, tokens[:i], tokens.size)
        stage = Stage(p, row, residual, i, tokens.size, plan)
        thresholds.append(float(rule.accept(stage)[token]))
        bounds.append(delta / row[token] + 2.0**-50 if row[token] > 0 else 2.0**-50)
        local = row[token] - residual[token]
        mass = float(local if rule.name == "resispec" else np.maximum(residual - row, 0).sum())
        residual = rule.reject(stage, np.array(token))
        delta = min(4 * (delta + error) / mass, 1.0) if mass > 0 else 1.0
    return Trace(thresholds, bounds, residual, delta + error)


def as_read(nodes: Nodes, node: int) -> tuple[np.ndarray, np.ndarray]:
    """One node's rows as the twin reads them, without dividing by a sum it was not given."""
    case, one = nodes.case, slice(node, node + 1)
    target_norm, draft_norm = (None if a is None else a[one] for a in (case.target_norm, case.draft_norm))
    policy = policy_of(nodes)
    return (
        side(np, case.target[one], target_norm, policy, target=True).law,
        side(np, case.draft[one], draft_norm, policy, target=False).law,
    )


def _walk(rule: Shaped, p: np.ndarray, q: np.ndarray, n: int, total: float) -> ShapedPlan:
    """The reference's chain for a given T."""
    plan = ShapedPlan(total, (total,), (), 0)
    for i in range(n):
        reach = float(rule.owed(plan, p, q, i).sum())
        plan = plan._replace(left=(*plan.left, plan.left[-1] - reach), reach=(*plan.reach, reach))
    return plan


def _shaped_trace(
    rule: Shaped,
    p: np.ndarray,
    q: np.ndarray,
    tokens: np.ndarray,
    error: float,
    read: tuple[np.ndarray, np.ndarray],
) -> Trace:
    """The reference's chain at the twin's T, after checking that T is one.

    Where p and q nearly agree τ_{n+1}(T) is flat and T is ill-conditioned: two values far apart are both exact and
    accept equally often, with other thresholds. So T is judged by what it is for (τ_{n+1} ≥ 0, acceptance no lower
    than at the largest root) and the thresholds at the same T. They move by at most δτ/S, and δτ ≤ 4nE.
    """
    n = tokens.size
    moved = 4 * n * error
    total = float(shaped_horizon(np, *read, n)[0])
    mine, best = _walk(rule, p, q, n, total), rule.plan(p, q, n)
    assert mine.left[-1] >= -moved, f"T = {total!r} leaves τ = {mine.left[-1]!r}: the chain is not exact"
    owed = [np.maximum(rule.owed(mine, p, q, i), 0) for i in range(n + 1)]
    loss = owed[n].sum() - np.maximum(rule.owed(best, p, q, n), 0).sum()
    assert loss <= moved, f"T = {total!r} accepts {loss!r} less than T = {best.total!r}"
    thresholds, bounds = [], []
    for i, token in enumerate(tokens):
        thresholds.append(float(rule.accept_at(mine, p[[token]], q[[token]], i)[0]))
        reached = mine.reach[i] > 0 and q[token] > 0
        moved_here = (moved + 2.0**-50 * p[token] / q[token]) / mine.reach[i] if reached else 1.0
        bounds.append(min(moved_here, 1.0))
    rest = owed[n].sum()
    residual = owed[n] if rest > 0 else p
    return Trace(thresholds, bounds, residual / residual.sum(), min(moved / rest, 1.0) if rest > 0 else 1.0)


class Parting(NamedTuple):
    """Where a node's two answers part: the coin, the reference's threshold and bound, and the words for it."""

    coin: int
    within: bool
    text: str


def compare(pair: Pair, nodes: Nodes, node: int, accepted: int, token: int) -> Parting | None:
    """None where the twin agrees with the reference on one node; else the first coin where they part."""
    case = nodes.case
    told = trace(pair, nodes, node)
    tokens, coins = case.tokens[node], case.coins[node]
    outcome = told.outcome(tokens, coins)
    if pair.rule != "shaped":  # where T is flat, the trace is at the twin's T and not at the reference's own
        p, q = nodes.target_law[node], nodes.draft_law[node]
        assert outcome == pair.reference().verify(p, q, tokens.tolist(), coins.tolist(), pair.draw)
    if (outcome.token, outcome.accepted) == (token, accepted):
        return None
    n = tokens.size
    coin = min(n if index < 0 else index for index in (outcome.accepted, accepted))
    head = f"{pair.name}, node {node}: reference {tuple(outcome)}, twin {(token, accepted)}; they part at coin {coin}"
    if coin < n and outcome.accepted != accepted:
        gap, bound = abs(coins[coin] - told.thresholds[coin]), told.bounds[coin]
        mine = threshold_of(pair, nodes, node, coin)
        text = f"{head}: u = {coins[coin]!r}, thresholds {told.thresholds[coin]!r} and {mine!r}, bound {bound:.3g}"
        return Parting(coin, bool(gap <= bound), text)
    below, above = coins[n] - told.residual_bound, coins[n] + told.residual_bound
    # Beyond either end of the mass any token may hold a rounding's worth of it.
    low = inverse_cdf(told.residual, below) if below >= 0 else 0
    high = inverse_cdf(told.residual, above) if above < 1 else told.residual.size - 1
    within = low <= token <= high or told.residual_bound >= 1
    edges = np.cumsum(told.residual)[[min(outcome.token, token), max(outcome.token, token)]].tolist()
    text = f"{head} (resampling): u = {coins[n]!r}, cumulative mass {edges}, bound {told.residual_bound:.3g}"
    return Parting(n, bool(within), text)


def threshold_of(pair: Pair, nodes: Nodes, node: int, coin: int) -> float:
    """The twin's acceptance threshold of one candidate, by bisection on its coin (others reject)."""
    case = nodes.case
    coins = np.full((1, case.coins.shape[1]), 1 - 2.0**-53)
    low, high = 0.0, 1.0
    one = [None if a is None else a[node : node + 1] for a in case.arrays()]
    for _ in range(53):
        middle = (low + high) / 2
        coins[0, coin] = middle
        answer = array.verify(
            pair.rule, one[0], one[1], one[4], coins, **pair.options(), target_norm=one[2], draft_norm=one[3],
            policy=policy_of(nodes),
        )  # fmt: skip
        low, high = (middle, high) if int(answer.accepted[0]) == coin else (low, middle)
    return high

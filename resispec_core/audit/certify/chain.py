"""Rules whose residual ignores the rejected token: one pass a stage gives the law at any vocabulary size."""

from __future__ import annotations

from typing import Any

import numpy as np

from resispec_core.arrays import Array, sums_before
from resispec_core.audit.enumerate import accept_rows, reject_rows
from resispec_core.audit.marginal import Marginal, rounding_bound
from resispec_core.drafts import DrawMode
from resispec_core.errors import InputError
from resispec_core.rules.base import SequentialRule, Stage
from resispec_core.rules.chain import ChainRule
from resispec_core.rules.registry import RULES


def chain_marginal(
    rule: SequentialRule, target: Array, draft: Array, candidates: int, drawn_as: DrawMode, assumed: DrawMode
) -> Marginal:
    """The law of a rule with ``residual_uses_token = False`` under history-free draws, float64, rows of shape (V,).

    The law that ``enumerate_paths(..., merge=True)`` gives, without a path for every token. The declaration is believed
    for the rules of the registry, whose tests hold it, and else checked at the heaviest and the lightest rejection
    of every stage. Cost: one ``accept`` and one ``reject`` a stage and about ten passes.
    """
    plan = rule.plan(target, draft, candidates)
    if assumed is drawn_as and assumed.name == "iid" and _plain_chain(rule):
        parts = _owed_parts(rule, plan, target, draft, candidates)
    else:
        parts = _stage_parts(rule, plan, target, draft, candidates, drawn_as, assumed)
    accepted = [float(part.sum()) for part in parts[:-1]]
    reached = 1.0 - sums_before(np.array(accepted))[:-1]
    return Marginal(
        parts=tuple(parts),
        accepted=tuple(accepted),
        reached=tuple(np.maximum(reached, 0.0).tolist()),
        paths=candidates + 1,
        unexplored=0.0,
        carriers=None,
        rounding=rounding_bound(target.size, candidates, target),
    )


def _plain_chain(rule: SequentialRule) -> bool:
    """Whether accept and reject are those of ``ChainRule``: then the owed rows say everything."""
    kind = type(rule)
    return isinstance(rule, ChainRule) and all(
        getattr(kind, name) is getattr(ChainRule, name) for name in ("accept", "accept_at", "reject")
    )


def _owed_parts(rule: Any, plan: Any, target: Array, draft: Array, candidates: int) -> list[Array]:
    """Candidate i takes min(r_i − r_{i+1}, S_i·q) of what reaches it, as a share of S_i; the resample norm(r_{n+1})."""
    parts, weight, owed = [], 1.0, rule.owed(plan, target, draft, 0)
    for index in range(candidates):
        later = rule.owed(plan, target, draft, index + 1)
        reach = float(rule.reach(plan, index))
        taken = np.subtract(owed, later)
        np.maximum(taken, 0.0, out=taken)
        np.minimum(taken, reach * draft, out=taken)
        taken *= weight / reach if reach > 0 else 0.0
        parts.append(taken)
        weight = max(weight - float(taken.sum()), 0.0)
        owed = later
    rest = np.maximum(owed, 0.0)
    mass = float(rest.sum())
    rest *= weight / mass if mass > 0 else 0.0
    return [*parts, rest]


def _stage_parts(
    rule: SequentialRule,
    plan: Any,
    target: Array,
    draft: Array,
    candidates: int,
    drawn_as: DrawMode,
    assumed: DrawMode,
) -> list[Array]:
    parts: list[Array] = []
    residual, weight = target, 1.0
    for index in range(candidates):
        before = np.zeros(index, dtype=int)  # only how many were drawn matters
        row = assumed.conditional(draft, before, candidates)
        stage = Stage(target, row, residual, index, candidates, plan)
        arriving = weight * drawn_as.conditional(draft, before, candidates)
        taken = _accept(rule, stage) * arriving
        parts.append(taken)
        refused = np.subtract(arriving, taken, out=arriving)
        token = int(np.argmax(refused))
        if refused[token] <= 0:
            break
        weight = float(refused.sum())
        residual = _reject(rule, stage, token)
        if type(rule) not in RULES.values():
            lightest = int(np.argmin(np.where(refused > 0, refused, np.inf)))
            if not np.array_equal(residual, _reject(rule, stage, lightest)):
                raise InputError(
                    f"rule {rule.name!r} declares residual_uses_token = False, but two rejected tokens gave two "
                    "different residuals; remove the declaration"
                )
    else:
        parts.append(weight * residual)
    return parts + [np.zeros(target.size)] * (candidates + 1 - len(parts))


def _accept(rule: SequentialRule, stage: Stage) -> Array:
    found = rule.accept(stage)
    if found.shape != stage.residual.shape or not (found.min() >= 0 and found.max() <= 1):
        found = accept_rows(rule, _one(stage))[0]  # clips rounding, or says what is wrong
    return found


def _reject(rule: SequentialRule, stage: Stage, token: int) -> Array:
    found = rule.reject(stage, np.array(token))
    if not (found.min() >= 0 and abs(found.sum() - 1) <= 16 * np.finfo(np.float64).eps):
        found = reject_rows(rule, _one(stage), np.array([0]), np.array([token]))[0]
    return found


def _one(stage: Stage) -> Stage:
    """``stage`` as the checks take it: one path."""
    rows = (stage.target[None], stage.draft[None], stage.residual[None])
    return Stage(*rows, stage.index, stage.candidates, stage.plan)

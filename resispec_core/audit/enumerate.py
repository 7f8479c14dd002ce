"""Exhaustive path marginalization: every candidate tuple and every accept/reject path, summed.

The law of a verifier is taken over *all* randomness, with the residual that each path really builds. Levels
are vectorised in floats; on object arrays of ``Fraction`` the same lines are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from resispec_core.arrays import Array, divide, is_rational, one, zeros
from resispec_core.audit.carriers import Carriers
from resispec_core.audit.marginal import Marginal, rounding_bound
from resispec_core.drafts import DrawMode
from resispec_core.errors import BudgetExceededError, InputError
from resispec_core.rules.base import Rule, SequentialRule, SetRule, Stage

FLOAT_CELLS = 2**23
RATIONAL_CELLS = 2**18
"""Default budgets: live paths × V at any level; one array of that size is 64 MB in floats."""


def enumerate_paths(
    rule: Rule,
    target: Array,
    draft: Array,
    candidates: int,
    *,
    drawn_as: DrawMode,
    assumed: DrawMode,
    max_cells: int | None = None,
    partial: bool = False,
    merge: bool = False,
) -> Marginal:
    """The law of ``rule`` on (p, q, n), every path summed.

    ``drawn_as``: how the candidates really are drawn; ``assumed``: how the rule believes they are (the
    same, except when a mismatch is audited). ``max_cells`` bounds live paths × V. Past it
    ``BudgetExceededError`` says what would be needed; with ``partial=True`` the heaviest paths are kept and the
    mass of the others is returned as ``unexplored``. ``merge=True`` treats paths that differ only in which token
    was rejected as one, for rules that declare ``residual_uses_token = False`` under history-free draws (the
    declaration is spot-checked at every stage): a closed form at any vocabulary size.

    Cost: O(V^(n+1)) time for i.i.d. candidates, O(V^n) memory; merged O(n·V).
    """
    drawn_as.check(draft, candidates)
    if max_cells is None:
        max_cells = RATIONAL_CELLS if is_rational(target) else FLOAT_CELLS
    if isinstance(rule, SetRule):
        return _enumerate_tuples(rule, target, draft, candidates, drawn_as, max_cells)
    assert isinstance(rule, SequentialRule)
    if merge and not can_merge(rule, drawn_as, assumed):
        raise InputError(
            f"rule {rule.name!r} under {drawn_as.name} draws has residuals that depend on the rejected tokens; "
            "its paths cannot be merged"
        )
    return _enumerate_stages(rule, target, draft, candidates, drawn_as, assumed, max_cells, partial, merge)


def can_merge(rule: Rule, drawn_as: DrawMode, assumed: DrawMode) -> bool:
    """Whether every rejection path of a stage owes the same residual and draws from the same law."""
    return (
        isinstance(rule, SequentialRule)
        and not rule.residual_uses_token
        and drawn_as.history_free
        and assumed.history_free
    )


def _enumerate_stages(
    rule: SequentialRule,
    target: Array,
    draft: Array,
    candidates: int,
    drawn_as: DrawMode,
    assumed: DrawMode,
    max_cells: int,
    partial: bool,
    merge: bool,
) -> Marginal:
    size = target.size
    unit = one(target)
    plan = rule.plan(target, draft, candidates)
    parts: list[Array] = []
    carrier = Carriers(target)
    weight = np.array([unit], dtype=target.dtype)
    residual = target[None, :]
    drawn = np.empty((1, 0), dtype=int)
    accepted: list[Any] = []
    reached: list[Any] = []
    paths, unexplored = 0, 0 * unit
    for index in range(candidates):
        stage = Stage(
            np.broadcast_to(target, residual.shape),
            np.broadcast_to(assumed.conditional(draft, drawn, candidates), residual.shape),
            residual,
            index,
            candidates,
            plan,
        )
        probability = accept_rows(rule, stage)
        arriving = weight[:, None] * drawn_as.conditional(draft, drawn, candidates)
        taken = arriving * probability
        refused = arriving * (1 - probability)
        parts.append(taken.sum(axis=0))
        carrier.see(taken, drawn, accepted=True)
        accepted.append(taken.sum())
        reached.append(weight.sum())
        paths += int(np.count_nonzero(taken))
        row, token = np.nonzero(refused > 0)
        weight = refused[row, token]
        if merge and row.size > 1:
            ends = [int(np.argmax(weight)), int(np.argmin(weight))]
            _check_token_free(rule, reject_rows(rule, stage, row[ends], token[ends]))
            row, token, weight = row[ends[:1]], token[ends[:1]], np.array([weight.sum()], dtype=weight.dtype)
        if row.size * size > max_cells:
            if not partial:
                raise BudgetExceededError(
                    f"{row.size} rejection paths are live after candidate {index + 1} of {candidates} at "
                    f"V = {size}: {row.size * size} cells, over the budget of {max_cells}; raise max_cells, or "
                    "pass partial=True for a sum over the heaviest paths with the rest stated as unexplored"
                )
            keep, dropped = _heaviest(weight, max(1, max_cells // size))
            # Summed on its own: as a difference, light paths would round to "nothing was dropped".
            unexplored = unexplored + weight[dropped].sum()
            row, token, weight = row[keep], token[keep], weight[keep]
        residual = reject_rows(rule, stage, row, token)
        drawn = np.concatenate([drawn[row], token[:, None]], axis=1)
        if weight.size == 0:
            accepted += [0 * unit] * (candidates - index - 1)
            reached += [0 * unit] * (candidates - index - 1)
            break
    resampled = weight[:, None] * residual
    parts += [zeros(size, like=target)] * (candidates - len(parts))
    parts.append(resampled.sum(axis=0))
    carrier.see(resampled, drawn, accepted=False)
    paths += weight.size
    return Marginal(
        parts=tuple(parts),
        accepted=tuple(accepted),
        reached=tuple(reached),
        paths=paths,
        unexplored=unexplored,
        carriers=carrier,
        rounding=rounding_bound(size, candidates, target),
    ).normalised()


def _enumerate_tuples(
    rule: SetRule, target: Array, draft: Array, candidates: int, drawn_as: DrawMode, max_cells: int
) -> Marginal:
    size = target.size
    needed = size**candidates
    if needed > max_cells:
        raise BudgetExceededError(
            f"rule {rule.name!r} looks at whole tuples: V^n = {size}^{candidates} = {needed} of them, over the "
            f"budget of {max_cells}; use fewer candidates or tokens, or raise max_cells"
        )
    plan = rule.plan(target, draft, candidates)
    probability, residual = rule.accept(plan), rule.residual(plan)
    parts = [zeros(size, like=target) for _ in range(candidates)]
    rejected = 0 * target[0]
    carrier = Carriers(target)
    paths = 0
    for tokens, weight in drawn_as.tuples(draft, candidates):
        chosen = rule.select(plan, tokens)
        for index, token in enumerate(tokens):
            if chosen[index] == 0:
                continue
            taken = weight * chosen[index] * probability[token]
            parts[index][token] = parts[index][token] + taken
            rejected = rejected + weight * chosen[index] * (1 - probability[token])
            paths += 1
    resampled = rejected * residual
    nothing = np.empty((1, 0), dtype=int)
    carrier.see(sum(parts[1:], parts[0])[None, :], nothing, accepted=True)
    carrier.see(resampled[None, :], nothing, accepted=False)
    return Marginal(
        parts=(*parts, resampled),
        accepted=tuple(part.sum() for part in parts),
        reached=(1,) * candidates,
        paths=paths,
        unexplored=0 * rejected,
        carriers=carrier,
        rounding=rounding_bound(size, candidates, target),
    ).normalised()


def accept_rows(rule: SequentialRule, stage: Stage) -> Array:
    """``rule.accept`` for every path of ``stage``, checked to be a probability."""
    if rule.batched:
        rows = rule.accept(stage)
    else:
        rows = np.stack([rule.accept(_path(stage, row)) for row in range(stage.residual.shape[0])])
    if rows.shape != stage.residual.shape:
        raise InputError(
            f"rule {rule.name!r}: accept returned shape {rows.shape} for residuals {stage.residual.shape}"
        )
    low, high = rows < 0, rows > 1
    if not is_rational(rows):
        low, high = ~(rows >= 0), rows > 1 + 16 * np.finfo(np.float64).eps
    for wrong in (low, high):
        if wrong.any():
            row, token = (int(found[0]) for found in np.nonzero(wrong))
            raise InputError(
                f"rule {rule.name!r}: accept returned {rows[row, token]} for token {token} at candidate "
                f"{stage.index + 1}; it must be a probability"
            )
    return rows if is_rational(rows) else np.minimum(rows, 1.0)


def reject_rows(rule: SequentialRule, stage: Stage, row: Array, token: Array) -> Array:
    """The residual of every (path, rejected token), checked to be a law."""
    if row.size == 0:
        return np.empty((0, stage.residual.shape[1]), dtype=stage.residual.dtype)
    picked = Stage(
        stage.target[row], stage.draft[row], stage.residual[row], stage.index, stage.candidates, stage.plan
    )
    if rule.batched:
        rows = rule.reject(picked, token)
    else:
        rows = np.stack([rule.reject(_path(picked, i), token[i]) for i in range(row.size)])
    total = rows.sum(axis=1)
    allowed = 0 if is_rational(rows) else (16 + 2 * np.log2(rows.shape[1])) * np.finfo(np.float64).eps
    wrong = (np.abs(total - 1) > allowed) | (rows < 0).any(axis=1)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(
            f"rule {rule.name!r}: after rejecting token {int(token[first])} at candidate {stage.index + 1} the "
            f"residual sums to {total[first]} with smallest entry {rows[first].min()}; it must be a law"
        )
    return rows


def _heaviest(weight: Array, count: int) -> tuple[Array, Array]:
    """The places of the ``count`` largest weights, largest first, and those of the others in any order.

    Which of equal weights at the cut are kept may differ between kinds of CPU: no bound depends on it.
    """
    by_weight = np.argsort(-weight) if is_rational(weight) else np.argpartition(-weight, count - 1)
    keep, dropped = by_weight[:count], by_weight[count:]
    return keep[np.argsort(-weight[keep], kind="stable")], dropped


def _check_token_free(rule: SequentialRule, residuals: Array) -> None:
    """Refuse a false ``residual_uses_token = False`` (seen at the heaviest and the lightest rejection)."""
    if not np.array_equal(residuals[0], residuals[1]):
        raise InputError(
            f"rule {rule.name!r} declares residual_uses_token = False, but two rejected tokens gave two different "
            "residuals; remove the declaration"
        )


def _path(stage: Stage, row: int) -> Stage:
    return Stage(
        stage.target[row], stage.draft[row], stage.residual[row], stage.index, stage.candidates, stage.plan
    )


def conditional_acceptance(marginal: Marginal) -> Array:
    """Acceptance of candidate i given that it is looked at (Figure 1 of the paper); 0 where it never is."""
    return divide(np.array(marginal.accepted), np.array(marginal.reached))

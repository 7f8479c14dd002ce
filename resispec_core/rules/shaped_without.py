"""Residual shaping for candidates drawn without replacement: the best sequential rule for two of them.

Derivation: proofs/without_replacement.md; proofs: proofs/formal/without.v.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from resispec_core.arrays import (
    Array,
    divide,
    is_rational,
    normalise,
    positive_part,
    sum_of_others,
    without,
    zeros,
)
from resispec_core.rules.base import SequentialRule, Stage, acceptance_ratio

MAX_STEPS = 200
SMALLEST_REST = 2.0**-900
"""A float draft law with less than this beside its heaviest token is not shaped: 1/(1 − q) would overflow."""


class Pair(NamedTuple):
    """How two candidates share the target: arrays of shape (V,)."""

    refused: Array
    """m(x), the probability that x is drawn first and rejected."""
    second: Array
    """b(y), the probability of accepting y as second candidate, whichever token was rejected first."""
    rest: Array
    """f, the law of the token after both were rejected."""


class ShapedWithoutReplacement(SequentialRule):
    """Looks ahead to one more candidate: over-drafted tokens wait for it, scarce ones are accepted at once.

    Let D be the law of the candidate at hand, m(x) the mass of a rejection at x and v(x) = m(x)/(1 − D(x)). The next
    candidate is y with mass D(y)·Σ_{x≠y} v(x). So at most D(y)(1 + μ) − v(y) of both can be accepted at y,
    μ = Σ v, and the best choice is

        v = clip(D·(1 + μ) − R, (D − R)+/(1 − D), D/(1 − D)),   μ the largest root of μ = Σ v.

    After rejecting x the residual is b·D_x + (1 − Σ b·D_x)·f with D_x the next draft law: it depends on x only
    through D_x, as exactness forces. The last candidate is accepted with min(1, R/D).

    Exact for candidates drawn without replacement; for n = 2 no sequential rule accepts more, so never less than
    ``specinfer``; for n > 2 each stage looks one candidate ahead. Any v within its bounds is exact; only
    acceptance depends on how close μ is (proofs/formal: ``look_ahead_exact``, ``shaped_without_exact``,
    ``shaped_without_acceptance`` and ``shaped_without_best``). Cost: O(V) for each of about five steps a stage.
    """

    name = "shaped-without-replacement"
    draws: ClassVar[tuple[str, ...]] = ("without-replacement",)
    summary = "residual shaping over draws without replacement (exact)"
    batched = True
    residual_uses_token = True

    def accept(self, stage: Stage) -> Array:
        if stage.index == stage.candidates - 1:
            return acceptance_ratio(stage.residual, stage.draft)
        rows = [self._accept_row(*laws) for laws in zip(*_rows(stage), strict=True)]
        return rows[0] if stage.residual.ndim == 1 else np.stack(rows)

    def reject(self, stage: Stage, token: Array) -> Array:
        if stage.index == stage.candidates - 1:
            return normalise(positive_part(stage.residual - stage.draft), fallback=stage.residual)
        residuals, drafts = _rows(stage)
        rows, known = [], None
        for place, rejected in enumerate(np.atleast_1d(token)):
            new = known is None or not (
                np.array_equal(residuals[place], residuals[place - 1])
                and np.array_equal(drafts[place], drafts[place - 1])
            )
            if new:
                known = shape_pair(residuals[place], drafts[place])
            rows.append(_owed(known, residuals[place], drafts[place], rejected))
        return rows[0] if stage.residual.ndim == 1 else np.stack(rows)

    def _accept_row(self, residual: Array, draft: Array) -> Array:
        pair = shape_pair(residual, draft)
        if pair is None:
            return acceptance_ratio(residual, draft)
        return np.where(
            draft > 0,
            divide(positive_part(draft - pair.refused), draft),
            acceptance_ratio(residual, draft),
        )


def shape_pair(target: Array, draft: Array) -> Pair | None:
    """The best plan for two candidates drawn from ``draft`` without replacement; None where there is no second."""
    others = sum_of_others(draft)
    if np.min(others) <= (0 if is_rational(draft) else SMALLEST_REST):
        return None
    least, most = positive_part(draft - target), draft
    load = _largest_root(target, draft, least / others, most / others)
    refused = np.clip((draft * (1 + load) - target) * others, least, most)
    drawn_second = draft * sum_of_others(refused / others)
    owed = positive_part(target - (draft - refused))
    second = np.minimum(divide(owed, drawn_second), 1)
    left = positive_part(owed - second * drawn_second)
    return Pair(refused, second, normalise(left, fallback=target))


def _owed(pair: Pair | None, target: Array, draft: Array, token: Any) -> Array:
    if pair is None:
        return normalise(positive_part(target - draft), fallback=target)
    nothing = zeros(draft.size, like=draft)
    taken = pair.second * normalise(without(draft, token), fallback=nothing)
    # Normalised since Σ f = 1 only to a few eps in floats.
    return normalise(taken + positive_part(1 - taken.sum()) * pair.rest, fallback=target)


def _largest_root(target: Array, draft: Array, least: Array, most: Array) -> Any:
    """The largest μ with μ = Σ clip(q(1 + μ) − p, least, most), as far as the number system allows.

    μ − Σ clip is non-decreasing and piecewise linear: Newton from the right, kept inside a bracket by bisection.
    """
    low, high = 0 * most.sum(), most.sum()
    guess = high
    for _ in range(MAX_STEPS):
        wanted = draft * (1 + guess) - target
        value = guess - np.clip(wanted, least, most).sum()
        if value >= 0:
            high = guess
        else:
            low = guess
        if value == 0:
            break
        slope = draft[(wanted <= least) | (wanted > most)].sum()
        guess = guess - value / slope if slope > 0 else low
        if not low < guess < high:
            guess = (low + high) / 2
        if guess in (low, high) or (not is_rational(draft) and high - low <= 4 * np.spacing(high)):
            break
    return high


def _rows(stage: Stage) -> tuple[Array, Array]:
    """Residuals and draft laws as (paths, V)."""
    residual = np.atleast_2d(stage.residual)
    return residual, np.broadcast_to(stage.draft, residual.shape)

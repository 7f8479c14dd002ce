"""Two candidates drawn without replacement, at any vocabulary size, in O(V log V).

After rejecting x the next draft law is λ_x·q off x, λ_x = 1/(1 − q(x)), so the rejected token enters through one scalar
and a hole that costs nothing: recursive rejection owes nothing at a rejected token. Derivation:
docs/closed_forms.md; tested against full enumeration in rationals.
"""

from __future__ import annotations

import numpy as np

from resispec_core.arrays import (
    Array,
    divide,
    is_rational,
    normalise,
    positive_part,
    sum_of_others,
    sums_before,
    sums_from,
)
from resispec_core.audit.closed_form import prefix_rounding
from resispec_core.audit.marginal import Marginal, rounding_bound
from resispec_core.rules.base import Rule
from resispec_core.rules.shaped_without import SMALLEST_REST, ShapedWithoutReplacement, shape_pair
from resispec_core.rules.specinfer import SpecInfer


def pair_marginal(rule: Rule, target: Array, draft: Array) -> Marginal | None:
    """The law of ``rule`` on two candidates drawn without replacement; None for rules without such a form.

    For ``specinfer`` and ``shaped-without-replacement`` themselves, not their subclasses.
    """
    if np.min(sum_of_others(draft)) <= (0 if is_rational(draft) else SMALLEST_REST):
        return None
    if type(rule) is SpecInfer:
        refused, second, resampled = _recursive(target, draft)
    elif type(rule) is ShapedWithoutReplacement:
        refused, second, resampled = _shaped(target, draft)
    else:
        return None
    first = positive_part(draft - refused)
    return Marginal(
        parts=(first, second, resampled),
        accepted=(first.sum(), second.sum()),
        reached=(1, refused.sum()),
        paths=int(np.count_nonzero(first)) + 2 * int(np.count_nonzero(refused)),
        unexplored=0 * first[0],
        carriers=None,
        rounding=rounding_bound(target.size, 2, target) + prefix_rounding(target.size, target),
    ).normalised()


def _shaped(target: Array, draft: Array) -> tuple[Array, Array, Array]:
    """The acceptance of a second candidate and the last law do not depend on the token rejected first."""
    pair = shape_pair(target, draft)
    assert pair is not None
    second = pair.second * draft * sum_of_others(pair.refused / sum_of_others(draft))
    return pair.refused, second, positive_part(pair.refused.sum() - second.sum()) * pair.rest


def _recursive(target: Array, draft: Array) -> tuple[Array, Array, Array]:
    """Sums over the rejected x, sorted by λ: ``min(λ_x q, R)`` and ``(R − λ_x q)+`` split at λ_x = R(y)/q(y)."""
    refused = positive_part(draft - target)
    residual = normalise(positive_part(target - draft), fallback=target)
    tokens = np.flatnonzero(refused > 0)
    level = 1 / sum_of_others(draft)[tokens]
    order = np.argsort(level)
    level, weight = level[order], refused[tokens][order]
    drafted = draft > 0
    ratio = divide(residual, draft)
    # Of every x: what its second candidate accepts, and the mass of (R − λ_x q)+ by a sum of its own.
    by_ratio = np.flatnonzero(drafted)[np.argsort(ratio[drafted])]
    r_below = sums_before(residual[by_ratio])
    q_above, r_above = sums_from(draft[by_ratio]), sums_from(residual[by_ratio])
    place = np.searchsorted(ratio[by_ratio], level, side="right")
    kept = r_below[place] + level * q_above[place]
    left = positive_part(r_above[place] - level * q_above[place]) + residual[~drafted].sum()
    share = weight * divide(positive_part(1 - kept), left)
    # Of every y: the sums over x on either side of its ratio.
    split = np.searchsorted(level, ratio, side="right")
    split = np.where(drafted, split, level.size)
    second = draft * sums_before(weight * level)[split] + residual * sums_from(weight)[split]
    second = np.where(drafted, second, 0 * second)
    resampled = residual * sums_before(share)[split] - draft * sums_before(share * level)[split]
    return refused, second, positive_part(resampled)

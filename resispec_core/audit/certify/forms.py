"""Laws, or certified lower bounds on them, from the structure of a rule: no enumeration of V^n paths."""

from __future__ import annotations

import numpy as np

from resispec_core.arrays import Array, is_rational
from resispec_core.audit.certify.published import published_parts
from resispec_core.audit.certify.row import row_of
from resispec_core.audit.certify.states import Budget
from resispec_core.audit.closed_form import prefix_rounding
from resispec_core.audit.marginal import Marginal, rounding_bound
from resispec_core.drafts import DrawMode
from resispec_core.rules.base import Rule, SetRule
from resispec_core.rules.resispec import ResiSpec


def has_published_form(rule: Rule, target: Array, drawn_as: DrawMode, assumed: DrawMode) -> bool:
    """Whether ``published_marginal`` is about this rule: ResiSpec itself, budget ``local``, i.i.d., float64."""
    return (
        type(rule) is ResiSpec
        and rule.budget == "local"
        and drawn_as.name == assumed.name == "iid"
        and not is_rational(target)
    )


def published_marginal(
    rule: ResiSpec,
    target: Array,
    draft: Array,
    candidates: int,
    budget: Budget,
    heavy: Marginal | None = None,
) -> Marginal:
    """The law of the published rule, entry by entry at least; what it lacks to 1 is ``unexplored``.

    ``heavy``: the sum over some of the paths; the larger of the two bounds is taken part by part. For n ≤ 3 the
    acceptances and, for ``proportional`` and ``waterfill``, the resample are bounded (docs/certified.md); for n > 3
    the first three acceptances.
    """
    row = row_of(target, draft)
    found, terms = published_parts(row, candidates, rule.redistribution, budget)
    parts = [np.zeros(target.size) for _ in range(candidates + 1)]
    for part, bound in zip(parts, found, strict=False):
        part[row.tokens] = bound
    if heavy is not None:
        parts = [np.maximum(ours, theirs) for ours, theirs in zip(parts, heavy.parts, strict=True)]
    accepted = [float(part.sum()) for part in parts[:-1]]
    reached = [1.0, 1 - accepted[0], 1 - sum(accepted[:2])]
    reached += [0.0] * (candidates - 3) if heavy is None else heavy.reached[3:]
    rounding = published_rounding(terms, candidates)
    unexplored = max(1 - sum(accepted) - float(parts[-1].sum()), 0.0)
    return Marginal(
        parts=tuple(parts),
        accepted=tuple(accepted),
        reached=tuple(reached[:candidates]),
        paths=terms if heavy is None else heavy.paths,
        unexplored=unexplored if unexplored > rounding else 0.0,
        carriers=None if heavy is None else heavy.carriers,
        rounding=rounding,
    )


def published_rounding(terms: int, candidates: int) -> float:
    """What float64 can do to the two ends of the bracket, each, when ``terms`` numbers were summed.

    Every number of a ``Spread`` is a sum of at most ``terms`` terms of one sign and a running sum over it, so off by
    terms·eps of itself. Before the holes are taken out they add up to at most T = 1 + 3 + … + 3^n, since a rejection
    passes on shares that sum to at most 3 (docs/certified.md). Twice T·terms·eps because the upper end moves by the
    error of the excess and by that of the sum, and twice again for the products around them.
    """
    total = (3 ** (min(candidates, 3) + 1) - 1) // 2
    return float(4 * total * terms * np.finfo(np.float64).eps)


def selected_marginal(
    rule: Rule, target: Array, draft: Array, candidates: int, drawn_as: DrawMode, assumed: DrawMode
) -> Marginal | None:
    """A set rule whose selection law is known: accept or resample once.

    Such a rule ignores the order of the candidates, so the acceptance of each is an equal share of the whole, as
    if they had been shuffled; drawn independently they are exchangeable anyway.
    """
    if not isinstance(rule, SetRule) or drawn_as is not assumed or drawn_as.name != rule.draws[0]:
        return None
    plan = rule.plan(target, draft, candidates)
    chosen = rule.selected_law(plan)
    if chosen is None:
        return None
    taken = chosen * rule.accept(plan)
    resampled = (chosen.sum() - taken.sum()) * rule.residual(plan)
    return Marginal(
        parts=(*[taken / candidates] * candidates, resampled),
        accepted=(taken.sum() / candidates,) * candidates,
        reached=(1,) * candidates,
        paths=2 * int(np.count_nonzero(chosen > 0)),
        unexplored=0 * taken[0],
        carriers=None,
        # The sets cover [0, 1] to V·eps, and the largest of n priorities sees that n times.
        rounding=rounding_bound(target.size, candidates, target)
        + candidates * prefix_rounding(target.size, target),
    ).normalised()

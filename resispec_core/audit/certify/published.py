"""The published rule with up to three i.i.d. candidates at any vocabulary size. Derivation: docs/certified.md.

A path that was rejected at x₁ … x_k owes a mass that is a combination of min(W_j·q, p), j ≤ k, and of p, with holes at
the rejected tokens; W_j is the probability of its first j rejections. So every sum over paths is a ``Spread``.
What a candidate adds to the law is a lower bound entry by entry; what is missing from 1 is the width.
"""

from __future__ import annotations

import numpy as np

from resispec_core.arrays import Array
from resispec_core.audit.certify.row import Row
from resispec_core.audit.certify.spread import Spread
from resispec_core.audit.certify.states import Budget, First, Pairs, Tail, first_states, pair_states
from resispec_core.audit.certify.third import third_resample


def published_parts(
    row: Row, candidates: int, redistribution: str, budget: Budget
) -> tuple[list[Array], int]:
    """Lower bounds on what candidates 1, 2, … and the final resample put on each token of ``row``: (K,) each.

    Exact but for rounding: the first two acceptances; the resample at n = 1 (not for ``uniform``); more as the
    budget allows. Parts that have no bound here (from the fourth candidate on) are left out. The second value is
    the number of terms summed, for the rounding bound.
    """
    parts = [np.minimum(row.target, row.draft)[:-1]]
    first = first_states(row, redistribution)
    if candidates == 1:
        return [*parts, _first_resample(row, first)], row.tokens.size
    parts.append(_second_acceptance(row, first))
    pairs, tail = pair_states(row, first, redistribution, budget)
    terms = row.tokens.size + pairs.mass.size
    if candidates == 2:
        return [*parts, _second_resample(row, first, pairs, tail)], terms
    parts.append(_third_acceptance(row, pairs, tail))
    if candidates == 3:
        resampled, cells = third_resample(row, first, pairs, redistribution, budget)
        parts.append(resampled)
        terms += cells
    return parts, terms


def _first_resample(row: Row, first: First) -> Array:
    spread, found = Spread(row), first.owed
    spread.add(found.level, found.weight, found.place)
    spread.add_target(float(found.share.sum()))
    spread.add_undrafted(float(found.spill.sum()))
    spread.remove(first.tokens, first.at(row, first.tokens, first.tokens))
    return spread.law()


def _second_acceptance(row: Row, first: First) -> Array:
    """min(Z·q, p) outside the hole, whatever the redistribution."""
    spread = Spread(row)
    spread.add(first.mass, np.ones(first.mass.size))
    spread.remove(first.tokens, row.capped(first.mass, first.tokens))
    return spread.law()


def _second_resample(row: Row, first: First, pairs: Pairs, tail: Tail) -> Array:
    spread, found = Spread(row), pairs.owed
    spread.add(found.level, found.weight, found.place)
    spread.add_undrafted(float(found.spill.sum()))
    first.inherit(row, spread, pairs.x, found.share)
    for hole in (pairs.x, pairs.y):
        spread.remove(hole, pairs.at(row, first, hole))
    _add_tail(row, spread, tail)
    return spread.law()


def _third_acceptance(row: Row, pairs: Pairs, tail: Tail) -> Array:
    """min(Y·q, p) outside the holes, whatever the redistribution."""
    spread = Spread(row)
    spread.add(pairs.mass, np.ones(pairs.mass.size))
    for hole in (pairs.x, pairs.y):
        spread.remove(hole, row.capped(pairs.mass, hole))
    _add_tail(row, spread, tail)
    return spread.law()


def _add_tail(row: Row, spread: Spread, tail: Tail) -> None:
    """min(W·q, p) ≥ (W/L)·min(L·q, p) for W ≤ L, by concavity: only the sum of the W is needed."""
    if tail.mass > 0:
        spread.add(np.array([tail.largest]), np.array([tail.mass / tail.largest]))
        tokens = np.flatnonzero(tail.through)
        spread.remove(tokens, tail.through[tokens] / tail.largest * row.capped(tail.largest, tokens))

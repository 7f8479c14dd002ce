"""The largest acceptance probability that any exact verifier can reach: an oracle no rule can beat."""

from __future__ import annotations

from typing import Any

import numpy as np

from resispec_core.arrays import Array, divide, is_rational, one, sums_before, zeros
from resispec_core.drafts import DrawMode, top_tokens
from resispec_core.inclusion import QUADRATURE_ERROR, missing_by_prefix


def acceptance_ceiling(target: Array, draft: Array, candidates: int) -> Any:
    """``1 + min_H [p(H) − q(H)^n]`` over sets H of tokens, for n i.i.d. candidates.

    A rule that accepts more is not exact, whatever its proof says. The minimum is attained by a prefix of
    the tokens sorted by p/q ascending (H = ∅ allowed), so the cost is O(V log V); rational for rational
    laws, else within V·eps of the exact value.

    Source: SpecTr (2310.15141); Hu et al. (2502.18779); Khisti et al. (2410.18234). Formal proof of the
    bound: proofs/formal.
    """
    return 1 + prefix_gap(target, draft, candidates)[0]


def prefix_gap(target: Array, draft: Array, candidates: int) -> tuple[Any, Array]:
    """``min_H [p(H) − q(H)^n]`` (0 for the empty set) and the tokens of the first minimiser H, ρ ascending."""
    order = _by_ratio(target, draft)
    p_mass = np.cumsum(target[order])
    q_mass = np.cumsum(draft[order])
    gaps = np.concatenate([zeros(1, like=target), p_mass - q_mass**candidates])
    best = int(np.argmin(gaps))
    return gaps[best], order[:best]


def without_replacement_ceiling(target: Array, draft: Array, candidates: int) -> Any | None:
    """``min_H [p(H) + P(some candidate outside H)]`` for n candidates drawn without replacement.

    An upper bound for any H (proofs/formal: ``ceiling_any_draft``); the least of them is reached by some verifier
    (max-flow min-cut), and a prefix of the tokens by p/q attains it (proofs/without_replacement.md). Rational for
    rational laws, None where their sum is too long (``inclusion.SETS``). In floats rounded up by the quadrature's
    error bound, so that it stays a bound; V·eps of rounding comes on top. Cost: O(V log V) for n ≤ 2, else about a
    hundred passes over the row.
    """
    order = _by_ratio(target, draft)
    missing = missing_by_prefix(draft[order], candidates)
    if missing is None:
        return None
    p_mass = sums_before(target[order])
    margin = 0 if is_rational(target) or candidates <= 2 else QUADRATURE_ERROR
    return min((p_mass + missing).min() + margin, one(target))


def _by_ratio(target: Array, draft: Array) -> Array:
    """The drafted tokens, p/q ascending."""
    drafted = np.flatnonzero(draft > 0)
    return drafted[np.argsort(divide(target[drafted], draft[drafted]))]


def ceiling(target: Array, draft: Array, candidates: int, mode: DrawMode) -> Any | None:
    """The acceptance ceiling for candidates drawn by ``mode``; None where its sum is too long.

    Deterministic candidates S: p(S). Greedy draft, S the n − 1 most likely tokens and q' the law of the
    sampled one: p(S) + Σ min(p, q') (every H without S gives no better bound; Hu et al. 2502.18779).
    """
    if mode.name == "iid":
        return acceptance_ceiling(target, draft, candidates)
    if mode.name == "without-replacement":
        return without_replacement_ceiling(target, draft, candidates)
    if mode.name == "top-k":
        return target[top_tokens(draft, candidates)].sum()
    if mode.name == "greedy":
        sampled = mode.conditional(draft, np.empty(0, dtype=int), candidates)
        return target[top_tokens(draft, candidates - 1)].sum() + np.minimum(target, sampled).sum()
    return None

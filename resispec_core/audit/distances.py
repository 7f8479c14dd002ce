"""Distances between an output law and the target law, so that none can mislead alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from resispec_core.arrays import Array, as_float


def total_variation(law: Array, target: Array) -> Any:
    """``½ Σ|law − target|``; a ``Fraction`` where the laws are rational."""
    return np.abs(law - target).sum() / 2


def kl_divergence(first: Array, second: Array) -> float:
    """``Σ first·log(first/second)`` in nats; infinite where second = 0 < first; exactly 0.0 for equal laws.

    Each term is written as f·log(f/s) − (f − s), which is non-negative, with log1p((f − s)/s) for entries
    within a factor of two, so that laws that are close do not lose the result to cancellation, and
    log f − log s for the others, where a quotient could round to 0 or overflow.
    """
    if np.array_equal(first, second):
        return 0.0
    f, s = as_float(first), as_float(second)
    if np.any((f > 0) & (s == 0)):
        return math.inf
    used = (f > 0) & (s > 0)
    f_used, s_used = f[used], s[used]
    gap = as_float(first[used] - second[used])
    logs = np.log(f_used) - np.log(s_used)
    close = np.abs(gap) <= s_used / 2
    logs[close] = np.log1p(gap[close] / s_used[close])
    terms = f_used * logs - gap
    return max(0.0, float(terms.sum() + s[~used].sum()))


def chi_square(law: Array, target: Array) -> float:
    """``Σ (law − target)²/target``; infinite where the law has mass and the target none (or next to none)."""
    gap = as_float(law - target)
    p = as_float(target)
    if np.any((p == 0) & (gap != 0)):
        return math.inf
    used = p > 0
    with np.errstate(over="ignore"):
        return float((gap[used] ** 2 / p[used]).sum())


def worst_relative_error(law: Array, target: Array) -> float:
    """``max |law/target − 1|`` over the tokens; infinite where the law has mass and the target none."""
    gap = np.abs(as_float(law - target))
    p = as_float(target)
    if np.any((p == 0) & (gap != 0)):
        return math.inf
    used = p > 0
    with np.errstate(over="ignore"):
        return float((gap[used] / p[used]).max())


@dataclass(frozen=True)
class Distances:
    """All of them at once. ``total_variation`` is rational for rational laws; the rest are floats."""

    total_variation: Any
    kl: float
    """KL(target ‖ law), nats."""
    kl_reverse: float
    """KL(law ‖ target), nats."""
    chi_square: float
    worst_relative_error: float


def distances(law: Array, target: Array) -> Distances:
    """Every distance of ``law`` from ``target``; both are laws over the same vocabulary. O(V)."""
    return Distances(
        total_variation(law, target),
        kl_divergence(target, law),
        kl_divergence(law, target),
        chi_square(law, target),
        worst_relative_error(law, target),
    )

"""What an audit computes about the token a verifier returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from resispec_core.arrays import Array, is_rational
from resispec_core.audit.carriers import Carriers, Path


@dataclass(frozen=True)
class Marginal:
    """The law of the returned token, over candidates, coins and the final resample."""

    parts: tuple[Array, ...]
    """Mass put on each token by accepting candidate 1 … n and, last, by the final resample."""
    accepted: tuple[Any, ...]
    """Probability that candidate i is the one accepted, for i = 0 … n − 1."""
    reached: tuple[Any, ...]
    """Probability that candidate i is looked at."""
    paths: int
    """Accept/reject paths of positive probability that were summed."""
    unexplored: Any
    """Mass of the paths that were not followed; 0 for a complete sum."""
    carriers: Carriers | None
    """For each token the path to look at first: see ``witness``; None where no paths were listed."""
    rounding: float
    """Bound on the TV error of ``law`` from float64 arithmetic; 0.0 in rationals."""

    @property
    def law(self) -> Array:
        """Mass found on each token: the output law, less the ``unexplored`` mass."""
        return sum(self.parts[1:], self.parts[0])

    @property
    def acceptance(self) -> Any:
        """Probability that any candidate is accepted (a lower bound where mass is unexplored)."""
        return sum(self.accepted)

    def normalised(self) -> Marginal:
        """The same with NumPy scalars as plain numbers."""

        def plain(value: Any) -> Any:
            return value.item() if isinstance(value, np.generic) else value

        return replace(
            self,
            accepted=tuple(map(plain, self.accepted)),
            reached=tuple(map(plain, self.reached)),
            unexplored=plain(self.unexplored),
        )


def witness(marginal: Marginal, target: Array) -> Path | None:
    """The path to the token with the largest excess over the target; None where no token exceeds it.

    Of the paths to that token, the heaviest of those after a rejection, unless the mass accepted at the
    first candidate alone exceeds the target: then that acceptance is the witness.
    """
    excess = marginal.law - target
    token = int(np.argmax(excess))
    if marginal.carriers is None or excess[token] <= marginal.rounding:
        return None
    return marginal.carriers[token]


def rounding_bound(size: int, candidates: int, sample: Array) -> float:
    """Bound on the total variation that float64 rounding alone puts between a computed and the true law.

    Error model: each stage forms an acceptance, a residual and a reaching probability from quantities of
    total mass ≤ 1 with at most 16 elementary roundings an entry and two pairwise sums over V; each is off by
    at most ``(16 + 2 log2 V)·eps`` in total mass, and n candidates, the final resample and the comparison
    with the target make n + 2 such stages. Tested against rational runs of the same rules.
    """
    if is_rational(sample):
        return 0.0
    return float((candidates + 2) * (16 + 2 * np.log2(max(size, 2))) * np.finfo(np.float64).eps)

"""Verdicts, and the report of one audit. Silence is never a pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from resispec_core.arrays import Array
from resispec_core.audit.carriers import Path
from resispec_core.audit.distances import Distances


class Verdict(StrEnum):
    """What was established about the law of the returned token."""

    EXACT = "EXACT"
    """Rational arithmetic, every path, difference zero."""
    EXACT_WITHIN = "EXACT_WITHIN"
    """Every path, float64; the true total variation is at most the stated ``bound``."""
    BIASED = "BIASED"
    """The total variation is certainly at least ``total_variation_bracket[0]`` > 0."""
    LOSSY_BY_DESIGN = "LOSSY_BY_DESIGN"
    """Biased, and the rule never claimed otherwise; the distance is the result."""
    NOT_REFUTED = "NOT_REFUTED"
    """Statistics only: no bias found above the stated size at the stated error rate."""
    INCONCLUSIVE = "INCONCLUSIVE"
    """The budget ended before either was certain; the unexplored mass is stated."""


EXIT_CODES = {
    Verdict.EXACT: 0,
    Verdict.EXACT_WITHIN: 0,
    Verdict.LOSSY_BY_DESIGN: 0,
    Verdict.BIASED: 1,
    Verdict.NOT_REFUTED: 3,
    Verdict.INCONCLUSIVE: 3,
}


def decide(low: Any, high: Any, *, complete: bool, rounding: float, lossy: bool) -> Verdict:
    """The verdict for a true total variation known to lie in [low, high].

    ``rounding``: 0.0 where arithmetic was exact. ``complete``: no path was left out.
    """
    if low > 0:
        return Verdict.LOSSY_BY_DESIGN if lossy else Verdict.BIASED
    if not complete:
        return Verdict.INCONCLUSIVE
    if rounding == 0:
        return Verdict.EXACT if high == 0 else Verdict.INCONCLUSIVE
    return Verdict.EXACT_WITHIN


@dataclass(frozen=True)
class AuditReport:
    """What one audit of a rule on one pair of laws established.

    Exactness (``verdict`` to ``witness``), acceptance (``acceptance`` to ``acceptance_by_candidate``) and cost
    (``paths``, ``method``) answer separate questions. Numbers are ``Fraction`` for rational laws. With
    ``unexplored`` > 0 the law and the acceptances are lower bounds entry by entry.
    """

    rule: str
    draw: str
    candidates: int
    vocabulary: int
    verdict: Verdict
    bound: Any
    """The true total variation is at most this (1 where nothing is known)."""
    total_variation: Any
    """TV(law, target); where mass is unexplored, the certified lower bound."""
    total_variation_bracket: tuple[Any, Any]
    law: Array
    distances: Distances | None
    """None where mass is unexplored: only a bracket of the total variation is known."""
    witness: Path | None
    paper_check_kl: float | None
    acceptance: Any
    ceiling: Any | None
    """Largest acceptance of any exact verifier under these draws; None where no closed form is known."""
    acceptance_by_candidate: tuple[Any, ...]
    """Probability that candidate i is the one accepted; they sum to ``acceptance``."""
    conditional_acceptance: tuple[Any, ...]
    """Probability that candidate i is accepted given that it is looked at."""
    paths: int
    method: str
    unexplored: Any
    rounding: float
    mismatched: bool

    @property
    def above_ceiling(self) -> bool:
        """True where the rule accepts more than any exact verifier can (beyond rounding)."""
        return self.ceiling is not None and bool(self.acceptance - self.ceiling > self.rounding)

    @property
    def exit_code(self) -> int:
        """0 exact, within a bound, or lossy by design; 1 biased; 3 inconclusive."""
        return EXIT_CODES[self.verdict]

    def to_json(self, *, with_law: bool = True) -> dict[str, Any]:
        """A JSON-ready dictionary; rationals become strings ``"a/b"``, infinities ``"inf"``."""
        gaps = self.distances
        data: dict[str, Any] = {
            "rule": self.rule,
            "draw": self.draw,
            "mismatched_draw": self.mismatched,
            "candidates": self.candidates,
            "vocabulary": self.vocabulary,
            "verdict": self.verdict.value,
            "bound": plain(self.bound),
            "total_variation": plain(self.total_variation),
            "total_variation_bracket": [plain(end) for end in self.total_variation_bracket],
            "kl": None if gaps is None else plain(gaps.kl),
            "kl_reverse": None if gaps is None else plain(gaps.kl_reverse),
            "chi_square": None if gaps is None else plain(gaps.chi_square),
            "worst_relative_error": None if gaps is None else plain(gaps.worst_relative_error),
            "acceptance": plain(self.acceptance),
            "ceiling": plain(self.ceiling),
            "above_ceiling": self.above_ceiling,
            "acceptance_by_candidate": [plain(value) for value in self.acceptance_by_candidate],
            "conditional_acceptance": [plain(value) for value in self.conditional_acceptance],
            "paths": self.paths,
            "method": self.method,
            "unexplored": plain(self.unexplored),
            "rounding": self.rounding,
            "witness": None if self.witness is None else path_to_json(self.witness),
            "paper_check_kl": plain(self.paper_check_kl),
        }
        if with_law:
            data["law"] = [plain(value) for value in self.law]
        return data


def path_to_json(path: Path) -> dict[str, Any]:
    """A path as a JSON-ready dictionary."""
    return {
        "token": path.token,
        "rejected": list(path.rejected),
        "ends": "accepted" if path.accepted else "resampled",
        "mass": plain(path.mass),
    }


def plain(value: Any) -> Any:
    """``value`` as JSON can hold it: "a/b" for rationals, "inf" for infinities."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value

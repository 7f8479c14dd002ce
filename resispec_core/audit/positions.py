"""One rule audited over many positions: totals, with exactness and acceptance kept apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resispec_core.arrays import divide, sums_before
from resispec_core.audit.verdict import EXIT_CODES, AuditReport, Verdict, plain
from resispec_core.errors import InputError

_WORST_FIRST = (
    Verdict.BIASED,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_REFUTED,
    Verdict.LOSSY_BY_DESIGN,
    Verdict.EXACT_WITHIN,
    Verdict.EXACT,
)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that decides for all of them: a bias found anywhere outweighs whatever is still open."""
    return min(verdicts, key=_WORST_FIRST.index)


@dataclass(frozen=True)
class PositionsSummary:
    """Totals over the reports of one rule at one setting."""

    verdict: Verdict
    """The worst of the positions' verdicts."""
    verdicts: dict[str, int]
    positions: int
    bound: float
    """No position's total variation is above this."""
    mean_total_variation: float
    """Mean of the certified lower ends where a position's law is bracketed."""
    max_total_variation: float
    mean_acceptance: float
    mean_ceiling: float | None
    positions_above_ceiling: int
    acceptance_by_candidate: tuple[float, ...]
    """Mean probability that candidate i is the one accepted."""
    conditional_acceptance: tuple[float, ...]
    """Mean acceptance of candidate i over mean reaching it: the paper's acceptance by candidate index."""
    max_unexplored: float

    @property
    def exit_code(self) -> int:
        """As for a single report."""
        return EXIT_CODES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "verdict": self.verdict.value,
            "verdicts": self.verdicts,
            "positions_audited": self.positions,
            "bound": self.bound,
            "means": {
                "total_variation": self.mean_total_variation,
                "acceptance": self.mean_acceptance,
                "ceiling": plain(self.mean_ceiling),
                "acceptance_by_candidate": list(self.acceptance_by_candidate),
                "conditional_acceptance": list(self.conditional_acceptance),
            },
            "max_total_variation": self.max_total_variation,
            "max_unexplored": self.max_unexplored,
            "positions_above_ceiling": self.positions_above_ceiling,
        }


def summarise(reports: Sequence[AuditReport]) -> PositionsSummary:
    """Totals over ``reports``, which must be of one rule and one number of candidates, and not empty."""
    if not reports:
        raise InputError("no position was audited; there is nothing to summarise")
    counted = Counter(report.verdict for report in reports)
    accepted = np.array([[float(x) for x in r.acceptance_by_candidate] for r in reports]).mean(axis=0)
    reached = 1 - sums_before(accepted)[:-1]
    ceilings = [report.ceiling for report in reports]
    return PositionsSummary(
        verdict=worst(counted),
        verdicts={verdict.value: counted[verdict] for verdict in _WORST_FIRST if counted[verdict]},
        positions=len(reports),
        bound=max(float(report.bound) for report in reports),
        mean_total_variation=_mean(report.total_variation for report in reports),
        max_total_variation=max(float(report.total_variation) for report in reports),
        mean_acceptance=_mean(report.acceptance for report in reports),
        mean_ceiling=None if any(top is None for top in ceilings) else _mean(ceilings),
        positions_above_ceiling=sum(report.above_ceiling for report in reports),
        acceptance_by_candidate=tuple(accepted.tolist()),
        conditional_acceptance=tuple(divide(accepted, reached).tolist()),
        max_unexplored=max(float(report.unexplored) for report in reports),
    )


def _mean(values: Iterable[Any]) -> float:
    return float(np.mean([float(value) for value in values]))

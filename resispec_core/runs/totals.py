"""Totals of one rule over the positions of a run: those of ``audit.positions``, from columns instead of reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from resispec_core.arrays import divide, sums_before
from resispec_core.audit.positions import PositionsSummary, worst
from resispec_core.audit.verdict import Verdict
from resispec_core.errors import InputError
from resispec_core.runs.store import Run

COLUMNS = (
    "verdict",
    "total_variation",
    "tv_low",
    "tv_high",
    "acceptance",
    "ceiling",
    "above_ceiling",
    "unexplored",
    "rounding",
    "seconds",
)


@dataclass(frozen=True)
class RuleColumns:
    """The numbers of one rule, one entry a position in the order of ``position``.

    Memory: about 100 bytes a position.
    """

    rule: str
    position: npt.NDArray[np.int64]
    values: dict[str, npt.NDArray[Any]]
    by_candidate: npt.NDArray[np.float64]
    """(positions, n) probability that candidate i is the one accepted."""

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.values[name]

    def __len__(self) -> int:
        return len(self.position)


def rule_columns(run: Run, rule: str) -> RuleColumns:
    """The columns of one rule of a run.

    Raises InputError: the run has no such rule.
    """
    if rule not in run.labels:
        raise InputError(f"{run.path} has no rule {rule!r}; it has {', '.join(run.labels)}")
    table = run.table(("position", *COLUMNS, "acceptance_by_candidate"), rule)
    n = int(run.identity["candidates"])
    flat = table["acceptance_by_candidate"].combine_chunks().flatten().to_numpy()
    return RuleColumns(
        rule=rule,
        position=table["position"].to_numpy(),
        values={name: np.asarray(table[name].to_numpy()) for name in COLUMNS},
        by_candidate=flat.reshape(-1, n) if len(flat) else np.zeros((0, n)),
    )


def rule_totals(found: RuleColumns) -> PositionsSummary:
    """As ``audit.positions.summarise`` of the same audits; raises InputError where there is no position."""
    if len(found) == 0:
        raise InputError("no position was audited; there is nothing to summarise")
    counted = Counter(found["verdict"].tolist())
    accepted = found.by_candidate.mean(axis=0)
    reached = 1 - sums_before(accepted)[:-1]
    ceilings = found["ceiling"].astype(float)
    return PositionsSummary(
        verdict=worst(Verdict(name) for name in counted),
        verdicts={name.value: counted[name.value] for name in Verdict if counted[name.value]},
        positions=len(found),
        bound=float(found["tv_high"].max()),
        mean_total_variation=float(found["total_variation"].mean()),
        max_total_variation=float(found["total_variation"].max()),
        mean_acceptance=float(found["acceptance"].mean()),
        mean_ceiling=None if np.isnan(ceilings).any() else float(ceilings.mean()),
        positions_above_ceiling=int(found["above_ceiling"].sum()),
        acceptance_by_candidate=tuple(accepted.tolist()),
        conditional_acceptance=tuple(divide(accepted, reached).tolist()),
        max_unexplored=float(found["unexplored"].max()),
    )


def worst_positions(run: Run, found: RuleColumns, count: int) -> list[dict[str, Any]]:
    """The rows with the largest certified total variation, largest first, none of them zero; ties by position."""
    order = np.lexsort((found.position, -found["tv_low"]))[:count]
    chosen: Sequence[int] = [int(found.position[at]) for at in order if found["tv_low"][at] > 0]
    rows = {row["position"]: row for row in run.rows_of(found.rule, chosen)}
    return [rows[place] for place in chosen]

"""What changed between two runs over the same positions: two rules, or two versions of one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from resispec_core.errors import InputError
from resispec_core.llama.writer import first_difference
from resispec_core.runs.store import Run
from resispec_core.runs.totals import RuleColumns, rule_columns

Bounds = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

SIDES = ("in the first run", "in the second")


@dataclass(frozen=True)
class RuleDifference:
    """One rule of the first run beside one of the second.

    What a run knows of a quantity is an interval: [tv_low, tv_high] for the total variation, and for an acceptance the
    value found, plus what was left unexplored, give or take rounding. A quantity *changed* at a position where the two
    intervals are disjoint. Where they overlap but differ its bounds *moved*, and nothing is known to have changed.
    """

    first: str
    second: str
    position: npt.NDArray[np.int64]
    """Positions in both."""
    only_first: npt.NDArray[np.int64]
    only_second: npt.NDArray[np.int64]
    verdicts: tuple[npt.NDArray[Any], npt.NDArray[Any]]
    total_variation: tuple[Bounds, Bounds]
    acceptance: tuple[Bounds, Bounds]

    @property
    def verdict_changed(self) -> npt.NDArray[np.bool_]:
        """(positions in both,)"""
        return np.asarray(self.verdicts[0] != self.verdicts[1], dtype=np.bool_)

    @property
    def tv_change(self) -> npt.NDArray[np.int64]:
        """(positions in both,) 1 where the total variation certainly rose, −1 fell, 0 not known to have changed."""
        return _certain(*self.total_variation)

    @property
    def acceptance_change(self) -> npt.NDArray[np.int64]:
        """The same of the acceptance."""
        return _certain(*self.acceptance)

    @property
    def moved(self) -> npt.NDArray[np.bool_]:
        """(positions in both,) True where bounds differ by more than rounding, and nothing certainly changed."""
        # 1e-9 is far above every rounding bound of an audit (about 1e-13) and below any digit that is printed.
        differ = np.zeros(len(self.position), dtype=np.bool_)
        for one, other in (self.total_variation, self.acceptance):
            for end, place in zip(one, other, strict=True):
                differ |= np.abs(end - place) > 1e-9
        return differ & ~self.changed

    @property
    def changed(self) -> npt.NDArray[np.bool_]:
        """(positions in both,) True where the verdict, the total variation or the acceptance changed."""
        return self.verdict_changed | (self.tv_change != 0) | (self.acceptance_change != 0)

    @property
    def same(self) -> bool:
        """The same positions, and nothing changed at any."""
        return not (self.changed.any() or self.only_first.size or self.only_second.size)

    @property
    def transitions(self) -> dict[str, int]:
        """How many positions went from one verdict to another: ``{"EXACT_WITHIN → BIASED": 3}``."""
        at = self.verdict_changed
        pairs = zip(self.verdicts[0][at].tolist(), self.verdicts[1][at].tolist(), strict=True)
        return {f"{one} → {other}": count for (one, other), count in sorted(Counter(pairs).items())}

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary, with every changed position."""
        tv, accept = self.tv_change, self.acceptance_change
        return {
            "first": self.first,
            "second": self.second,
            "same": self.same,
            "positions_in_both": len(self.position),
            "only_first": self.only_first.tolist(),
            "only_second": self.only_second.tolist(),
            "verdict_transitions": self.transitions,
            "total_variation": _counts(tv) | _means(*self.total_variation),
            "acceptance": _counts(accept) | _means(*self.acceptance),
            "bounds_moved": int(self.moved.sum()),
            "changed": [self.at(int(place)) for place in self.changed.nonzero()[0]],
        }

    def at(self, place: int) -> dict[str, Any]:
        """One position, by its place in ``position``."""
        (first_tv, second_tv), (first, second) = self.total_variation, self.acceptance
        return {
            "position": int(self.position[place]),
            "verdicts": [str(side[place]) for side in self.verdicts],
            "total_variation": [[float(end[place]) for end in side] for side in (first_tv, second_tv)],
            "acceptance": [[float(end[place]) for end in side] for side in (first, second)],
        }

    def largest(self, count: int) -> list[int]:
        """Places in ``position`` of the largest certain changes, of either quantity, largest first."""
        gaps = np.maximum(_gap(*self.total_variation), _gap(*self.acceptance))
        gaps = np.where(self.changed, gaps, -1.0)
        order = np.lexsort((self.position, -gaps))[:count]
        return [int(place) for place in order if gaps[place] >= 0]


def settings_difference(first: Run, second: Run) -> str | None:
    """The first setting of two runs that differs, versions included; None where none does."""
    return first_difference(first.identity, second.identity, sides=SIDES)


def differences(first: Run, second: Run) -> list[RuleDifference]:
    """Rule by rule: rules of one label, or, where each run has one rule, those two whatever their labels.

    Raises InputError: the runs are over different stores, or have no rule in common.
    """
    stores = [run.identity["store"] for run in (first, second)]
    different = first_difference(stores[0], stores[1], "store", sides=SIDES)
    if different:
        raise InputError(
            f"{first.path} and {second.path} are over different positions: {different}; "
            "audit both versions on one store"
        )
    if len(first.labels) == len(second.labels) == 1:
        pairs = [(first.labels[0], second.labels[0])]
    else:
        pairs = [(label, label) for label in first.labels if label in second.labels]
    if not pairs:
        raise InputError(
            f"{first.path} ({', '.join(first.labels)}) and {second.path} ({', '.join(second.labels)}) have no rule "
            "in common; runs of one rule each are compared whatever their rules"
        )
    return [compare(rule_columns(first, one), rule_columns(second, other)) for one, other in pairs]


def compare(first: RuleColumns, second: RuleColumns) -> RuleDifference:
    """The columns of two rules, position by position."""
    both, one, other = np.intersect1d(first.position, second.position, return_indices=True)
    return RuleDifference(
        first=first.rule,
        second=second.rule,
        position=both,
        only_first=np.setdiff1d(first.position, both),
        only_second=np.setdiff1d(second.position, both),
        verdicts=(first["verdict"][one], second["verdict"][other]),
        total_variation=(
            (first["tv_low"][one], first["tv_high"][one]),
            (second["tv_low"][other], second["tv_high"][other]),
        ),
        acceptance=(_acceptance(first, one), _acceptance(second, other)),
    )


def _acceptance(found: RuleColumns, at: npt.NDArray[np.int64]) -> Bounds:
    value, rounding = found["acceptance"][at], found["rounding"][at]
    return value - rounding, value + found["unexplored"][at] + rounding


def _certain(first: Bounds, second: Bounds) -> npt.NDArray[np.int64]:
    rose, fell = second[0] > first[1], second[1] < first[0]
    return rose.astype(np.int64) - fell.astype(np.int64)


def _gap(first: Bounds, second: Bounds) -> npt.NDArray[np.float64]:
    """The least that a quantity changed by; 0 where the intervals overlap."""
    apart: npt.NDArray[np.float64] = np.maximum(second[0] - first[1], first[0] - second[1])
    return np.maximum(apart, 0.0)


def _counts(change: npt.NDArray[np.int64]) -> dict[str, int]:
    return {"rose": int((change > 0).sum()), "fell": int((change < 0).sum())}


def _means(first: Bounds, second: Bounds) -> dict[str, Any]:
    if not len(first[0]):
        return {"mean_before": None, "mean_after": None}
    return {
        "mean_before": [float(end.mean()) for end in first],
        "mean_after": [float(end.mean()) for end in second],
    }

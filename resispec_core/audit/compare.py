"""Rules side by side on the same positions: law, acceptance against the ceiling, and cost, in separate columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from resispec_core.arrays import Array
from resispec_core.audit.pair import audit
from resispec_core.audit.positions import PositionsSummary, summarise
from resispec_core.rules.base import Rule
from resispec_core.rules.registry import rule as named_rule

Pair = tuple[Array, Array]
BASELINE = "specinfer"


@dataclass(frozen=True)
class Comparison:
    """One rule with n candidates over a set of positions."""

    rule: str
    draw: str
    candidates: int
    temperature: float | None
    """Of the logits the laws came from; None for laws given as such."""
    law: PositionsSummary
    """Verdicts, distances and acceptance; see ``positions.summarise``."""
    gap_closed: float | None
    """(acceptance − SpecInfer's) / (ceiling − SpecInfer's), of the means; above 1 for a rule above the ceiling."""
    efficiency: float | None
    """Acceptance gained per candidate added since the next smaller n compared (η of the paper, a position)."""
    setup_seconds: float
    """Median time of ``plan``, seconds a position."""
    verify_seconds: float
    """Median time of one ``verify`` call on drawn candidates, its own set-up and input checks included, seconds."""

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "rule": self.rule,
            "draw": self.draw,
            "candidates": self.candidates,
            "temperature": self.temperature,
            **self.law.to_json(),
            "gap_closed": self.gap_closed,
            "efficiency": self.efficiency,
            "setup_seconds": self.setup_seconds,
            "verify_seconds": self.verify_seconds,
        }


def compare(
    rules: Sequence[Rule | str],
    pairs: Iterable[Pair],
    candidates: Sequence[int] = (1, 2, 3),
    *,
    temperature: float | None = None,
    seed: int = 0,
) -> list[Comparison]:
    """Every rule at every n over ``pairs`` of laws, each audited as ``audit`` does.

    SpecInfer is audited beside them for the gap, whether it is among ``rules`` or not. Times are wall times on
    this machine, with candidates drawn by ``seed``; compare them within one run only. They are Python times of the
    reference, not of an engine. Cost: one audit a rule, n and pair.
    """
    kept = list(pairs)
    rows = [
        measure(named_rule(rule), kept, n, temperature=temperature, seed=seed)
        for rule in rules
        for n in candidates
    ]
    return relate(rows, baselines(kept, candidates))


def measure(
    rule: Rule, pairs: Sequence[Pair], candidates: int, *, temperature: float | None = None, seed: int = 0
) -> Comparison:
    """One row, without what relates it to other rows."""
    reports, setup, verify = [], [], []
    rng = np.random.default_rng(seed)
    mode = rule.draw_mode()
    for target, draft in pairs:
        reports.append(audit(rule, target, draft, candidates))
        start = perf_counter()
        rule.plan(target, draft, candidates)
        setup.append(perf_counter() - start)
        tokens, coins = mode.sample(draft, candidates, rng), rng.random(candidates + 2).tolist()
        start = perf_counter()
        rule.verify(target, draft, tokens, coins[: rule.coins(candidates)])
        verify.append(perf_counter() - start)
    return Comparison(
        rule=rule.name,
        draw=mode.name,
        candidates=candidates,
        temperature=temperature,
        law=summarise(reports),
        gap_closed=None,
        efficiency=None,
        setup_seconds=float(np.median(setup)),
        verify_seconds=float(np.median(verify)),
    )


def baselines(pairs: Sequence[Pair], candidates: Sequence[int]) -> dict[int, float]:
    """SpecInfer's mean acceptance at each n: the lower end of the gap."""
    return {
        n: float(np.mean([float(audit(BASELINE, target, draft, n).acceptance) for target, draft in pairs]))
        for n in candidates
    }


def relate(rows: Sequence[Comparison], base: dict[int, float]) -> list[Comparison]:
    """Fill in ``gap_closed`` (i.i.d. rules only: other draws have another ceiling) and ``efficiency``."""
    return [replace(row, gap_closed=_gap(row, base), efficiency=_efficiency(row, rows)) for row in rows]


def _gap(row: Comparison, base: dict[int, float]) -> float | None:
    low, top = base[row.candidates], row.law.mean_ceiling
    # At n = 1 every exact rule can reach the ceiling: the gap is empty up to rounding, and no share of it is meant.
    if row.draw != "iid" or top is None or top - low < 1e-9:
        return None
    return (row.law.mean_acceptance - low) / (top - low)


def _efficiency(row: Comparison, rows: Iterable[Comparison]) -> float | None:
    smaller = [other for other in _alike(row, rows) if other.candidates < row.candidates]
    if not smaller:
        return None
    last = max(smaller, key=lambda other: other.candidates)
    return (row.law.mean_acceptance - last.law.mean_acceptance) / (row.candidates - last.candidates)


def _alike(row: Comparison, rows: Iterable[Comparison]) -> Iterator[Comparison]:
    for other in rows:
        if (other.rule, other.draw, other.temperature) == (row.rule, row.draw, row.temperature):
            yield other

"""The pair that shows a fault best, and the smallest one that still shows it.

Both take an ``audit(target, draft, candidates) -> report`` (any report with ``verdict`` and ``total_variation``), so
they serve the replay, the tape and the rules alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from zlib import crc32

from resispec_core.audit.replay.tables import HARD_PAIRS, fractions
from resispec_core.audit.replay.trail import RefusalError
from resispec_core.audit.verdict import Verdict
from resispec_core.errors import BudgetExceededError, InputError

Row = tuple[Fraction, ...]
Audit = Callable[[Sequence[Fraction], Sequence[Fraction], int], Any]
LARGEST_DENOMINATOR = 12


@dataclass
class Case:
    """One verification case and the report it gave."""

    target: Row
    draft: Row
    candidates: int
    report: Any

    @property
    def size(self) -> tuple[int, int, int]:
        """What shrinking makes small: V, n, then the largest denominator."""
        return (
            len(self.target),
            self.candidates,
            max(entry.denominator for entry in (*self.target, *self.draft)),
        )


def hard_cases(audit: Audit, candidates: Sequence[int] = (1, 2)) -> Iterator[Case]:
    """The suite's own pairs, audited: asymmetric, masked, opposite, one-hot and equal rows.

    Cases that the draw mode cannot serve (more candidates than the support) are left out.
    """
    for count in candidates:
        for target, draft in HARD_PAIRS:
            p, q = tuple(fractions(*target)), tuple(fractions(*draft))
            try:
                yield Case(p, q, count, audit(p, q, count))
            except (RefusalError, BudgetExceededError):
                raise
            except InputError as error:
                if "candidates is" not in str(error):
                    raise


def worsen(audit: Audit, start: Case, trials: int = 24, seed: int = 0) -> Case:
    """Hill climbing on integer weights from ``start``: the case with the largest TV that ``trials`` audits found."""
    best = start
    for trial in range(trials):
        rows: list[Row] = []
        for row in (best.target, best.draft):
            scale = max(entry.denominator for entry in row)
            key = f"{seed} {trial} {len(rows)}"
            weights = [
                max(0, round(float(entry) * scale * 2) + _change(f"{key} {place}"))
                for place, entry in enumerate(row)
            ]
            rows.append(tuple(fractions(*weights)) if any(weights) else row)
        case = _try(audit, rows[0], rows[1], best.candidates)
        if case is not None and case.report.total_variation > best.report.total_variation:
            best = case
    return best


def _change(key: str) -> int:
    """A reproducible change of one weight; hashed, because the random sources may be under control here."""
    return (-2, -1, 0, 0, 1, 2)[crc32(key.encode()) % 6]


def shrink(audit: Audit, start: Case, keep: float = 0.25) -> Case:
    """The smallest case found that is still ``BIASED`` with at least ``keep`` of the TV of ``start``.

    Fewer candidates first, then fewer tokens (a token is dropped and its mass given to the rest, or merged into a
    neighbour), then rows of small denominator. Every step is one audit; the order is fixed, so is the result.
    """
    floor = float(start.report.total_variation) * keep
    best = start
    progress = True
    while progress:
        progress = False
        for target, draft, count in _smaller(best):
            case = _try(audit, target, draft, count)
            if (
                case is not None
                and case.report.verdict is Verdict.BIASED
                and float(case.report.total_variation) >= floor
                and case.size < best.size
            ):
                best, progress = case, True
                break
    return best


def _try(audit: Audit, target: Row, draft: Row, count: int) -> Case | None:
    try:
        return Case(target, draft, count, audit(target, draft, count))
    except (InputError, BudgetExceededError):
        return None


def _smaller(case: Case) -> Iterator[tuple[Row, Row, int]]:
    p, q, n = case.target, case.draft, case.candidates
    if n > 1:
        yield p, q, n - 1
    if len(p) > 2:
        for place in range(len(p)):
            kept = [entry for index, entry in enumerate(p) if index != place]
            other = [entry for index, entry in enumerate(q) if index != place]
            if sum(kept) > 0 and sum(other) > 0:
                yield _scaled(kept), _scaled(other), n
        for place in range(len(p) - 1):
            yield _merged(p, place), _merged(q, place), n
    largest = max(entry.denominator for entry in (*p, *q))
    for denominator in range(2, min(LARGEST_DENOMINATOR, largest - 1) + 1):
        yield rounded(p, denominator), rounded(q, denominator), n
    for denominator in range(2, LARGEST_DENOMINATOR + 1):
        yield rounded(p, denominator), q, n
        yield p, rounded(q, denominator), n


def _scaled(row: Sequence[Fraction]) -> Row:
    total = sum(row, Fraction(0))
    return tuple(entry / total for entry in row)


def _merged(row: Row, place: int) -> Row:
    return (*row[:place], row[place] + row[place + 1], *row[place + 2 :])


def rounded(row: Row, denominator: int) -> Row:
    """The nearest law whose entries are multiples of 1/denominator (largest remainders; zeros stay zero)."""
    scaled = [entry * denominator for entry in row]
    whole = [int(entry) for entry in scaled]
    order = sorted(range(len(row)), key=lambda index: whole[index] - scaled[index])
    for index in order[: denominator - sum(whole)]:
        whole[index] += 1
    return tuple(Fraction(count, denominator) for count in whole)

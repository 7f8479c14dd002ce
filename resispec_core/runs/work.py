"""What a worker does: a pure function of the two rows of one position, wherever it runs."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

from resispec_core.audit.pair import audit
from resispec_core.laws import law_from_logits
from resispec_core.llama.store import Row
from resispec_core.runs.plan import Plan, versions
from resispec_core.runs.records import numbers


class OtherVersionsError(RuntimeError):
    """A worker would compute with other code than the run was begun with."""


@dataclass(frozen=True)
class Job:
    """What a worker needs beside the rows. Small: it is sent with every position."""

    plan: Plan
    versions: dict[str, str]
    name: str
    """Of the store, for messages."""


def audit_position(job: Job, place: int, target: Row, draft: Row) -> list[dict[str, Any]]:
    """``records.numbers`` of every rule of the plan at one position, in the plan's order.

    The rows come with the task, so a worker needs no access to the store.
    """
    own = versions()
    for part, wanted in job.versions.items():
        if own[part] != wanted:
            raise OtherVersionsError(f"a worker has {part} {own[part]}, the run {wanted}")
    p, q = (
        law_from_logits(row, **job.plan.shaping, name=f"{job.name}, position {place}, {side} row")
        for row, side in ((target, "target"), (draft, "draft"))
    )
    found = []
    for label, rule in zip(job.plan.labels, job.plan.own_rules, strict=True):
        start = perf_counter()
        report = audit(rule, p, q, job.plan.candidates, draw=job.plan.draw, mismatched=job.plan.mismatched)
        found.append(numbers(label, report, perf_counter() - start))
    return found

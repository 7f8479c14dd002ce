"""A row of a run: the audit of one rule at one recorded position, and where that position is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from resispec_core.audit.verdict import AuditReport
from resispec_core.llama.store import LogitsStore
from resispec_core.runs.extras import pyarrow


@lru_cache(maxsize=1)
def schema() -> Any:
    """The columns of a part, as a pyarrow schema. Probabilities and distances are float64; KL is in nats."""
    arrow = pyarrow()
    number, count, text = arrow.float64(), arrow.int64(), arrow.string()
    tokens, texts, flag = arrow.list_(arrow.int64()), arrow.list_(arrow.string()), arrow.bool_()
    return arrow.schema(
        {
            # Where: the row of the store, and what LogitsStore.positions says of it.
            "position": count,
            "rule": text,
            "prompt": count,
            "index": count,
            "context": text,
            "next_token": count,
            "next_text": text,
            # The law: the true total variation lies in [tv_low, tv_high]; distances only where every path was summed.
            "verdict": text,
            "total_variation": number,
            "tv_low": number,
            "tv_high": number,
            "kl": number,
            "kl_reverse": number,
            "chi_square": number,
            "worst_relative_error": number,
            "paper_check_kl": number,
            # Acceptance: lower bounds, each short by at most ``unexplored``.
            "acceptance": number,
            "ceiling": number,
            "above_ceiling": flag,
            "acceptance_by_candidate": arrow.list_(number),
            "conditional_acceptance": arrow.list_(number),
            "unexplored": number,
            "rounding": number,
            # How it was found, and the path to the token returned too often.
            "paths": count,
            "method": text,
            "witness_token": count,
            "witness_text": text,
            "witness_rejected": tokens,
            "witness_rejected_texts": texts,
            "witness_accepted": flag,
            "witness_mass": number,
            # Wall time of the audit where it ran: the one column that is no result.
            "seconds": number,
        }
    )


def placed(row: Mapping[str, Any], place: int, store: LogitsStore) -> dict[str, Any]:
    """A row of ``numbers`` with its position and the texts of its tokens."""
    token, rejected = row["witness_token"], row["witness_rejected"]
    return {
        "position": place,
        **asdict(store.positions[place]),
        **row,
        "witness_text": None if token is None else store.decode(token),
        "witness_rejected_texts": None if rejected is None else [store.decode(other) for other in rejected],
    }


def numbers(rule: str, report: AuditReport, seconds: float) -> dict[str, Any]:
    """The columns of a row that come from the audit alone: what a worker sends back."""
    gaps, path = report.distances, report.witness
    low, high = report.total_variation_bracket
    return {
        "rule": rule,
        "verdict": report.verdict.value,
        "total_variation": float(report.total_variation),
        "tv_low": float(low),
        "tv_high": float(high),
        "kl": None if gaps is None else float(gaps.kl),
        "kl_reverse": None if gaps is None else float(gaps.kl_reverse),
        "chi_square": None if gaps is None else float(gaps.chi_square),
        "worst_relative_error": None if gaps is None else float(gaps.worst_relative_error),
        "acceptance": float(report.acceptance),
        "ceiling": None if report.ceiling is None else float(report.ceiling),
        "above_ceiling": report.above_ceiling,
        "acceptance_by_candidate": [float(value) for value in report.acceptance_by_candidate],
        "conditional_acceptance": [float(value) for value in report.conditional_acceptance],
        "unexplored": float(report.unexplored),
        "rounding": float(report.rounding),
        "paper_check_kl": None if report.paper_check_kl is None else float(report.paper_check_kl),
        "paths": int(report.paths),
        "method": report.method,
        "witness_token": None if path is None else int(path.token),
        "witness_rejected": None if path is None else [int(token) for token in path.rejected],
        "witness_accepted": None if path is None else bool(path.accepted),
        "witness_mass": None if path is None else float(path.mass),
        "seconds": seconds,
    }

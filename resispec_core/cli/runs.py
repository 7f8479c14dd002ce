"""`resispec audit --out RUN`: an audit that is kept, resumed and spread over workers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

from resispec_core.audit.positions import PositionsSummary, worst
from resispec_core.audit.verdict import EXIT_CODES
from resispec_core.cli.output import meter, print_json, print_tables
from resispec_core.cli.totals import totals_table
from resispec_core.errors import InputError
from resispec_core.llama.store import LogitsStore, sample_store
from resispec_core.runs.plan import Plan
from resispec_core.runs.pools import Pool, dask_pool, in_process, local_pool, usable_cpus
from resispec_core.runs.run import Outcome, audit_store, open_unchecked
from resispec_core.runs.store import Run
from resispec_core.runs.totals import rule_columns, rule_totals

USAGE_ERROR, INTERRUPTED = 2, 130
PROBLEMS_SHOWN = 5
OF_RUNS = ("--out", "--workers", "--scheduler")
OPTIONS = (
    click.option(
        "--out",
        metavar="RUN",
        type=click.Path(path_type=Path),
        help="Keep the results of every position in this folder (Parquet). The same command again continues.",
    ),
    click.option(
        "--workers", type=int, help="With --out: processes to use. Default: one a CPU; 1 is this process."
    ),
    click.option(
        "--scheduler", metavar="ADDRESS", help="With --out: use the Dask cluster of this scheduler."
    ),
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of this file to a command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def audit_to_run(
    plan: Plan,
    folder: str | None,
    out: Path,
    *,
    workers: int | None,
    scheduler: str | None,
    as_json: bool,
) -> int:
    """Audit what is missing, print the totals of all that is there, and return the exit status."""
    store: LogitsStore = sample_store() if folder is None else open_unchecked(folder)
    with _pool(workers, scheduler) as pool, meter("audit", quiet=as_json) as tell:
        outcome = audit_store(store, plan, out, pool, tell=tell)
    run = Run.open(out)
    found = {label: rule_totals(rule_columns(run, label)) for label in run.labels} if outcome.done else {}
    if as_json:
        print_json(_json(outcome, found))
    else:
        print_tables(
            totals_table(f"{label}, n = {plan.candidates}: {_audited(outcome)}", total)
            for label, total in found.items()
        )
    for problem in outcome.problems[:PROBLEMS_SHOWN]:
        click.echo(f"resispec: {problem['place']}, not audited: {problem['error']}", err=True)
    if not outcome.complete:
        more = f"; all problems are in {run.path / 'problems.json'}" if outcome.problems else ""
        why = "interrupted" if outcome.interrupted else "incomplete"
        left = outcome.positions - outcome.done
        click.echo(
            f"resispec: {why}: {left} of {outcome.positions} positions are missing from {out}; "
            f"run the same command again to continue{more}",
            err=True,
        )
    if outcome.interrupted:
        return INTERRUPTED
    if not outcome.complete:
        return USAGE_ERROR
    return EXIT_CODES[worst(total.verdict for total in found.values())]


def _pool(workers: int | None, scheduler: str | None) -> AbstractContextManager[Pool]:
    if scheduler is not None:
        if workers is not None:
            raise InputError("--workers and --scheduler exclude each other: the cluster has its own workers")
        return dask_pool(scheduler)
    count = usable_cpus() if workers is None else workers
    return in_process() if count == 1 else local_pool(count)


def _audited(outcome: Outcome) -> str:
    ended = "" if outcome.complete else ", INTERRUPTED" if outcome.interrupted else ", INCOMPLETE"
    return f"{outcome.done} of {outcome.positions} positions{ended}"


def _json(outcome: Outcome, found: dict[str, PositionsSummary]) -> dict[str, Any]:
    return {
        "run": str(outcome.path),
        "complete": outcome.complete,
        "interrupted": outcome.interrupted,
        "positions_in_store": outcome.positions,
        "positions_done": outcome.done,
        "positions_audited_now": outcome.audited,
        "problems": outcome.problems,
        "rules": {label: total.to_json() for label, total in found.items()},
    }

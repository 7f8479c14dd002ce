"""`resispec diff RUN1 RUN2`: what changed between two versions of a rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from resispec_core.cli.output import print_json, print_tables, show, table
from resispec_core.runs.difference import RuleDifference, differences, settings_difference
from resispec_core.runs.store import Run

CHANGES_SHOWN = 5


@click.command("diff")
@click.argument("first", metavar="RUN1", type=click.Path(path_type=Path))
@click.argument("second", metavar="RUN2", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every changed position.")
def diff(first: Path, second: Path, as_json: bool) -> int:
    """Say what changed between two runs of `resispec audit --out` over the same store.

    Rules of one label are compared; where each run has one rule, those two are, whatever their labels. A total
    variation or an acceptance changed where what the two runs know of it cannot both be true: the intervals are
    disjoint. A verdict changed where it is another.

    Exit status: 0 nothing changed, 1 something did, or a position is in one run only, 2 unusable.
    """
    runs = Run.open(first), Run.open(second)
    found = differences(*runs)
    settings = settings_difference(*runs)
    labels = [
        set(run.labels) - {name for item in found for name in (item.first, item.second)} for run in runs
    ]
    same = all(item.same for item in found) and not any(labels)
    if as_json:
        print_json(
            {
                "same": same,
                "first": str(first),
                "second": str(second),
                "first_setting_that_differs": settings,
                "rules_only_in_first": sorted(labels[0]),
                "rules_only_in_second": sorted(labels[1]),
                "rules": [item.to_json() for item in found],
            }
        )
        return int(not same)
    print_tables(block for item in found for block in _tables(item, runs[1]))
    for side, run in zip(labels, runs, strict=True):
        for label in sorted(side):
            click.echo(f"only in {run.path}: rule {label}")
    if settings:
        click.echo(f"first setting that differs: {settings}")
    click.echo("same: nothing is known to have changed" if same else "different")
    return int(not same)


def _tables(found: RuleDifference, run: Run) -> list[Table]:
    told = found.to_json()
    rows: list[tuple[str, Any]] = [
        ("positions in both", told["positions_in_both"]),
        ("positions in the first only", len(told["only_first"])),
        ("positions in the second only", len(told["only_second"])),
        ("verdict changed", int(found.verdict_changed.sum())),
        *((f"  {names}", count) for names, count in told["verdict_transitions"].items()),
    ]
    for name in ("total_variation", "acceptance"):
        counts = told[name]
        rows += [
            (f"{name.replace('_', ' ')} rose / fell", f"{counts['rose']} / {counts['fell']}"),
            (
                f"{name.replace('_', ' ')}, mean",
                f"{_ends(counts['mean_before'])} → {_ends(counts['mean_after'])}",
            ),
        ]
    rows.append(("only the bounds moved", told["bounds_moved"]))
    title = found.first if found.first == found.second else f"{found.first} → {found.second}"
    tables = [table(title, ("", ""), rows)]
    largest = found.largest(CHANGES_SHOWN)
    if largest:
        texts = _contexts(run, found, largest)
        tables.append(
            table(
                "",
                ("text before the largest changes", "position", "verdict", "TV", "acceptance"),
                [_change(found.at(place), texts) for place in largest],
            )
        )
    return tables


def _contexts(run: Run, found: RuleDifference, places: list[int]) -> dict[int, str]:
    rows = run.rows_of(found.second, [int(found.position[place]) for place in places])
    return {row["position"]: row["context"] for row in rows}


def _change(told: dict[str, Any], texts: dict[int, str]) -> tuple[Any, ...]:
    before, after = told["verdicts"]
    return (
        repr(texts[told["position"]][-24:]),
        told["position"],
        before if before == after else f"{before} → {after}",
        " → ".join(_ends(ends) for ends in told["total_variation"]),
        " → ".join(_ends(ends) for ends in told["acceptance"]),
    )


def _ends(ends: list[float] | None) -> str:
    """An interval as one number where its ends print alike (or are rounding)."""
    if ends is None:
        return show(None)
    low, high = (0.0 if abs(end) < 1e-9 else end for end in ends)
    return show(low) if show(low) == show(high) else f"{show(low)} to {show(high)}"

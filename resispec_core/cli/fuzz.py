"""`resispec fuzz`: hunt for inputs on which the suite itself is wrong."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import resispec_core
from resispec_core.cli.output import print_json, print_tables, table
from resispec_core.errors import InputError

INTERRUPTED = 130


@click.command()
@click.option("--minutes", type=float, default=1.0, show_default=True, help="How long, for each target.")
@click.option("--target", "names", multiple=True, metavar="NAME", help="Repeat for several. Default: all.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Default: a random one, which is printed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def fuzz(minutes: float, names: tuple[str, ...], seed: int | None, as_json: bool) -> int:
    """Fuzz the suite itself: rules, kernels, parsers of files, and this command line.

    Runs from a clone of the repository with its test requirements; the targets and the corpus are in its folder fuzz/.
    Every new failure is written there as a file, shrunk, and said at the end with the command that runs it again.
    Ctrl-C ends the run and keeps what was found.

    Exit status: 0 no failure, 1 failures, 2 unusable input, 130 interrupted.
    """
    driver, targets = _driver()
    chosen = names or tuple(targets)
    for name in chosen:
        if name not in targets:
            raise InputError(f"unknown target {name!r}; known: {', '.join(targets)}")
    if not 0 < minutes < 60 * 24 * 7:
        raise InputError(f"--minutes is {minutes}; it must be above 0, and a week at most")
    seed = secrets.randbelow(2**31) if seed is None else seed
    click.echo(f"seed {seed}", err=True)
    done: list[Any] = []
    for name in chosen:
        done.append(_run(driver, name, 60 * minutes, seed, as_json))
        if done[-1].ended == "interrupted":
            break
    if as_json:
        print_json({"seed": seed, "runs": [summary.to_json() for summary in done]})
    else:
        _say(done)
    if done[-1].ended == "interrupted":
        return INTERRUPTED
    return int(any(summary.failures for summary in done))


def _driver() -> tuple[Any, dict[str, str]]:
    """The driver beside this package: the fuzzer is part of the repository, not of the wheel."""
    root = Path(resispec_core.__file__).parents[1]
    if not (root / "fuzz" / "driver.py").is_file():
        raise InputError(
            "the fuzzer is not part of the installed package; run this command from a clone of the repository"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        from fuzz import driver  # type: ignore[import-not-found, unused-ignore]
        from fuzz.target import TARGETS  # type: ignore[import-not-found, unused-ignore]
    except ModuleNotFoundError as error:
        raise InputError(f"the fuzzer needs {error.name}; pip install -e '.[test]' in the clone") from None
    return driver, TARGETS


def _run(driver: Any, name: str, seconds: float, seed: int, quiet: bool) -> Any:
    screen = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), TextColumn("{task.fields[found]}"),
        console=screen, transient=True, disable=quiet or not screen.is_terminal,
    )  # fmt: skip
    with bar:
        task = bar.add_task(name, total=seconds, found="")

        def report(summary: Any) -> None:
            found = f"{summary.cases} cases, {len(summary.failures)} failures"
            bar.update(task, completed=min(summary.seconds, seconds), found=found)

        return driver.run(name, seconds, seed, report=report)


def _say(done: list[Any]) -> None:
    columns = ("", "engine", "minutes", "CPU minutes", "cases", "branches", "failures", "ended by")
    rows = [
        (
            run.target,
            run.engine,
            run.seconds / 60,
            run.cpu_seconds / 60,
            run.cases,
            run.branches,
            len(run.failures),
            run.ended,
        )
        for run in done
    ]
    print_tables([table("fuzzing", columns, rows)])
    for run in done:
        for kind, file in run.failures.items():
            click.echo(f"{run.target}: {kind}\n  again: python -m fuzz {file}")

"""How results reach the screen: tables on standard output, progress on standard error, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

Item = TypeVar("Item")


def print_json(data: Any) -> None:
    """``data`` as one JSON document on standard output, in ASCII so that no locale can break it.

    NaN and infinities are refused, not written.
    """
    click.echo(json.dumps(data, indent=2, allow_nan=False))


def print_tables(tables: Iterable[Table]) -> None:
    """Tables on standard output, each under its title and with an empty line between them."""
    screen = console()
    for place, item in enumerate(tables):
        title, item.title = item.title, None  # rich would wrap a title at the width of its table
        if place:
            screen.print()
        if title:
            screen.print(Text(str(title), style="bold"))
        screen.print(item)


def console() -> Console:
    """Standard output for tables and prose; wide enough not to cut columns when piped."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=110)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A plain table; numbers are right-aligned, the first column is not. Without names there is no header."""
    result = Table(title=title, box=None, pad_edge=False, show_header=any(columns))
    for place, column in enumerate(columns):
        result.add_column(column, justify="left" if place == 0 else "right", overflow="fold")
    for row in rows:
        result.add_row(*(Text(show(value)) for value in row))
    return result


def show(value: Any) -> str:
    """A number as a person reads it: rationals as a/b, floats to four significant digits."""
    if value is None:
        return "–"
    if isinstance(value, Fraction):
        return str(value) if value.denominator < 10**7 else f"{float(value):.4g}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


@contextmanager
def progress(items: Sequence[Item], description: str, *, quiet: bool = False) -> Iterator[Iterator[Item]]:
    """Iterate over ``items`` behind a progress bar on standard error (none when it is not a terminal)."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not Console(stderr=True).is_terminal,
    )
    with bar:
        yield iter(bar.track(items, description=description))


@contextmanager
def meter(description: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Like ``progress``, for work that reports itself: yields ``tell(done, total)``. Shows the rate and the time left.

    The first call says what was done before; the rate is that of what follows.
    """
    screen = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
        disable=quiet or not screen.is_terminal,
        speed_estimate_period=300,
    )
    with bar:
        tasks: list[Any] = []

        def tell(done: int, total: int) -> None:
            if not tasks:
                tasks.append(bar.add_task(description, total=total, completed=done))
            else:
                bar.update(tasks[0], completed=done)

        yield tell


class _Rate(ProgressColumn):
    """Items a second, or seconds an item where those are more than one."""

    def render(self, task: Task) -> Text:
        if not task.speed:
            return Text("–/s")
        return Text(f"{task.speed:.1f}/s" if task.speed >= 1 else f"{1 / task.speed:.1f} s each")

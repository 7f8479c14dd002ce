"""How results reach the screen: tables on standard output, progress on standard error, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

Item = TypeVar("Item")


def print_json(data: Any) -> None:
    """``data`` as one JSON document on standard output. NaN and infinities are refused, not written."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def console() -> Console:
    """Standard output for tables and prose; wide enough not to cut columns when piped."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=110)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A plain table; numbers are right-aligned, the first column is not."""
    result = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, column in enumerate(columns):
        result.add_column(column, justify="left" if place == 0 else "right", overflow="fold")
    for row in rows:
        result.add_row(*(show(value) for value in row))
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

"""Options and progress that the commands running models share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from resispec_core.errors import InputError

Tell = Callable[[str, int, int], None]


def options(*decorators: Any) -> Callable[[Any], Any]:
    """Several click options as one decorator, in the order given."""

    def apply(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


pair_options = options(
    click.option(
        "--target", default="builtin", show_default=True, help="builtin, a model folder, or a .gguf file."
    ),
    click.option("--draft", default=None, help="A model folder or .gguf file with the target's vocabulary."),
    click.option(
        "--skip-layers",
        default=None,
        metavar="LAYERS",
        help="Draft: the target without these layers.  [default: 12-17]",
    ),
    click.option(
        "--dtype", default="float32", show_default=True, help="Of weights: float32, bfloat16 or float16."
    ),
    click.option("--device", default="cpu", show_default=True, help="cpu or cuda."),
    click.option(
        "--threads",
        default=1,
        show_default=True,
        type=int,
        help="CPU threads; more than are free slow it down.",
    ),
)


def set_threads(threads: int) -> None:
    """Tell torch how many CPU threads to use."""
    if threads < 1:
        raise InputError(f"threads is {threads}; pass at least 1")
    from resispec_core.llama.models import libraries

    libraries()[0].set_num_threads(threads)


@contextmanager
def stages() -> Iterator[Tell]:
    """A progress bar on standard error, as a function of (stage, done, total)."""
    # The stream is taken now: while weights load, sys.stderr is turned away from a library's own progress bar.
    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, redirect_stderr=False, redirect_stdout=False) as bar:
        task = bar.add_task("starting", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            bar.update(task, description=stage, completed=done, total=total or None)

        yield tell

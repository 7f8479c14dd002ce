"""`resispec report RUN`: a run as a page to send."""

from __future__ import annotations

from pathlib import Path

import click

from resispec_core.cli.output import print_json
from resispec_core.errors import InputError
from resispec_core.llama.writer import replace_file
from resispec_core.runs.store import Run

HTML, MARKDOWN = "report.html", "report.md"


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path), help="Folder of the pages. Default: RUN."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def report(run: Path, out: Path | None, as_json: bool) -> int:
    """Write a run of `resispec audit --out` as one HTML file that fetches nothing, and as Markdown.

    The verdicts, distributions of total variation and acceptance, acceptance by candidate and against the ceiling, the
    worst positions with their tokens, where it all comes from, and how to make it again.

    Exits with 0 whatever the verdicts; `resispec audit` judges a rule.
    """
    found = Run.open(run)
    if not found.done.any():
        raise InputError(f"no position of {run} was audited yet; run its `resispec audit` again to continue")
    from resispec_core.report.run_page import render

    folder = run if out is None else out
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write to {folder}: {error.strerror or error}; choose another folder"
        ) from error
    pages = dict(zip((HTML, MARKDOWN), render(found), strict=True))
    for name, text in pages.items():
        replace_file(folder / name, text.encode())
    if as_json:
        print_json(
            {
                "html": str(folder / HTML),
                "markdown": str(folder / MARKDOWN),
                "complete": found.complete,
                "positions": int(found.done.sum()),
                "positions_in_store": len(found.done),
            }
        )
        return 0
    for name in pages:
        click.echo(f"written: {folder / name}")
    if not found.complete:
        click.echo(
            f"incomplete: {int(found.done.sum())} of {len(found.done)} positions, and the pages say so"
        )
    return 0

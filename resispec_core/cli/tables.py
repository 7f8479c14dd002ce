"""`resispec tables`: the paper's tables and figures for the pair at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from resispec_core.cli.output import print_json, print_tables, table
from resispec_core.errors import InputError
from resispec_core.llama.store import LogitsStore, sample_store


@click.command()
@click.argument("results", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--logits", "folder", metavar="DIR", help="Recorded rows for Tables 4 and 5.  [default: the package's]"
)
@click.option(
    "--positions", default=6, show_default=True, type=int, help="Rows audited for Tables 4 and 5; 0: none."
)
@click.option("--plots", type=click.Path(path_type=Path), help="Folder for figure-1-*.svg and figure-3.svg.")
@click.option(
    "--markdown", type=click.Path(path_type=Path, dir_okay=False), help="Also write the tables here."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def tables(
    results: tuple[Path, ...],
    folder: str | None,
    positions: int,
    plots: Path | None,
    markdown: Path | None,
    as_json: bool,
) -> None:
    """Tables 1 to 6 and Figures 1 and 3 in the paper's layout, with the columns the paper lacks.

    RESULTS are folders that `resispec speed --live` or `--recorded` wrote; tables without results are left out. Beside
    the paper's columns stand the law's verdict, its distance, and the ceiling of any exact rule.
    """
    from resispec_core.llama.tables import read_rows, sheets

    if positions < 0:
        raise InputError(f"positions is {positions}; pass 0 or more")
    store = None
    if positions:
        store = sample_store() if folder is None else LogitsStore.open(folder)
        if len(store) == 0:
            raise InputError(f"{store.path} holds no recorded position; finish it with `resispec record`")
    rows = read_rows(results) if results else []
    if plots is not None:
        _plot(rows, plots)
    found = sheets(rows, store, positions=positions)
    if markdown is not None:
        markdown.write_text("\n".join(sheet.markdown() for sheet in found), encoding="utf-8")
    if as_json:
        print_json({"tables": [sheet.to_json() for sheet in found], "rows": rows})
        return
    print_tables(table(sheet.title, sheet.columns, sheet.rows) for sheet in found)
    for sheet in found:
        if sheet.note:
            click.echo(f"\n{sheet.name}: {sheet.note}")


def _plot(rows: list[dict[str, Any]], folder: Path) -> None:
    from resispec_core.report.speed_plots import plot_by_index, plot_components

    timed = [row for row in rows if "components" not in row]
    parts = [row for row in rows if "components" in row]
    if not rows:
        raise InputError("there is nothing to plot: pass folders with results")
    folder.mkdir(parents=True, exist_ok=True)
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in timed:
        groups.setdefault(f"{row['source']}-{row['budget']}-T{row['temperature']:g}", []).append(row)
    for name, own in groups.items():
        plot_by_index(own, folder / f"figure-1-{name}.svg")
    if parts:
        plot_components(parts, folder / "figure-3.svg")

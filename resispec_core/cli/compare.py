"""`resispec compare`: every rule on the same recorded positions."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from resispec_core.audit.compare import Comparison, Pair, baselines, measure, relate
from resispec_core.cli.output import print_json, print_tables, progress, show, table
from resispec_core.errors import InputError
from resispec_core.laws import law_from_logits
from resispec_core.llama.store import LogitsStore, sample_store
from resispec_core.rules import rule as named_rule

DEFAULT_RULES = ("specinfer", "k-seq", "shaped", "optimal", "deterministic", "resispec")
INTERRUPTED = 130


@click.command()
@click.option(
    "--rule",
    "names",
    multiple=True,
    metavar="NAME",
    help=f"Rule to compare; repeat for several. Default: {', '.join(DEFAULT_RULES)}.",
)
@click.option(
    "--candidates",
    "-n",
    "counts",
    type=int,
    multiple=True,
    default=(1, 2, 3),
    show_default=True,
    help="Candidates a position; repeat for several.",
)
@click.option(
    "--temperature",
    "temperatures",
    type=float,
    multiple=True,
    default=(1.0,),
    show_default=True,
    help="Applied to both rows; repeat for several.",
)
@click.option("--logits", "folder", metavar="DIR", help="A recorded store. Default: the one in the package.")
@click.option(
    "--plot", "plot", type=click.Path(path_type=Path), help="Also write a plot here (.svg, .png, .pdf)."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(
    names: tuple[str, ...],
    counts: tuple[int, ...],
    temperatures: tuple[float, ...],
    folder: str | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Compare verification rules: law, acceptance against the ceiling, and cost.

    Exactness, acceptance and cost are separate questions: a biased rule can accept more than any exact one.
    Exits with 0 whatever the verdicts; `resispec audit` judges a rule.
    """
    rules = [named_rule(name) for name in names or DEFAULT_RULES]
    store = sample_store() if folder is None else LogitsStore.open(folder)
    if len(store) == 0:
        raise InputError(f"{store.path} holds no recorded position; finish it with `resispec record`")
    _check_plot(plot)
    counts = tuple(sorted(set(counts)))
    jobs = [(rule, n) for rule in rules for n in counts]
    rows: list[Comparison] = []
    interrupted = False
    for temperature in dict.fromkeys(temperatures):
        pairs = _laws(store, temperature)
        found: list[Comparison] = []
        try:
            base = baselines(pairs, counts)
            with progress(jobs, f"compare at T = {temperature:g}", quiet=as_json) as steps:
                for rule, n in steps:
                    found.append(measure(rule, pairs, n, temperature=temperature))
        except KeyboardInterrupt:
            interrupted = True
        rows += relate(found, base) if found else []
        if interrupted:
            break
    if not rows:
        raise KeyboardInterrupt
    if plot is not None:
        from resispec_core.report.plots import plot_comparison

        plot_comparison(rows, plot)
    if as_json:
        print_json(
            {
                "positions_in_store": len(store),
                "vocabulary": store.vocabulary,
                "interrupted": interrupted,
                "comparisons": [row.to_json() for row in rows],
            }
        )
    else:
        print_tables(_tables(rows, len(store), store.vocabulary))
    if interrupted:
        click.echo(f"resispec: interrupted; above are the {len(rows)} comparisons done until then", err=True)
        return INTERRUPTED
    return 0


def _laws(store: LogitsStore, temperature: float) -> list[Pair]:
    """Both laws of every position. Memory: 16 bytes a token and position."""
    sides = ("target", "draft")
    pairs = []
    for place in range(len(store)):
        p, q = (
            law_from_logits(row, temperature=temperature, name=f"{store.path}, position {place}, {side} row")
            for row, side in zip(store.row(place), sides, strict=True)
        )
        pairs.append((p, q))
    return pairs


def _check_plot(plot: Path | None) -> None:
    """Refuse a plot that could not be written, before any long work."""
    if plot is None:
        return
    if plot.suffix not in (".svg", ".png", ".pdf"):
        raise InputError(f"--plot is {plot}; name a file that ends in .svg, .png or .pdf")
    if not plot.absolute().parent.is_dir():
        raise InputError(
            f"--plot is {plot}, but the folder {plot.absolute().parent} does not exist; create it first"
        )


def _tables(rows: list[Comparison], positions: int, vocabulary: int) -> list[Table]:
    columns = (
        "rule",
        "n",
        "law",
        "TV",
        "acceptance",
        "ceiling",
        "gap closed",
        "η",
        "by candidate",
        "set-up",
        "verify",
    )
    tables = []
    for temperature in dict.fromkeys(row.temperature for row in rows):
        own = [row for row in rows if row.temperature == temperature]
        lines = [
            (
                row.rule if row.draw == "iid" else f"{row.rule} ({row.draw})",
                row.candidates,
                row.law.verdict.value,
                _digits(row.law.mean_total_variation),
                _digits(row.law.mean_acceptance),
                _digits(row.law.mean_ceiling),
                _share(row.gap_closed),
                _digits(row.efficiency),
                " ".join(f"{value:.2f}" for value in row.law.conditional_acceptance),
                f"{row.setup_seconds * 1e3:.1f} ms",
                f"{row.verify_seconds * 1e3:.1f} ms",
            )
            for row in own
        ]
        title = f"T = {temperature:g}, {positions} positions, V = {vocabulary}: means over the positions"
        tables.append(table(title, columns, lines))
    return tables


def _digits(value: float | None) -> str:
    return show(None) if value is None else f"{value:.3f}" if value >= 1e-3 or value == 0 else f"{value:.0e}"


def _share(closed: float | None) -> str:
    if closed is None:
        return show(None)
    return "above" if closed > 1 + 1e-9 else f"{closed:.0%}"

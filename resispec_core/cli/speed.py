"""`resispec speed`: the GPU kernels alone, verification on recorded trees, or decoding end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from resispec_core.cli.models import pair_options, stages
from resispec_core.cli.output import print_json, print_tables, table
from resispec_core.errors import InputError


@click.command()
@click.option("--kernels", is_flag=True, help="Time the fused GPU kernels.")
@click.option("--live", is_flag=True, help="Decode prompts end to end, one process a configuration.")
@click.option(
    "--recorded",
    "stores",
    multiple=True,
    metavar="DIR",
    help="Verify recorded trees (no model); repeat for several.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Kernels: a JSON file. Otherwise a folder: raw JSONL, and speed.csv.",
)
@click.option(
    "--system", "systems", multiple=True, help="System to run; repeat for several.  [default: the paper's]"
)
@click.option(
    "--tree", "trees", multiple=True, default=("5x3",), show_default=True, help="Live: topology; repeatable."
)
@click.option(
    "--temperature", "temperatures", multiple=True, type=float, default=(1.0,), help="Live; repeatable."
)
@click.option("--max-new-tokens", default=32, show_default=True, type=int, help="Live.")
@click.option(
    "--prompts",
    "file",
    default=None,
    metavar="FILE",
    help="Live: a text file, or .jsonl; else 24 short texts.",
)
@click.option("--prompt-count", default=None, type=int, help="Live: only that many prompts.")
@click.option("--repeats", default=4, show_default=True, type=int, help="Recorded: walks of every tree.")
@click.option("--seed", default=0, show_default=True, type=int, help="Prompt i uses seed + i.")
@click.option(
    "--breakdown", is_flag=True, help="Live: time the components instead (synchronised; no throughput)."
)
@pair_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def speed(
    kernels: bool,
    live: bool,
    stores: tuple[str, ...],
    out: Path | None,
    systems: tuple[str, ...],
    trees: tuple[str, ...],
    temperatures: tuple[float, ...],
    max_new_tokens: int,
    file: str | None,
    prompt_count: int | None,
    repeats: int,
    seed: int,
    breakdown: bool,
    target: str,
    draft: str | None,
    skip_layers: str | None,
    dtype: str,
    device: str,
    threads: int,
    as_json: bool,
) -> None:
    """Time verification and decoding: tokens a second, accepted length, and the ceiling beside it.

    --kernels: by rule, vocabulary, dtype, number of nodes and candidates. On a GPU: times by CUDA events, against the
    device's own copy rate, the array-level version and eager torch; under five minutes. Without one it says what it
    would run, and times a small case of each rule on the CPU; those are no GPU figures. What was timed before an
    interrupt is kept.

    --recorded and --live keep each result as it comes: run the same command again to continue. A published-rule row
    always carries its measured total variation.
    """
    if kernels + live + bool(stores) != 1:
        raise click.UsageError("say what to time: --kernels, --live or --recorded DIR")
    if kernels:
        _kernels(out, as_json)
        return
    if out is None:
        raise click.UsageError("name a folder for the results: --out DIR")
    out.mkdir(parents=True, exist_ok=True)
    if stores:
        rows = _recorded(stores, out, systems, repeats, seed, device)
    else:
        pair = (target, draft, skip_layers, dtype, device)
        cells = [(tree, name, t) for t in temperatures for tree in trees for name in _systems(systems)]
        rows = _live(pair, cells, out, file, prompt_count, threads, max_new_tokens, seed, breakdown)
    _write_csv(out)
    if as_json:
        print_json({"rows": rows})
    else:
        print_tables([_breakdown_table(rows) if breakdown else _table(rows)])


def _write_csv(out: Path) -> None:
    """The rows of every journal in the folder, those of earlier commands too."""
    from resispec_core.llama.speed_rows import write_csv
    from resispec_core.llama.tables import read_rows

    rows = read_rows([out])
    for name, own in (
        ("speed.csv", [row for row in rows if "components" not in row]),
        ("breakdown.csv", [row for row in rows if "components" in row]),
    ):
        if own:
            write_csv(own, out / name)


def _kernels(out: Path | None, as_json: bool) -> None:
    from resispec_core.gpu import bench  # only this choice needs it

    if out is not None and out.is_dir():
        raise InputError(f"--out {out} is a folder; with --kernels name a file")
    result = bench.run(lambda line: click.echo(line, err=True))
    text = json.dumps(result)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
    click.echo(text if as_json else "\n".join(bench.table(result)))
    if result["interrupted"]:
        raise click.Abort


def _systems(names: tuple[str, ...]) -> tuple[str, ...]:
    from resispec_core.llama.systems import DEFAULT_SYSTEMS

    return names or DEFAULT_SYSTEMS


def _recorded(
    stores: tuple[str, ...], out: Path, systems: tuple[str, ...], repeats: int, seed: int, device: str
) -> list[dict[str, Any]]:
    from resispec_core.llama.recorded import open_trees, replay, systems_for
    from resispec_core.llama.speed_rows import read_journal, summarise

    if device != "cpu":
        raise InputError(
            "recorded trees are verified by the CPU reference; time the GPU's kernels with --kernels"
        )
    opened = [open_trees(folder) for folder in stores]
    cells = [
        (store, name) for store in opened for name in systems_for(store) if not systems or name in systems
    ]
    if not cells:
        raise InputError(
            f"none of {', '.join(systems)} verifies these stores; each fits one way of drawing siblings"
        )
    rows = []
    with stages() as tell:
        for store, name in cells:
            journal = out / f"{store.path.name}-{name}.jsonl"
            for done, total in replay(store, name, journal, repeats=repeats, seed=seed):
                tell(f"{store.path.name}: {name}", done, total)
            rows.append(summarise(*read_journal(journal)))
    return rows


def _live(
    pair: tuple[str, str | None, str | None, str, str],
    cells: list[tuple[str, str, float]],
    out: Path,
    file: str | None,
    count: int | None,
    threads: int,
    new: int,
    seed: int,
    breakdown: bool,
) -> list[dict[str, Any]]:
    from resispec_core.llama.live import Configuration, run_in_own_process
    from resispec_core.llama.pair import Pair
    from resispec_core.llama.prompts import STARTS, read_prompts
    from resispec_core.llama.session import check_prompts
    from resispec_core.llama.speed_rows import read_journal, summarise

    prompts = (read_prompts(file) if file is not None else STARTS)[:count]
    configurations = [
        Configuration(pair, name, tree, temperature, threads, new, seed, breakdown)
        for tree, name, temperature in cells
    ]
    rows = []
    with stages() as tell:
        tell("checking every configuration", 0, 0)
        checked = Pair(*pair)
        for configuration in configurations:  # before the first model is loaded
            check_prompts(checked, configuration.plan(prompts))
        for configuration in configurations:
            journal = out / f"{configuration.key}.jsonl"
            for done, total in run_in_own_process(configuration, prompts, journal):
                tell(configuration.key, done, total)
            rows.append(summarise(*read_journal(journal)))
    return rows


def _table(rows: list[dict[str, Any]]) -> Any:
    columns = ("system", "tree", "T", "tok/s", "accepted", "±", "ceiling", "by candidate", "TV", "law")
    lines = [
        (
            row["system"],
            row["tree"],
            f"{row['temperature']:g}",
            f"{row['tokens_per_second']:.1f}",
            f"{row['accepted_length']:.2f}",
            _two(row["accepted_length_error"]),
            _two(row["ceiling_length"]),
            " ".join(f"{value:.2f}" for value in row["acceptance_by_index"][:4]),
            None if row["total_variation"] is None else f"{row['total_variation']:.2g}",
            row["verdict"],
        )
        for row in rows
    ]
    return table(
        "Tokens a step (accepted length) beside the ceiling of any exact rule, and the law", columns, lines
    )


def _breakdown_table(rows: list[dict[str, Any]]) -> Any:
    names = list(dict.fromkeys(name for row in rows for name in row["components"]))
    lines = [
        (
            row["system"],
            row["tree"],
            f"{row['temperature']:g}",
            *(f"{1e3 * row['components'].get(name, 0.0):.1f}" for name in names),
        )
        for row in rows
    ]
    title = "Milliseconds a step by component (budgeting, redistribution and proxy are parts of verification)"
    return table(title, ("system", "tree", "T", *names), lines)


def _two(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"

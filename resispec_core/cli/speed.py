"""`resispec speed`: how fast the GPU kernels are, as ratios within one run."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.option(
    "--kernels", is_flag=True, help="Time the fused GPU kernels. So far the only choice, and required."
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write the JSON to this file."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def speed(kernels: bool, out: Path | None, as_json: bool) -> None:
    """Time verification: by rule, vocabulary, dtype, number of nodes and candidates.

    On a GPU: times by CUDA events, against the device's own copy rate, the array-level version and eager torch; under
    five minutes. Without one it says what it would run, and times a small case of each rule on the CPU; those are no
    GPU figures. What was timed before an interrupt is kept.
    """
    if not kernels:
        raise click.UsageError("say what to time: --kernels")
    from resispec_core.gpu import bench  # only this command needs it

    result = bench.run(lambda line: click.echo(line, err=True))
    text = json.dumps(result)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
    click.echo(text if as_json else "\n".join(bench.table(result)))
    if result["interrupted"]:
        raise click.Abort

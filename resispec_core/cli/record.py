"""`resispec record`: make a store of recorded logits."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from resispec_core.cli.info import describe, print_store
from resispec_core.llama.prompts import BUILT_IN, read_prompts


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--target", default="builtin", show_default=True, help="builtin, a model folder, or a .gguf file."
)
@click.option("--draft", default=None, help="A model folder or .gguf file with the target's vocabulary.")
@click.option(
    "--skip-layers",
    default=None,
    metavar="LAYERS",
    help="Draft: the target without these layers.  [default: 12-17]",
)
@click.option("--prompts", default=None, metavar="FILE", help="A text file, or .jsonl with a text a line.")
@click.option("--positions-per-prompt", default=7, show_default=True, type=int)
@click.option("--rows-per-shard", default=7, show_default=True, type=int)
@click.option(
    "--dtype", default="float32", show_default=True, help="Of weights: float32, bfloat16 or float16."
)
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def record(
    out: Path,
    target: str,
    draft: str | None,
    skip_layers: str | None,
    prompts: str | None,
    positions_per_prompt: int,
    rows_per_shard: int,
    dtype: str,
    device: str,
    as_json: bool,
) -> None:
    """Record the logits of a target and a draft Llama into the folder OUT.

    Run it again to continue after an interrupt: whole shards are kept.
    """
    from resispec_core.llama.record import record as run

    texts = read_prompts(prompts) if prompts is not None else BUILT_IN
    # The stream is taken now: while weights load, sys.stderr is turned away from a library's own progress
    # bar.
    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, redirect_stderr=False, redirect_stdout=False) as bar:
        task = bar.add_task("starting", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            bar.update(task, description=stage, completed=done, total=total or None)

        store = run(
            out,
            target=target,
            draft=draft,
            skip_layers=skip_layers,
            prompts=texts,
            positions_per_prompt=positions_per_prompt,
            rows_per_shard=rows_per_shard,
            dtype=dtype,
            device=device,
            progress=tell,
        )
    if as_json:
        click.echo(json.dumps(describe(store), ensure_ascii=False))
    else:
        print_store(store)

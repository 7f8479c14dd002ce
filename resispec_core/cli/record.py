"""`resispec record`: make a store of recorded logits."""

from __future__ import annotations

import json
from pathlib import Path

import click

from resispec_core.cli.info import describe, print_store
from resispec_core.cli.models import pair_options, set_threads, stages
from resispec_core.llama.prompts import BUILT_IN, read_prompts


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@pair_options
@click.option("--prompts", default=None, metavar="FILE", help="A text file, or .jsonl with a text a line.")
@click.option("--positions-per-prompt", default=7, show_default=True, type=int)
@click.option("--rows-per-shard", default=7, show_default=True, type=int)
@click.option(
    "--tree", default=None, help="Record a drafted tree at every position: 5x3, a topology file, or eagle."
)
@click.option("--draw", default="iid", show_default=True, help="With --tree: how siblings are drawn.")
@click.option(
    "--temperature", default=1.0, show_default=True, type=float, help="With --tree: of the draft's draws."
)
@click.option(
    "--seed", default=0, show_default=True, type=int, help="With --tree: position i draws with seed + i."
)
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
    threads: int,
    tree: str | None,
    draw: str,
    temperature: float,
    seed: int,
    as_json: bool,
) -> None:
    """Record the logits of a target and a draft Llama into the folder OUT.

    Run it again to continue after an interrupt: whole shards are kept.
    """
    from resispec_core.llama.record import record as run
    from resispec_core.llama.record_trees import Drafting

    drafting = Drafting(tree, draw, temperature, seed) if tree is not None else None
    texts = read_prompts(prompts) if prompts is not None else BUILT_IN
    set_threads(threads)
    with stages() as tell:
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
            drafting=drafting,
            progress=tell,
        )
    if as_json:
        click.echo(json.dumps(describe(store), ensure_ascii=False))
    else:
        print_store(store)

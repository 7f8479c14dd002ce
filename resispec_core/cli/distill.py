"""`resispec distill`: a small draft for a target, trained on text the target writes."""

from __future__ import annotations

from pathlib import Path

import click

from resispec_core.cli.models import set_threads, stages
from resispec_core.cli.output import print_json


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--target", default="builtin", show_default=True, help="builtin, a model folder, or a .gguf file."
)
@click.option(
    "--layers", default="0-2,29", show_default=True, help="Layers of the target the draft starts from."
)
@click.option("--tokens", default=65_536, show_default=True, type=int, help="Size of the sampled text.")
@click.option("--epochs", default=4, show_default=True, type=int)
@click.option("--seed", default=0, show_default=True, type=int)
@click.option(
    "--prompts", default=None, metavar="FILE", help="Texts whose beginnings start the sampled text."
)
@click.option("--threads", default=1, show_default=True, type=int, help="CPU threads.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def distill(
    out: Path,
    target: str,
    layers: str,
    tokens: int,
    epochs: int,
    seed: int,
    prompts: str | None,
    threads: int,
    as_json: bool,
) -> None:
    """Distil a draft model from a target into the folder OUT; use it with --draft OUT.

    On one CPU core the defaults take about a quarter of an hour. Run it again to continue after an interrupt.
    """
    from resispec_core.llama.distill import Recipe
    from resispec_core.llama.distill import distill as run
    from resispec_core.llama.prompts import BUILT_IN, read_prompts

    texts = read_prompts(prompts) if prompts is not None else BUILT_IN
    set_threads(threads)
    with stages() as tell:
        recipe = Recipe(layers=layers, tokens=tokens, epochs=epochs, seed=seed)
        found = run(out, target=target, texts=texts, recipe=recipe, progress=tell)
    if as_json:
        print_json(found)
        return
    before, after = found["overlap"]["before"], found["overlap"]["after"]
    click.echo(
        f"{found['layers']} layers in {out}; held-out overlap with the target {before:.3f} before, {after:.3f} after"
    )

"""`resispec generate`: speculative decoding with a tree, verified by a rule of this package."""

from __future__ import annotations

from pathlib import Path

import click

from resispec_core.cli.models import pair_options, set_threads, stages
from resispec_core.cli.output import print_json
from resispec_core.errors import InputError


@click.command()
@pair_options
@click.option(
    "--tree",
    default="5x3",
    show_default=True,
    help="Depth (root counted) x branching, a topology file (.json), chain:4, eagle[:60:5:10], lookup[:4:3], or none.",
)
@click.option(
    "--rule", "rule_name", default=None, help="Verification rule.  [default: shaped; deterministic]"
)
@click.option("--draw", default=None, help="How siblings are drawn.  [default: the rule's first mode]")
@click.option(
    "--temperature", default=1.0, show_default=True, type=float, help="Of both models; 0 is greedy."
)
@click.option("--top-k", default=None, type=int, help="Keep the k most likely tokens, on both sides.")
@click.option("--top-p", default=None, type=float, help="Nucleus mass, on both sides.")
@click.option("--max-new-tokens", default=32, show_default=True, type=int)
@click.option("--seed", default=0, show_default=True, type=int, help="Prompt i uses seed + i.")
@click.option("--prompt", "texts", multiple=True, help="A text to continue; repeat for several.")
@click.option(
    "--prompts", "file", default=None, metavar="FILE", help="A text file, or .jsonl with a text a line."
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Keep results here (JSONL) and resume."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def generate(
    target: str,
    draft: str | None,
    skip_layers: str | None,
    dtype: str,
    device: str,
    threads: int,
    tree: str,
    rule_name: str | None,
    draw: str | None,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    max_new_tokens: int,
    seed: int,
    texts: tuple[str, ...],
    file: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Continue prompts by speculative decoding: draft a tree, score it in one pass, verify it.

    With an exact rule the text follows the target's law; at temperature 0 it is the target's greedy text. Without
    prompts it continues 24 short texts that ship with the package. Run it again with the same --out to continue.
    """
    from resispec_core.llama.drafters import Sampling
    from resispec_core.llama.method import Method
    from resispec_core.llama.pair import Pair
    from resispec_core.llama.prompts import STARTS, Prompt, read_prompts
    from resispec_core.llama.session import Plan, decode

    if texts and file is not None:
        raise InputError("--prompt and --prompts exclude each other: pass one of them")
    fixed = tree.split(":")[0] in ("eagle", "lookup")
    method = Method(tree, rule_name or ("deterministic" if fixed else "shaped"), draw)
    if not method.needs_draft and (draft or skip_layers):
        raise InputError(f"tree {tree!r} drafts without a model: leave out --draft and --skip-layers")
    prompts = tuple(Prompt(f"prompt-{i}", text) for i, text in enumerate(texts, 1))
    if not prompts:
        prompts = read_prompts(file) if file is not None else STARTS
    plan = Plan(method, Sampling(temperature, top_k, top_p), max_new_tokens, seed, prompts)
    set_threads(threads)
    results = []
    with stages() as tell:
        tell("reading tokenizer and configuration", 0, 0)
        pair = Pair(target, draft, skip_layers, dtype, device)
        for result in decode(pair, plan, out=out, progress=tell):
            results.append(result)
    if as_json:
        print_json({**plan.to_json(), "results": results})
        return
    for prompt, result in zip(prompts, results, strict=True):
        click.echo(
            f"--- {prompt.name}: {len(result['tokens'])} tokens in {len(result['steps'])} steps "
            f"({result['accepted_length']:.2f} a step), {result['seconds']:.1f} s"
        )
        click.echo(prompt.text + result["text"])

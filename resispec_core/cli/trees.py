"""`resispec trees`: draw, measure, choose and save tree topologies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from resispec_core.arrays import Array
from resispec_core.cli.output import console, print_json, print_tables, progress, table
from resispec_core.cli.sampler import refuse
from resispec_core.drafts import DRAW_MODES
from resispec_core.errors import InputError
from resispec_core.laws import law_from_logits, parse_rationals
from resispec_core.llama.store import LogitsStore, sample_store
from resispec_core.trees import (
    Topology,
    expected_tokens,
    measured_acceptance,
    picture,
    read_topology,
    save,
    sequoia,
)
from resispec_core.trees.files import to_json

SHOWN = 64
"""Trees of at most so many positions are drawn without being asked."""


@click.command()
@click.argument("topology", required=False, metavar="[TOPOLOGY]")
@click.option(
    "--sequoia", "budget", type=int, metavar="M", help="Choose the best tree of M positions instead."
)
@click.option(
    "--acceptance",
    metavar="LIST",
    help="'0.6,0.2,0.1': probability that candidate 1, 2, … is the one accepted. Default with --sequoia: measured.",
)
@click.option("--max-depth", type=int, metavar="D", help="Sequoia only: levels at most, counting the root.")
@click.option(
    "--rule", "name", metavar="NAME", help="Measure the acceptance of this rule. Default: specinfer."
)
@click.option("--candidates", "-n", type=int, help="Measure so many candidates a position. Default: 8.")
@click.option(
    "--draw", metavar="MODE", help=f"How they are drawn: {', '.join(DRAW_MODES)}. Default: the rule's own."
)
@click.option("--temperature", type=float, help="Of the rows it is measured on. Default: 1.")
@click.option(
    "--logits", "folder", metavar="DIR", help="Measure on this store. Default: the one in the package."
)
@click.option(
    "--picture", "drawn", is_flag=True, help=f"Draw the tree even if it has more than {SHOWN} positions."
)
@click.option(
    "--save",
    "path",
    metavar="FILE",
    help="Write the topology here (.json), to be read wherever one is asked.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def trees(
    topology: str | None,
    budget: int | None,
    acceptance: str | None,
    max_depth: int | None,
    name: str | None,
    candidates: int | None,
    draw: str | None,
    temperature: float | None,
    folder: str | None,
    drawn: bool,
    path: str | None,
    as_json: bool,
) -> int:
    """Show a tree topology, or choose Sequoia's, and save it.

    TOPOLOGY is depth x branching (5x3 or d5b3, the depth counting the root) or a .json file that was saved here.

    Positions are what the target's forward pass verifies, root included: the verification cost as the paper counts it.
    """
    if (topology is None) == (budget is None):
        raise InputError("give either a TOPOLOGY, such as 5x3 or a .json file, or --sequoia M")
    if path is not None and not path.endswith(".json"):
        raise InputError(f"--save is {path}; name a file that ends in .json")
    measuring = {
        "--rule": name,
        "--candidates": candidates,
        "--draw": draw,
        "--temperature": temperature,
        "--logits": folder,
    }
    if acceptance is not None:
        refuse(measuring, "is for measuring, and --acceptance is given")
    chances: tuple[Any, ...] | None = (
        None
        if acceptance is None
        else tuple(parse_rationals(acceptance, name="--acceptance", wanted="a number"))
    )
    if topology is not None:
        refuse({"--max-depth": max_depth} | measuring, "goes with --sequoia")
        found = read_topology(topology)
    else:
        assert budget is not None
        if chances is None:
            chances = _measured(name, candidates, draw, temperature, folder, quiet=as_json)
        found = sequoia(budget, chances, max_depth)
    if path is not None:
        save(found, Path(path))
    tokens = None if chances is None else expected_tokens(found, chances)
    if as_json:
        print_json(
            {
                **to_json(found),
                "depth": found.depth,
                "positions": found.cost,
                "drafted": found.drafted,
                "levels": [len(level) for level in found.levels],
                "acceptance": None if chances is None else [float(chance) for chance in chances],
                "expected_tokens": None if tokens is None else float(tokens),
                "saved": path,
            }
        )
        return 0
    print_tables([_facts(found, chances, tokens)])
    if drawn or found.cost <= SHOWN:
        console().print("\n" + picture(found), markup=False, soft_wrap=True)
    if path is not None:
        console().print(f"written to {path}", markup=False, soft_wrap=True)
    return 0


def _facts(found: Topology, chances: tuple[Any, ...] | None, tokens: Any) -> Any:
    rows: list[tuple[str, Any]] = [
        ("depth, counting the root", found.depth),
        ("positions: the verification cost", found.cost),
        ("positions a level", " ".join(str(len(level)) for level in found.levels)),
        ("tokens a step, at most", found.depth),
    ]
    if chances is not None:
        rows += [
            ("acceptance of candidate 1, 2, …", " ".join(f"{float(chance):.3g}" for chance in chances)),
            ("tokens a step, expected from it", float(tokens)),
        ]
    return table("", ("", ""), rows)


def _measured(
    name: str | None,
    candidates: int | None,
    draw: str | None,
    temperature: float | None,
    folder: str | None,
    *,
    quiet: bool,
) -> tuple[float, ...]:
    store = sample_store() if folder is None else LogitsStore.open(folder)
    if len(store) == 0:
        raise InputError(f"{store.path} holds no recorded position; finish it with `resispec record`")
    heat = 1.0 if temperature is None else temperature

    def pair(place: int) -> tuple[Array, Array]:
        p, q = (
            law_from_logits(row, temperature=heat, name=f"{store.path}, position {place}, {side} row")
            for row, side in zip(store.row(place), ("target", "draft"), strict=True)
        )
        return p, q

    with progress(range(len(store)), "measure acceptance", quiet=quiet) as places:
        pairs: Iterator[tuple[Array, Array]] = map(pair, places)
        return measured_acceptance(
            name or "specinfer", pairs, 8 if candidates is None else candidates, draw=draw
        )

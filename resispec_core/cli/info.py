"""`resispec info`: say what is in a store of recorded logits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from resispec_core.llama.store import LogitsStore, sample_store


@click.command()
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--verify", is_flag=True, help="Check all hashes and rows, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(folder: Path | None, verify: bool, as_json: bool) -> None:
    """Say what is in a store of recorded logits: the folder DIR, or the shipped sample."""
    store = sample_store() if folder is None else LogitsStore.open(folder)
    if verify:
        store.verify()
    if as_json:
        click.echo(json.dumps(describe(store) | {"verified": verify}, ensure_ascii=False))
    else:
        print_store(store)
        if verify:
            click.echo(f"Verified: {len(store.shards)} shards and {len(store)} rows of each model.")


def describe(store: LogitsStore) -> dict[str, Any]:
    """The store as JSON: its metadata, with a row number and the prompt's name at every position."""
    names = [prompt["name"] for prompt in store.metadata["prompts"]]
    positions = [
        {"row": row, "prompt_name": names[position.prompt], **asdict(position)}
        for row, position in enumerate(store.positions)
    ]
    summary = {"path": str(store.path), "rows": len(store), "complete": store.complete}
    return {**summary, **store.metadata, "positions": positions}


def print_store(store: LogitsStore) -> None:
    """Print the store for a reader."""
    data = store.metadata
    skipped = data["draft"].get("layers_skipped")
    draft = f"the target without layers {_ranges(skipped)}" if skipped else str(data["draft"].get("id"))
    files = data["target"].get("files") or [{}]
    facts = Table.grid(padding=(0, 2))
    for name, value in (
        ("store", str(store.path)),
        ("target", f"{data['target'].get('id')}  (sha256 {str(files[0].get('sha256'))[:16]}…)"),
        ("draft", draft),
        ("vocabulary", f"{store.vocabulary} tokens  (tokenizer sha256 {data['tokenizer_sha256'][:16]}…)"),
        (
            "rows",
            f"{len(store)} of {data['planned_rows']} positions, {data['dtype']}, {len(store.shards)} shards",
        ),
        *_trees(data),
        ("libraries", ", ".join(f"{name} {version}" for name, version in data["libraries"].items())),
    ):
        facts.add_row(name, Text(value))
    table = Table(box=None, header_style="bold", expand=True)
    table.add_column("row", justify="right", no_wrap=True)
    table.add_column("prompt", no_wrap=True)
    table.add_column("token", justify="right", no_wrap=True)
    table.add_column("after", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("came", no_wrap=True)
    for row, position in enumerate(store.positions):
        name = data["prompts"][position.prompt]["name"]
        cells = (str(row), name, str(position.index), repr(position.context)[1:-1], repr(position.next_text))
        table.add_row(*(Text(cell) for cell in cells))
    console = Console()
    console.print(facts)
    console.print(table)
    if not store.complete:
        console.print("Unfinished: run the same `resispec record` command again to continue.", style="yellow")


def _trees(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    drafting = data.get("drafting")
    if not drafting:
        return []
    nodes = sum(len(tree["tokens"]) for tree in data["trees"])
    how = f"{drafting['tree']}, siblings {drafting['draw']}, T = {drafting['temperature']:g}, seed {drafting['seed']}"
    return [("trees", f"{how}; {nodes} nodes in all")]


def _ranges(layers: list[int]) -> str:
    """12-17 for [12, 13, 14, 15, 16, 17]."""
    starts = [layer for layer in layers if layer - 1 not in layers]
    ends = [layer for layer in layers if layer + 1 not in layers]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))

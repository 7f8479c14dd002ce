"""The part of `resispec audit` that takes --tree: the law of whole sequences on small tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
import numpy as np

from resispec_core.audit.positions import worst
from resispec_core.audit.replay.tables import Markov, fractions, hard_pair
from resispec_core.audit.verdict import EXIT_CODES, plain
from resispec_core.cli.output import print_json, print_tables, progress, show, table
from resispec_core.errors import InputError
from resispec_core.rules.base import Rule
from resispec_core.trees import JointReport, Topology, audit_tree, read_topology

INTERRUPTED = 130
TABLES, SIZE, LONGEST = 20, 3, 6
"""Default number of tables, their vocabulary, and the longest default horizon."""
OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--tree",
        "tree",
        metavar="TOPOLOGY",
        help="Audit the law of whole sequences on this tree: 3x2 (depth x branching) or a file of `resispec trees`.",
    ),
    click.option(
        "--tables",
        type=int,
        metavar="N",
        help=f"With --tree: pairs of small Markov tables, all but the first random. Default: {TABLES}.",
    ),
    click.option("--seed", type=int, help="With --tree: of the random tables. Default: 0."),
)


def tree_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of this file to a command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def audit_on_tree(
    rules: Sequence[Rule],
    tree: str,
    *,
    draw: str | None,
    horizon: int | None,
    count: int | None,
    seed: int | None,
    as_json: bool,
) -> int:
    """Audit ``rules`` on ``tree`` over random tables, print what was found; the exit code."""
    topology = read_topology(tree)
    count = TABLES if count is None else count
    if count < 1:
        raise InputError(f"--tables is {count}; at least one pair of tables is needed")
    length = min(topology.depth + 1, LONGEST) if horizon is None else horizon
    pairs = random_pairs(count, 0 if seed is None else seed)
    found: list[list[JointReport]] = []
    interrupted = False
    for rule in rules:
        found.append([])
        try:
            with progress(pairs, f"audit {rule.name} on {tree}", quiet=as_json) as steps:
                for pair in steps:
                    found[-1].append(audit_tree(rule, *pair, topology, draw=draw, horizon=length))
        except KeyboardInterrupt:
            interrupted = True
            break
    done = [(rule, reports) for rule, reports in zip(rules, found, strict=False) if reports]
    if not done:
        raise KeyboardInterrupt
    if as_json:
        audits = [_json(reports, pairs, topology) for _, reports in done]
        common = {"tables": count, "seed": 0 if seed is None else seed, "interrupted": interrupted}
        print_json({**audits[0], **common} if len(rules) == 1 else {"audits": audits, **common})
    else:
        print_tables(_table(reports, count, topology) for _, reports in done)
    if interrupted:
        last = f"{len(done[-1][1])} of {count} tables of {done[-1][0].name}"
        click.echo(f"resispec: interrupted after {last}; above is what was audited until then", err=True)
        return INTERRUPTED
    return EXIT_CODES[worst(report.verdict for _, reports in done for report in reports)]


def random_pairs(count: int, seed: int) -> list[tuple[Markov, Markov]]:
    """Pairs (target, draft) of rational tables: one with strong contrasts, then random ones, with some zeros."""
    rng = np.random.default_rng(seed)

    def random_table() -> Markov:
        rows = [rng.integers(0, 7, SIZE).tolist() for _ in range(SIZE + 1)]
        rows = [row if sum(row) else [1] * SIZE for row in rows]
        return Markov(fractions(*rows[0]), [fractions(*row) for row in rows[1:]])

    return [hard_pair(SIZE), *((random_table(), random_table()) for _ in range(count - 1))]


def _worst(reports: list[JointReport]) -> int:
    return max(range(len(reports)), key=lambda place: reports[place].total_variation)


def _json(
    reports: list[JointReport], pairs: list[tuple[Markov, Markov]], topology: Topology
) -> dict[str, Any]:
    place = _worst(reports)
    return {
        **reports[place].to_json(with_law=False),
        "verdict": worst(report.verdict for report in reports).value,
        "positions": topology.cost,
        "depth": topology.depth,
        "total_variation_by_table": [plain(report.total_variation) for report in reports],
        "accepted_length_by_table": [plain(report.accepted_length) for report in reports],
        "worst_table": place,
        "target": _rows(pairs[place][0]),
        "draft": _rows(pairs[place][1]),
    }


def _rows(model: Markov) -> dict[str, Any]:
    return {
        "start": [plain(mass) for mass in model.start],
        "rows": [[plain(mass) for mass in row] for row in model.rows],
    }


def _table(reports: list[JointReport], count: int, topology: Topology) -> Any:
    first, worst_report = reports[0], reports[_worst(reports)]
    verdicts = [report.verdict for report in reports]
    said = ", ".join(f"{value.value} on {verdicts.count(value)}" for value in dict.fromkeys(verdicts))
    mean = float(sum(report.accepted_length for report in reports) / len(reports))
    rows = [
        ("verdict", said),
        ("total variation of the first tokens, worst table", show(float(worst_report.total_variation))),
        (
            "the same of the first 1, 2, … tokens",
            " ".join(show(float(gap)) for gap in worst_report.by_length),
        ),
        ("tokens a step, mean", mean),
        ("subtrees summed on a table, at most", max(report.states for report in reports)),
    ]
    if worst_report.witness is not None:
        tokens, found, expected = worst_report.witness
        what = f"most overproduced tokens, table {_worst(reports)}"
        rows.append(
            (what, f"{' '.join(map(str, tokens))}: {show(float(found))}, target {show(float(expected))}")
        )
    audited = (
        f"{len(reports)} tables"
        if len(reports) == count
        else f"{len(reports)} of {count} tables, INTERRUPTED"
    )
    title = (
        f"{first.rule}, {first.draw} draws, {topology.cost} positions, depth {topology.depth}, first {first.horizon} "
        f"tokens, V = {first.vocabulary}: {audited}"
    )
    return table(title, ("", ""), rows)

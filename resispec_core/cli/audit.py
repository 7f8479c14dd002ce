"""`resispec audit`: the exact law of a rule on recorded logits or on a pair of laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from resispec_core.audit.pair import audit as audit_pair
from resispec_core.audit.positions import summarise
from resispec_core.audit.verdict import AuditReport
from resispec_core.cli.output import console, print_json, progress, show, table
from resispec_core.drafts import DRAW_MODES
from resispec_core.errors import InputError
from resispec_core.laws import law_from_logits, parse_law
from resispec_core.llama.store import LogitsStore, sample_store
from resispec_core.rules import RULES, Rule
from resispec_core.rules import rule as named_rule

DEFAULT_RULES = ("resispec", "specinfer")
INTERRUPTED = 130
WORST_SHOWN = 5


@click.command()
@click.option(
    "--rule",
    "names",
    multiple=True,
    metavar="NAME",
    help=f"Rule to audit; repeat for several. Default: {' and '.join(DEFAULT_RULES)}. See `resispec rules`.",
)
@click.option("--redistribution", metavar="KIND", help="resispec only: proportional, waterfill or uniform.")
@click.option("--budget", metavar="KIND", help="resispec only: local (Algorithm 1) or eq13.")
@click.option(
    "--candidates",
    "-n",
    type=int,
    default=None,
    help="Candidates a position. Default: 3 on logits, 1 on a pair.",
)
@click.option(
    "--draw",
    metavar="MODE",
    help=f"How candidates are drawn: {', '.join(DRAW_MODES)}. Default: the rule's own.",
)
@click.option(
    "--mismatched", is_flag=True, help="Allow a --draw the rule is not meant for, and audit that fault."
)
@click.option("--logits", "folder", metavar="DIR", help="A recorded store. Default: the one in the package.")
@click.option("--target", metavar="LAW", help="A pair instead: '1/3,1/3,1/3' (rationals or decimals, exact).")
@click.option("--draft", metavar="LAW", help="The draft law of that pair.")
@click.option(
    "--temperature", type=float, default=1.0, show_default=True, help="Applied to both rows of logits."
)
@click.option("--top-k", type=int, default=None, help="Filter on both rows of logits.")
@click.option("--top-p", type=float, default=None, help="Filter on both rows of logits.")
@click.option("--min-p", type=float, default=None, help="Filter on both rows of logits.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def audit(
    names: tuple[str, ...],
    redistribution: str | None,
    budget: str | None,
    candidates: int | None,
    draw: str | None,
    mismatched: bool,
    folder: str | None,
    target: str | None,
    draft: str | None,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    min_p: float | None,
    as_json: bool,
) -> int:
    """Does a verification rule keep the target law, and how much does it accept?

    Without --target and --draft the rule is audited at every position of recorded Llama logits.
    """
    rules = [_configured(name, redistribution, budget) for name in names or DEFAULT_RULES]
    how: dict[str, Any] = {"draw": draw, "mismatched": mismatched}
    if (target is None) != (draft is None):
        raise InputError("--target and --draft go together: give both laws of the pair, or neither")
    if target is not None and draft is not None:
        filters = {"--temperature": temperature != 1, "--top-k": top_k, "--top-p": top_p, "--min-p": min_p}
        used = [name for name, given in filters.items() if given]
        if folder or used:
            raise InputError(
                f"{(used or ['--logits'])[0]} applies to logits; --target and --draft are laws already"
            )
        p, q = parse_law(target, name="--target"), parse_law(draft, name="--draft")
        reports = [audit_pair(rule, p, q, 1 if candidates is None else candidates, **how) for rule in rules]
        _print([report.to_json() for report in reports], as_json, [_pair_table(report) for report in reports])
        return max(report.exit_code for report in reports)
    store = sample_store() if folder is None else LogitsStore.open(folder)
    shaping = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    n = 3 if candidates is None else candidates
    data, tables, status = [], [], 0
    for rule in rules:
        found, interrupted = _audit_store(rule, store, n, how, shaping, quiet=as_json)
        data.append(_store_json(rule, store, n, shaping, found, interrupted))
        tables += _store_tables(rule, store, n, found, interrupted)
        status = max(status, INTERRUPTED if interrupted else summarise(found).exit_code)
        if interrupted:
            break
    _print(data, as_json, tables)
    return status


def _configured(name: str, redistribution: str | None, budget: str | None) -> Rule:
    """The named rule; options that only some rules take are given to those that take them."""
    given = {"redistribution": redistribution, "budget": budget}
    if name in RULES and not set(RULES[name].options()) & set(given):
        given = {}
    return named_rule(name, **given)


def _print(data: list[dict[str, Any]], as_json: bool, tables: Sequence[Any]) -> None:
    if as_json:
        print_json(data[0] if len(data) == 1 else {"audits": data})
        return
    for item in tables:
        console().print(item)


def _pair_table(report: AuditReport) -> Any:
    gaps = report.distances
    rows = [
        ("verdict", report.verdict.value),
        ("law", "(" + ", ".join(show(value) for value in report.law) + ")"),
        ("total variation", report.total_variation),
        ("KL(target ‖ law), nats", gaps and gaps.kl),
        ("the paper's KL check", report.paper_check_kl),
        ("acceptance", report.acceptance),
        ("acceptance ceiling", report.ceiling),
        ("acceptance by candidate", ", ".join(show(value) for value in report.acceptance_by_candidate)),
        ("paths summed", f"{report.paths} ({report.method})"),
        ("witness", _witness_text(report)),
    ]
    title = f"{report.rule}, n = {report.candidates}, {report.draw} draws"
    return table(title, ("", ""), rows)


def _witness_text(report: AuditReport, decode: Any = str) -> str:
    path = report.witness
    if path is None:
        return "none: no token is returned too often"
    refused = "".join(f"reject {decode(token)}, " for token in path.rejected)
    how = "accept" if path.accepted else "resample"
    return f"{refused}{how} {decode(path.token)}: mass {show(path.mass)}"


def _audit_store(
    rule: Rule, store: LogitsStore, n: int, how: dict[str, Any], shaping: dict[str, Any], *, quiet: bool
) -> tuple[list[AuditReport], bool]:
    found: list[AuditReport] = []
    try:
        with progress(range(len(store)), f"audit {rule.name}", quiet=quiet) as places:
            for place in places:
                rows = store.row(place)
                p, q = (
                    law_from_logits(row, **shaping, name=f"position {place}, {side} row")
                    for row, side in zip(rows, ("target", "draft"), strict=True)
                )
                found.append(audit_pair(rule, p, q, n, **how))
    except KeyboardInterrupt:
        if not found:
            raise
        return found, True
    return found, False


def _store_json(
    rule: Rule,
    store: LogitsStore,
    n: int,
    shaping: dict[str, Any],
    found: list[AuditReport],
    interrupted: bool,
) -> dict[str, Any]:
    places = [
        {"position": place, **asdict(store.positions[place]), **report.to_json(with_law=False)}
        for place, report in enumerate(found)
    ]
    return {
        "rule": rule.name,
        "options": {name: getattr(rule, name) for name in rule.options()},
        "candidates": n,
        **shaping,
        "vocabulary": store.vocabulary,
        "interrupted": interrupted,
        "positions_in_store": len(store),
        **summarise(found).to_json(),
        "positions": places,
    }


def _store_tables(
    rule: Rule, store: LogitsStore, n: int, found: list[AuditReport], interrupted: bool
) -> list[Any]:
    total = summarise(found)
    audited = f"{total.positions} of {len(store)} positions" + (" (interrupted)" if interrupted else "")
    rows = [
        ("law", total.verdict.value + ": " + ", ".join(f"{n} {v}" for v, n in total.verdicts.items())),
        ("total variation, mean (certified)", total.mean_total_variation),
        ("total variation, largest", total.max_total_variation),
        ("total variation is at most", total.bound),
        ("acceptance, mean", total.mean_acceptance),
        ("ceiling of any exact rule, mean", total.mean_ceiling),
        ("positions above the ceiling", f"{total.positions_above_ceiling} of {total.positions}"),
        ("acceptance by candidate", ", ".join(show(value) for value in total.conditional_acceptance)),
        ("mass left unexplored, at most", total.max_unexplored),
    ]
    title = f"{rule.name}, n = {n}, {found[0].draw} draws, V = {store.vocabulary}: {audited}"
    tables = [table(title, ("", ""), rows)]
    biased = sorted(
        (r for r in range(len(found)) if found[r].witness), key=lambda r: -found[r].total_variation
    )
    if biased:
        decode = lambda token: repr(store.decode(token) or token)  # noqa: E731
        worst = [
            (
                repr(store.positions[place].context[-30:]),
                found[place].total_variation,
                found[place].acceptance,
                found[place].ceiling,
                _witness_text(found[place], decode),
            )
            for place in biased[:WORST_SHOWN]
        ]
        columns = ("worst positions: text before", "TV ≥", "acceptance", "ceiling", "witness")
        tables.append(table("", columns, worst))
    return tables

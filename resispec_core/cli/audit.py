"""`resispec audit`: the exact law of a rule on recorded logits or on a pair of laws, or of anybody's sampler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import click

from resispec_core.audit.pair import audit as audit_pair
from resispec_core.audit.positions import summarise, worst
from resispec_core.audit.verdict import EXIT_CODES, AuditReport
from resispec_core.cli.output import print_json, print_tables, progress, show, table
from resispec_core.cli.runs import OF_RUNS, audit_to_run, run_options
from resispec_core.cli.sampler import audit_installed, audit_sampler, refuse, sampler_options
from resispec_core.cli.totals import totals_table
from resispec_core.cli.tree_audit import audit_on_tree, tree_options
from resispec_core.drafts import DRAW_MODES
from resispec_core.errors import InputError
from resispec_core.laws import law_from_logits, parse_law
from resispec_core.llama.store import LogitsStore, sample_store
from resispec_core.rules import RULES, Rule
from resispec_core.rules import rule as named_rule
from resispec_core.runs.plan import Plan

DEFAULT_RULES = ("resispec", "specinfer")
INTERRUPTED = 130
WORST_SHOWN = 5
FILTERS = ("--temperature", "--top-k", "--top-p", "--min-p")


@click.command()
@sampler_options
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
@run_options
@tree_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def audit(
    subject: str | None,
    signature: str | None,
    horizon: int | None,
    library: str | None,
    precision: str | None,
    coins: int | None,
    write_to: str | None,
    package: str | None,
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
    out: Path | None,
    workers: int | None,
    scheduler: str | None,
    tree: str | None,
    tables: int | None,
    seed: int | None,
    as_json: bool,
) -> int:
    """Say whether a verification rule, or the sampler CALLABLE, keeps the target law.

    The law of the token it returns, over every candidate, coin and resample, against the target law; and its
    acceptance against the most that any exact rule can reach.

    Without --target and --draft the rule is audited at every position of recorded Llama logits. With --out the results
    go to a folder, position by position, and the same command continues after an interrupt. With --tree it is
    audited on draft trees over small random models: the law of the first tokens of repeated steps.

    CALLABLE is module:name or path/to/file.py:name. Its code is loaded and run here, unmodified, on inputs the suite
    picks (or on --target and --draft), under a random source that visits every outcome.
    """
    of_rules = {
        "--rule": names,
        "--redistribution": redistribution,
        "--budget": budget,
        "--mismatched": mismatched,
        "--logits": folder,
        "--temperature": None if temperature == 1 else temperature,
        "--top-k": top_k,
        "--top-p": top_p,
        "--min-p": min_p,
        "--out": out,
        "--workers": workers,
        "--scheduler": scheduler,
    }
    of_trees = {"--tree": tree, "--tables": tables, "--seed": seed}
    of_samplers = {
        "--signature": signature,
        "--horizon": horizon,
        "--library": library,
        "--precision": precision,
        "--coins": coins,
        "--write": write_to,
    }
    if package is not None:
        of_pairs = {"CALLABLE": subject, "--target": target, "--draft": draft, "--candidates": candidates}
        refuse(of_pairs | {"--draw": draw} | of_samplers | of_rules | of_trees, "does not go with --package")
        return audit_installed(package, as_json=as_json)
    if subject is not None:
        refuse(of_rules | of_trees, f"is about rules, and {subject} is a callable")
        return audit_sampler(
            subject,
            target=target,
            draft=draft,
            candidates=candidates,
            draw=draw,
            signature=signature,
            horizon=horizon,
            library=library or "numpy",
            precision=precision,
            coins=coins,
            write_to=write_to,
            as_json=as_json,
        )
    if tree is not None:
        of_pairs = {"--target": target, "--draft": draft, "--candidates": candidates}
        of_rows = {name: of_rules[name] for name in ("--mismatched", "--logits", *FILTERS, *OF_RUNS)}
        of_samplers.pop("--horizon")
        refuse(of_pairs | of_rows | of_samplers, "does not go with --tree")
        return audit_on_tree(
            _configured(names or DEFAULT_RULES, redistribution, budget),
            tree,
            draw=draw,
            horizon=horizon,
            count=tables,
            seed=seed,
            as_json=as_json,
        )
    refuse(of_trees, "goes with --tree")
    refuse(of_samplers, "needs a CALLABLE (module:name or path/to/file.py:name)")
    if out is None:
        refuse({"--workers": workers, "--scheduler": scheduler}, "needs --out RUN, where the results go")
    rules = _configured(names or DEFAULT_RULES, redistribution, budget)
    how: dict[str, Any] = {"draw": draw, "mismatched": mismatched}
    if (target is None) != (draft is None):
        raise InputError("--target and --draft go together: give both laws of the pair, or neither")
    if target is not None and draft is not None:
        filters = {"--top-k": top_k, "--top-p": top_p, "--min-p": min_p, "--logits": folder, "--out": out}
        used = [name for name, given in filters.items() if given is not None]
        if used or temperature != 1:
            raise InputError(
                f"{(used or ['--temperature'])[0]} applies to logits; --target and --draft are laws already"
            )
        p, q = parse_law(target, name="--target"), parse_law(draft, name="--draft")
        reports = [audit_pair(rule, p, q, 1 if candidates is None else candidates, **how) for rule in rules]
        if as_json:
            _print_json([report.to_json() for report in reports], alone=len(rules) == 1)
        else:
            print_tables(_pair_table(report) for report in reports)
        return EXIT_CODES[worst(report.verdict for report in reports)]
    shaping = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    n = 3 if candidates is None else candidates
    if out is not None:
        plan = Plan(rules, n, draw, mismatched, shaping)
        return audit_to_run(plan, folder, out, workers=workers, scheduler=scheduler, as_json=as_json)
    store = sample_store() if folder is None else LogitsStore.open(folder)
    if len(store) == 0:
        raise InputError(f"{store.path} holds no recorded position; finish it with `resispec record`")
    done: list[StoreAudit] = []
    for rule in rules:
        done.append(_audit_store(rule, store, n, how, shaping, quiet=as_json))
        if done[-1].interrupted:
            break
    finished = [item for item in done if item.reports]
    if not finished:
        raise KeyboardInterrupt
    if as_json:
        _print_json([_store_json(item, store, n, shaping) for item in finished], alone=len(rules) == 1)
    else:
        print_tables(block for item in finished for block in _store_tables(item, store, n))
    if done[-1].interrupted:
        last = f"{len(done[-1].reports)} of {len(store)} positions of {done[-1].rule.name}"
        click.echo(f"resispec: interrupted after {last}; above is what was audited until then", err=True)
        return INTERRUPTED
    return EXIT_CODES[worst(summarise(item.reports).verdict for item in finished)]


class StoreAudit(NamedTuple):
    """One rule at the positions that were audited before the end or an interrupt."""

    rule: Rule
    reports: list[AuditReport]
    interrupted: bool


def _configured(names: Sequence[str], redistribution: str | None, budget: str | None) -> list[Rule]:
    """The named rules; an option goes to the rules that take it, and is refused where none does."""
    given = {name: value for name, value in (("redistribution", redistribution), ("budget", budget)) if value}
    kinds = [type(named_rule(name)) for name in names]
    for option in given:
        if not any(option in kind.options() for kind in kinds):
            takers = [name for name, kind in RULES.items() if option in kind.options()]
            raise InputError(
                f"--{option} is an option of {' and '.join(takers)}, not of {' or '.join(names)}; leave it out"
            )
    return [
        named_rule(kind.name, **{key: value for key, value in given.items() if key in kind.options()})
        for kind in kinds
    ]


def _print_json(data: list[dict[str, Any]], *, alone: bool) -> None:
    """One rule asked for: its object. Several: a list under ``audits``, even if an interrupt left only one."""
    print_json(data[0] if alone else {"audits": data})


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
        ("witness path: its mass", _witness_text(report)),
    ]
    title = f"{report.rule}, n = {report.candidates}, {report.draw} draws"
    return table(title, ("", ""), rows)


def _witness_text(report: AuditReport, decode: Any = str) -> str:
    path = report.witness
    if path is None:
        return "none: no token is returned too often"
    refused = "".join(f"reject {decode(token)}, " for token in path.rejected)
    how = "accept" if path.accepted else "resample"
    return f"{refused}{how} {decode(path.token)}: {show(path.mass)}"


def _audit_store(
    rule: Rule, store: LogitsStore, n: int, how: dict[str, Any], shaping: dict[str, Any], *, quiet: bool
) -> StoreAudit:
    """Audit position by position; Ctrl-C keeps the positions that are done."""
    found: list[AuditReport] = []
    try:
        with progress(range(len(store)), f"audit {rule.name}", quiet=quiet) as places:
            for place in places:
                rows = store.row(place)
                p, q = (
                    law_from_logits(row, **shaping, name=f"{store.path}, position {place}, {side} row")
                    for row, side in zip(rows, ("target", "draft"), strict=True)
                )
                found.append(audit_pair(rule, p, q, n, **how))
    except KeyboardInterrupt:
        return StoreAudit(rule, found, True)
    return StoreAudit(rule, found, False)


def _store_json(done: StoreAudit, store: LogitsStore, n: int, shaping: dict[str, Any]) -> dict[str, Any]:
    places = [
        {"position": place, **asdict(store.positions[place]), **report.to_json(with_law=False)}
        for place, report in enumerate(done.reports)
    ]
    return {
        "rule": done.rule.name,
        "options": {name: getattr(done.rule, name) for name in done.rule.options()},
        "candidates": n,
        **shaping,
        "vocabulary": store.vocabulary,
        "interrupted": done.interrupted,
        "positions_in_store": len(store),
        **summarise(done.reports).to_json(),
        "positions": places,
    }


def _store_tables(done: StoreAudit, store: LogitsStore, n: int) -> list[Any]:
    total = summarise(done.reports)
    audited = f"{total.positions} of {len(store)} positions" + (", INTERRUPTED" if done.interrupted else "")
    title = f"{done.rule.name}, n = {n}, {done.reports[0].draw} draws, V = {store.vocabulary}: {audited}"
    tables = [totals_table(title, total)]
    found = done.reports
    biased = sorted(
        (place for place in range(len(found)) if found[place].witness),
        key=lambda place: -found[place].total_variation,
    )
    if biased:
        worst_places = [
            (
                repr(store.positions[place].context[-24:]),
                found[place].total_variation,
                found[place].acceptance,
                found[place].ceiling,
                _witness_text(found[place], lambda token: repr(store.decode(token) or token)),
            )
            for place in biased[:WORST_SHOWN]
        ]
        columns = (
            "text before the worst positions",
            "TV ≥",
            "acceptance",
            "ceiling",
            "witness path: its mass",
        )
        tables.append(table("", columns, worst_places))
    return tables

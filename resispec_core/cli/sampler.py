"""The part of `resispec audit` that takes somebody's sampler, or an installed package, instead of a rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from resispec_core.adapters import PACKAGES, Audited, audit_package
from resispec_core.adapters.callable import SIGNATURES, CallableAudit, audit_callable, importable
from resispec_core.audit.positions import worst
from resispec_core.audit.verdict import EXIT_CODES
from resispec_core.cli.output import console, print_json, print_tables, show, table
from resispec_core.errors import InputError
from resispec_core.laws import parse_law
from resispec_core.rules import RULES

OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("subject", required=False, metavar="[CALLABLE]"),
    click.option(
        "--signature",
        metavar="NAME",
        help=f"CALLABLE only: {', '.join(SIGNATURES)}. Default: guessed from the parameter names.",
    ),
    click.option(
        "--horizon",
        type=int,
        metavar="L",
        help="A step or --tree: tokens whose joint law is compared. Default: 3; on a tree its depth + 1, at most 6.",
    ),
    click.option("--library", metavar="NAME", help="CALLABLE only: rows are numpy (default) or torch."),
    click.option(
        "--precision", metavar="DTYPE", help="CALLABLE only: the type it computes in, float32 or shorter."
    ),
    click.option("--coins", type=int, help="A kernel only: how many uniforms it takes. Default: n + 1."),
    click.option(
        "--write",
        "write_to",
        metavar="PATH",
        help="CALLABLE only: file or folder for the counterexample. Default: the working directory.",
    ),
    click.option("--package", metavar="NAME", help=f"Audit an installed package: {', '.join(PACKAGES)}."),
)


def sampler_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of this file to a command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def refuse(options: dict[str, Any], why: str) -> None:
    """``InputError`` for the first option that was given (is neither None nor False nor empty)."""
    for name, given in options.items():
        if given is not None and given is not False and given != ():
            raise InputError(f"{name} {why}; leave it out")


def audit_sampler(
    subject: str,
    *,
    target: str | None,
    draft: str | None,
    candidates: int | None,
    draw: str | None,
    horizon: int | None,
    write_to: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Audit the callable named ``subject``, print the verdict, the witness and the file written; the exit code."""
    if (target is None) != (draft is None):
        raise InputError(
            "--target and --draft go together: give both rows, or neither for the suite's own cases"
        )
    if candidates is not None and candidates < 1:
        raise InputError(f"candidates is {candidates}; at least one token must be drafted")
    if ":" not in subject and subject in RULES:
        raise InputError(f"{subject!r} is a rule; write --rule {subject}")
    p = None if target is None else parse_law(target, name="--target")
    q = None if draft is None else parse_law(draft, name="--draft")
    status = Console(stderr=True).status(f"auditing {subject}")
    with status, importable(subject):
        result = audit_callable(
            subject,
            target=p,
            draft=q,
            **options,
            candidates=candidates,
            draw=draw or "iid",
            horizon=3 if horizon is None else horizon,
            write_to=Path() if write_to is None else write_to,
            progress=lambda text: status.update(f"{subject}: {text}"),
        )
    if as_json:
        print_json(result.to_json())
    else:
        _print(result)
    return result.exit_code


def _print(result: CallableAudit) -> None:
    report, case = result.worst, result.counterexample
    facts: list[tuple[str, Any]] = [
        ("verdict", result.verdict.value),
        ("inputs tried", len(result.reports)),
        ("total variation, worst input", report.total_variation),
    ]
    if result.signature == "kernel":
        facts += [("measured, calls on that input", report.calls)]
    else:
        facts += [
            ("the same of the first token alone", report.first_token),
            ("mass on tokens the target never gives", report.zero_mass),
            ("mass of crashes", report.crash_mass),
            ("paths summed on that input", report.paths),
            ("rows", report.numbers),
        ]
    tables = [table(f"{result.subject}, {result.signature}", ("", ""), facts)]
    if case is not None:
        tables.append(table("counterexample, shrunk", ("", ""), _case_facts(case.to_json())))
    print_tables(tables)
    screen = console()
    if case is not None:
        witness = case.found.get("witness")
        for name, text in (("witness", witness), ("written to", result.written)):
            if text:
                screen.print(f"{name}: {text}", markup=False, soft_wrap=True)
        screen.print(f"see it again: resispec replay {result.written}", markup=False, soft_wrap=True)
    for note in [*result.notes, *getattr(report, "notes", []), *getattr(report, "findings", [])[:3]]:
        screen.print(f"note: {note}", markup=False, soft_wrap=True)


def _case_facts(case: dict[str, Any]) -> list[tuple[str, Any]]:
    settings = case["settings"]

    def row(entries: Any) -> str:
        return "(" + ", ".join(entries) + ")"

    facts: list[tuple[str, Any]] = []
    for side in ("target", "draft"):
        given = case[side]
        if isinstance(given, dict):
            facts.append((f"{side}, first token", row(given["start"])))
            facts += [(f"{side} after {token}", row(entries)) for token, entries in enumerate(given["rows"])]
        else:
            facts.append((side, row(given)))
    facts += [(name, settings[name]) for name in ("candidates", "draw", "horizon") if name in settings]
    return [*facts, ("total variation", case["found"]["total_variation"])]


def audit_installed(name: str, *, as_json: bool) -> int:
    """Audit the known samplers of an installed package; the exit code.

    What the generator's real coin grid adds is printed in a column of its own and left out of the verdict and the exit
    code: it is what a coin of exactly 0 does, not the rule's bias, and it depends on the machine's generator.
    """
    with Console(stderr=True).status(f"auditing {name}"):
        found = audit_package(name)
    verdict = worst(item.report.verdict for item in found if not item.report.grid)
    on_grid = [item.report.verdict for item in found if item.report.grid]
    if as_json:
        print_json(
            {
                "package": name,
                "version": found[0].version,
                "verdict": verdict.value,
                "verdict_on_the_coin_grid": worst(on_grid).value if on_grid else None,
                "audits": [item.to_json() for item in found],
            }
        )
    else:
        print_tables([_package_table(found)])
        if on_grid:
            console().print(
                "real coin grid: what coins of exactly 0 do; not part of the verdict or the exit code"
            )
    return EXIT_CODES[verdict]


def _package_table(found: list[Audited]) -> Any:
    rows = []
    for item in found:
        report = item.report
        figures = [show(float(report.total_variation)), show(float(report.zero_mass))]
        if report.grid:
            shown = ["", "", "", f"TV {figures[0]}; {figures[1]} where p = 0"]
        else:
            shown = [report.verdict.value, *figures, ""]
        rows.append((f"{item.function}: {item.setting}", *shown, report.paths))
    columns = ("function", "verdict", "TV", "mass where p = 0", "real coin grid", "paths")
    return table(f"{found[0].package} {found[0].version}", columns, rows)

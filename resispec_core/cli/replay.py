"""``resispec replay FILE``: see a counterexample again."""

from __future__ import annotations

import json
from typing import Any

import click

from resispec_core.audit.counterexample import load, reproduce
from resispec_core.cli.callable import load_callable
from resispec_core.errors import BudgetExceededError, InputError


@click.command("replay")
@click.argument("file", type=click.Path())
@click.option(
    "--callable", "spec", help="Reproduce on this callable instead (module:callable or file.py:callable)."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def replay(file: str, spec: str | None, as_json: bool) -> None:
    """Audit a counterexample file's subject on its input again.

    Exit status: 0 the fault is gone, 1 it is still there, 2 the file or the subject is unusable, 3 inconclusive.
    A file that names a callable runs that code on this machine.
    """
    try:
        case = load(file)
        if spec is not None and case.kind == "rule":
            raise InputError(
                f"{file} is about the rule {case.subject!r}; --callable needs a callable's counterexample"
            )
        function = None if case.kind == "rule" else load_callable(spec or case.subject)
        report: Any = reproduce(case, function)
    except (InputError, BudgetExceededError) as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(2) from None
    data = report.to_json()
    if as_json:
        click.echo(json.dumps(data))
    else:
        click.echo(f"{spec or case.subject} ({case.kind})")
        click.echo(
            f"  in the file: {case.found.get('verdict')}, TV = {_number(case.found.get('total_variation'))}"
        )
        click.echo(f"  now:         {data['verdict']}, TV = {_number(data['total_variation'])}")
        if data.get("witness"):
            click.echo(f"  witness:     {data['witness']}")
    raise SystemExit(report.exit_code)


def _number(value: Any) -> str:
    return str(value) if value is None or len(str(value)) <= 24 else f"{_as_float(value):.10g}"


def _as_float(value: Any) -> float:
    from fractions import Fraction

    return float(Fraction(value))

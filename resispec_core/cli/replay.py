"""``resispec replay FILE``: see a counterexample again."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import click

from resispec_core.adapters.callable import importable, load_callable
from resispec_core.audit.counterexample import load, reproduce
from resispec_core.cli.output import console, print_json, print_tables, show, table
from resispec_core.errors import InputError


@click.command("replay")
@click.argument("file", type=click.Path())
@click.option(
    "--callable", "spec", help="Reproduce on this callable instead (module:callable or file.py:callable)."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def replay(file: str, spec: str | None, as_json: bool) -> int:
    """Audit a counterexample file's subject on its input again.

    Exit status: 0 the fault is gone, 1 it is still there, 2 the file or the subject is unusable, 3 inconclusive.
    A file that names a callable runs that code on this machine.
    """
    case = load(file)
    if spec is not None and case.kind == "rule":
        raise InputError(
            f"{file} is about the rule {case.subject!r}; --callable needs a callable's counterexample"
        )
    subject = spec or case.subject
    with importable(subject):
        function = None if case.kind == "rule" else load_callable(subject)
        report: Any = reproduce(case, function)
    data = report.to_json()
    if as_json:
        print_json(data)
        return int(report.exit_code)
    rows = [
        ("in the file", case.found.get("verdict"), _short(case.found.get("total_variation"))),
        ("now", data["verdict"], _short(data["total_variation"])),
    ]
    print_tables([table(f"{subject} ({case.kind})", ("", "verdict", "total variation"), rows)])
    witness = data.get("witness")
    if isinstance(witness, str):
        console().print(f"witness: {witness}", markup=False, soft_wrap=True)
    return int(report.exit_code)


def _short(value: Any) -> str:
    """A number as ``show`` prints it; what a file says instead of one, as it stands."""
    try:
        return show(value if value is None or isinstance(value, float) else Fraction(value))
    except (TypeError, ValueError, ZeroDivisionError):
        return f"{value!s:.40}"

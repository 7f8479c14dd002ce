"""``resispec replay FILE``: see a counterexample again."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import click

from resispec_core.adapters.callable import importable, load_callable
from resispec_core.audit.counterexample import Counterexample, load, reproduce, row
from resispec_core.cli.output import console, print_json, print_tables, show, table
from resispec_core.errors import InputError


@click.command("replay")
@click.argument("file", type=click.Path())
@click.option(
    "--callable", "spec", help="Reproduce on this callable instead (module:callable or file.py:callable)."
)
@click.option(
    "--on",
    "place",
    type=click.Choice(["reference", "gpu"]),
    default="reference",
    show_default=True,
    help="gpu: measure a rule's GPU twin too; without a device its array-level version, on the CPU.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def replay(file: str, spec: str | None, place: str, as_json: bool) -> int:
    """Audit a counterexample file's subject on its input again.

    Exit status: 0 the fault is gone, 1 it is still there (or the GPU twin differs from the reference), 2 the file or
    the subject is unusable, 3 inconclusive or measured only. A file that names a callable runs that code on this
    machine.
    """
    case = load(file)
    if place == "gpu":
        return _on_twin(file, case, spec, as_json)
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


def _on_twin(file: str, case: Counterexample, spec: str | None, as_json: bool) -> int:
    """The same for a rule's GPU twin, beside the reference."""
    if case.kind != "rule" or spec is not None:
        raise InputError(f"{file} is about the callable {spec or case.subject}; only a rule has a GPU twin")
    from resispec_core.gpu.twin import twin_audit  # only this option needs it

    kept = {
        name: case.settings[name] for name in ("candidates", "draw", "mismatched") if name in case.settings
    }
    rows = (row(case.target, "target"), row(case.draft, "draft"))
    report = twin_audit(case.subject, *rows, options=case.options, **kept)
    if as_json:
        print_json(report.to_json())
        return report.exit_code
    shown = [
        ("in the file", case.found.get("verdict"), _short(case.found.get("total_variation"))),
        ("reference", report.reference.verdict.value, show(report.reference.total_variation)),
        ("GPU twin, measured", report.verdict.value, show(report.total_variation)),
    ]
    print_tables([table(f"{case.subject} ({case.kind})", ("", "verdict", "total variation"), shown)])
    apart = f"TV {show(report.from_reference)} between twin and reference, rounding {report.rounding:.1g}"
    if report.missed:
        apart += f"; {report.missed:.0%} of random coins gave another token than the thresholds measured"
    for line in (
        f"runs on: {report.runs_on}",
        f"{'they agree' if report.agrees else 'THEY DIFFER'}: {apart}",
    ):
        console().print(line, markup=False, soft_wrap=True)
    return report.exit_code


def _short(value: Any) -> str:
    """A number as ``show`` prints it; what a file says instead of one, as it stands."""
    try:
        return show(value if value is None or isinstance(value, float) else Fraction(value))
    except (TypeError, ValueError, ZeroDivisionError):
        return f"{value!s:.40}"

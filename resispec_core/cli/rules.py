"""`resispec rules`: what can be audited by name."""

from __future__ import annotations

from typing import Any

import click

from resispec_core.cli.output import print_json, print_tables, table
from resispec_core.rules import RULES


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rules(as_json: bool) -> None:
    """List the verification rules.

    How their candidates are drawn, what they do, and (in the JSON) their options and whether they are lossy.
    """
    listed: list[dict[str, Any]] = [
        {
            "name": kind.name,
            "draws": list(kind.draws),
            "lossy": kind.lossy,
            "options": kind.options(),
            "summary": kind.summary,
        }
        for kind in RULES.values()
    ]
    if as_json:
        print_json({"rules": listed})
        return
    rows = [(rule["name"], ", ".join(rule["draws"]), rule["summary"]) for rule in listed]
    print_tables([table("Verification rules", ("rule", "candidates drawn", "what it does"), rows)])

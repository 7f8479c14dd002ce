"""``python -m proofs.symbolic [--json] [NAME ...]``: run the checks, print what each found.

Exit status: 0 every finding as the ledger says, 1 some finding differs or a wrong variant passed,
2 unknown name, 3 the solver gave up on one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

from . import exact_rules, identity, published_rule, theorem2
from .finding import Finding

CHECKS: dict[str, Callable[[], Finding]] = {
    "single-draft": exact_rules.single_draft,
    "specinfer": exact_rules.specinfer,
    "shaped": exact_rules.shaped,
    "target-match": exact_rules.target_matching,
    "deterministic": exact_rules.deterministic,
    "published-two-tokens": published_rule.two_tokens,
    **{
        f"published-{how}-{'positive' if positive else 'any'}": partial(
            published_rule.smallest_counterexample, how, positive
        )
        for how in published_rule.REDISTRIBUTIONS
        for positive in (False, True)
    },
    "theorem2-monotone": theorem2.non_strict,
    "theorem2-strict": theorem2.strict_as_stated,
    "theorem2-strict-bottleneck": theorem2.strict_with_bottleneck,
    "appendix-b": identity.appendix_b,
}


def show(findings: list[Finding]) -> None:
    """Print one row a finding."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Symbolic and SMT checks")
    for column in ("check", "statement", "found", "expected", "wrong variant", "seconds", "witness"):
        table.add_column(column, overflow="fold")
    for f in findings:
        values = {k: v if isinstance(v, str) else ", ".join(v) for k, v in (f.witness or {}).items()}
        witness = "; ".join(f"{k} = {v}" for k, v in values.items())
        rejected = "rejected" if f.planted == "fails" else f"NOT REJECTED ({f.planted})"
        table.add_row(f.name, f.statement, f.found, f.expected, rejected, f"{f.seconds:.1f}", witness)
    Console().print(table)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m proofs.symbolic", description="Run the symbolic and SMT checks."
    )
    names = f"checks to run (default: all): {', '.join(CHECKS)}"
    parser.add_argument("names", nargs="*", metavar="NAME", help=names)
    parser.add_argument("--json", action="store_true", help="print the findings as one JSON array")
    options = parser.parse_args(arguments)
    unknown = [n for n in options.names if n not in CHECKS]
    if unknown:
        parser.error(f"no check called {unknown[0]!r}; choose from {', '.join(CHECKS)}")
    findings = []
    for name in options.names or CHECKS:
        print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
        findings.append(CHECKS[name]())
        print(f"{findings[-1].seconds:.1f} s", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps([asdict(f) | {"as_expected": f.as_expected} for f in findings], indent=2))
    else:
        show(findings)
    if all(f.as_expected for f in findings):
        return 0
    return 3 if any("unknown" in (f.found, f.planted) for f in findings) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``python -m proofs.ledger [--check]``: write proofs/README.md from proofs/ledger.toml, or say that it is stale.

Exit status: 0 written or up to date, 1 stale (with ``--check``), 2 the ledger is malformed.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LEDGER, PAGE = HERE / "ledger.toml", HERE / "README.md"
VERDICTS = ("holds", "holds with a stated correction", "refuted", "not yet checked here")
BASES = {
    "theorem": "proved in Coq for every vocabulary size",
    "exhaustive": "every small case, in rationals",
    "tested": "random cases in rationals",
    "measured": "the shipped logits: this pair and temperature only",
}
TEXTS = {"id", "of", "title", "assumptions", "verdict", "basis", "note", "proof", "page"}
LISTS = {"theorems", "tests", "runs"}
Claim = dict[str, Any]

INTRODUCTION = """# Claims and what checks them

This page is written from `proofs/ledger.toml` by `python -m proofs.ledger`; edit that file. The tests in
`tests/proofs/test_ledger.py` fail if a claim has no check, a theorem or symbolic check no claim, a theorem is not in
`proofs/formal/assumptions.v`, a test does not exist, or a command ends with another status than stated.

The paper is arXiv 2608.24411; its claims are restated in our words. p is the target law, q the draft law, n the number
of candidates for one position. How to run everything:

    make -C proofs/formal                  # the theorems, and what each rests on
    python -m proofs.symbolic              # SMT and symbolic checks
    python -m pytest tests/proofs          # both, their planted faults, the link to the rules, this ledger

| basis | meaning |
|---|---|
"""


def read(path: Path | None = None) -> list[Claim]:
    """The claims of proofs/ledger.toml, in order. Raises ``ValueError`` naming the claim and what is wrong with it."""
    path = path or LEDGER
    claims: list[Claim] = tomllib.loads(path.read_text())["claim"]
    for claim in claims:
        if faults := faults_of(claim):
            raise ValueError(f"{path.name}: claim {claim.get('id', '?')!r}: {'; '.join(faults)}")
    return claims


def faults_of(claim: Claim) -> list[str]:
    """What is wrong with one entry on its own."""
    faults = [f"unknown key {key!r}" for key in claim.keys() - TEXTS - LISTS - {"symbolic"}]
    faults += [f"no {key}" for key in ("id", "of", "title", "assumptions", "verdict") if not claim.get(key)]
    if claim.get("verdict") not in VERDICTS:
        faults.append(f"verdict {claim.get('verdict')!r} is none of {', '.join(VERDICTS)}")
    elif claim["verdict"] == VERDICTS[-1]:
        faults += [] if claim.get("note") else ["not checked, and no reason given"]
        faults += [
            f"not checked, yet it has {key}" for key in ("tests", "theorems", "basis") if claim.get(key)
        ]
    else:
        faults += [] if claim.get("tests") else ["no executable check"]
        faults += (
            []
            if claim.get("basis") in BASES
            else [f"basis {claim.get('basis')!r} is none of {', '.join(BASES)}"]
        )
        if (claim.get("basis") == "theorem") != bool(claim.get("theorems")):
            faults.append("basis 'theorem' and a list of theorems go together")
        if claim["verdict"] != "holds" and not claim.get("note"):
            faults.append("no note that states the correction or the refutation")
    return faults


def files_of_theorems() -> dict[str, str]:
    """Theorem name -> the file in proofs/formal that states it."""
    found = {}
    for file in sorted((HERE / "formal").glob("*.v")):
        for line in file.read_text().splitlines():
            if line.startswith(("Theorem ", "Corollary ")):
                found[line.split()[1]] = file.name
    return found


def page(claims: list[Claim]) -> str:
    """The text of proofs/README.md."""
    stated = files_of_theorems()
    parts = [INTRODUCTION + "".join(f"| {name} | {text} |\n" for name, text in BASES.items())]
    for heading, source in (("Claims of the paper", "paper"), ("Claims of this project", "ours")):
        chosen = [claim for claim in claims if claim["of"] == source]
        parts.append(f"\n## {heading}\n\n| claim | verdict | basis |\n|---|---|---|\n")
        parts += [
            f"| [{claim['title'].replace('|', chr(92) + '|')}](#{claim['id']}) | {claim['verdict']} "
            f"| {claim.get('basis', '')} |\n"
            for claim in chosen
        ]
    for claim in claims:
        parts.append(section(claim, stated))
    return "".join(parts)


def section(claim: Claim, stated: dict[str, str]) -> str:
    lines = [f'\n<a id="{claim["id"]}"></a>\n### {claim["title"]}\n']
    lines.append(
        f"**{claim['verdict'].capitalize()}**" + (f" ({claim['basis']})." if "basis" in claim else ".")
    )
    if "note" in claim:
        lines[-1] += f" {claim['note']}"
    lines.append("")
    lines.append(f"- Assumes: {claim['assumptions']}.")
    if "proof" in claim:
        lines.append(f"- Why: {claim['proof']}")
    if "page" in claim:
        lines.append(f"- Read: [{claim['page']}](../{claim['page']})")
    for name in sorted({stated.get(theorem, "?") for theorem in claim.get("theorems", [])}):
        names = ", ".join(f"`{theorem}`" for theorem in claim["theorems"] if stated.get(theorem, "?") == name)
        lines.append(f"- Theorems in [{name}](formal/{name}): {names}")
    for name, found in claim.get("symbolic", {}).items():
        lines.append(f"- `python -m proofs.symbolic {name}`: the statement {found}")
    for run in claim.get("runs", []):
        lines.append(f"- `{run['command']}` ends with status {run['status']}")
    lines += [f"- Test `{test}`" for test in claim.get("tests", [])]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        text = page(read())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if not arguments:
        PAGE.write_text(text)
        return 0
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    print("proofs/README.md is stale: run python -m proofs.ledger", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

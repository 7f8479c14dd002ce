"""Every claim has a check, every check a claim, and what the ledger names exists and does what it says."""

from __future__ import annotations

import copy
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # proofs/ is not part of the installed package

from proofs import ledger  # noqa: E402
from resispec_core.cli.main import main as resispec  # noqa: E402

CLAIMS = ledger.read()
UNCHECKED = next(claim["id"] for claim in CLAIMS if claim["verdict"] == ledger.VERDICTS[-1])
PRINTED = set(re.findall(r"Print Assumptions (\w+)\.", (ROOT / "proofs/formal/assumptions.v").read_text()))
PAPER = {
    "proposition-1",
    "lemma-1",
    "proposition-2",
    "degeneracy",
    "support-paradox",
    "eq-12",
    "eq-13",
    "theorem-1",
    "theorem-2",
    "appendix-b",
    "kl-shows-exactness",
    "residual-drift",
    "later-candidates",
    "no-extra-pass",
    "deeper-narrower",
    "sequoia-eagle",
}
"""The claims of the paper that must have a verdict. One that is dropped from the ledger is noticed here."""
LINKED = (
    r"tests/proofs/test_link\.py::(test_the_rule_is_its_definition|test_optimal_is_its_definition_and\w*)\["
)
"""Checks that must belong to a claim, besides every theorem and every symbolic check."""


def collected(files: set[str]) -> set[str]:
    """The test ids that pytest finds in ``files``."""
    run = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run([*run, *sorted(files)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return {line for line in done.stdout.splitlines() if "::" in line}


def faults(claims: list[ledger.Claim], printed: set[str], symbolic: set[str], tests: set[str]) -> list[str]:
    """Everything in which claims and checks do not match."""
    found = [f"{claim.get('id')}: {fault}" for claim in claims for fault in ledger.faults_of(claim)]
    names = [claim.get("id") for claim in claims]
    found += [f"{name}: listed twice" for name in {n for n in names if names.count(n) > 1}]
    found += [f"{name}: a claim of the paper without a verdict" for name in PAPER - set(names)]
    for kind, known in (("theorems", printed), ("symbolic", symbolic), ("tests", tests)):
        for claim in claims:
            found += [
                f"{claim.get('id')}: no such {kind}: {name}"
                for name in claim.get(kind, [])
                if name not in known
            ]
        named = {name for claim in claims for name in claim.get(kind, [])}
        needed = {test for test in known if re.match(LINKED, test)} if kind == "tests" else known
        found += [f"{name}: a check ({kind}) of no claim" for name in sorted(needed - named)]
    return found


@pytest.fixture(scope="module")
def known_checks() -> tuple[set[str], set[str], set[str]]:
    pytest.importorskip("z3", reason="z3-solver is not installed")
    pytest.importorskip("sympy", reason="sympy is not installed")
    from proofs.symbolic.__main__ import CHECKS

    files = {test.partition("::")[0] for claim in CLAIMS for test in claim.get("tests", [])}
    return PRINTED, set(CHECKS), collected(files | {"tests/proofs/test_link.py"})


def test_claims_and_checks_match(known_checks: tuple[set[str], set[str], set[str]]) -> None:
    assert faults(CLAIMS, *known_checks) == []


def test_every_mismatch_is_reported(known_checks: tuple[set[str], set[str], set[str]]) -> None:
    """Planted faults, one at a time, in an otherwise good ledger."""

    def after(change) -> list[str]:
        claims = copy.deepcopy(CLAIMS)
        by_id = {claim["id"]: claim for claim in claims}
        change(claims, by_id)
        return faults(claims, *known_checks)

    def one(words: str, change) -> None:
        reported = after(change)
        assert any(words in fault for fault in reported), (words, reported)

    one("chain: no executable check", lambda claims, by_id: by_id["chain"].pop("tests"))
    one(
        "kseq_exact: a check (theorems) of no claim",
        lambda claims, by_id: by_id["k-seq"]["theorems"].remove("kseq_exact"),
    )
    one("shaped: a check (symbolic) of no claim", lambda claims, by_id: by_id["shaped"]["symbolic"].clear())
    one("[k-seq]: a check (tests) of no claim", lambda claims, by_id: by_id["k-seq"]["tests"].pop(0))
    one(
        "no such theorems: chain_inexact",
        lambda claims, by_id: by_id["chain"]["theorems"].append("chain_inexact"),
    )
    one("no such symbolic: hope", lambda claims, by_id: by_id["shaped"]["symbolic"].update(hope="holds"))
    one("no such tests: tests/a.py::b", lambda claims, by_id: by_id["chain"]["tests"].append("tests/a.py::b"))
    one("eq-12: a claim of the paper without a verdict", lambda claims, by_id: claims.remove(by_id["eq-12"]))
    one("chain: listed twice", lambda claims, by_id: claims.append(by_id["chain"]))
    one("verdict 'true' is none of", lambda claims, by_id: by_id["chain"].update(verdict="true"))
    one("no note that states", lambda claims, by_id: by_id["theorem-1"].pop("note"))
    one("no reason given", lambda claims, by_id: by_id[UNCHECKED].pop("note"))
    one("go together", lambda claims, by_id: by_id["eq-12"].update(basis="theorem"))
    one(
        "not checked, yet it has tests",
        lambda claims, by_id: by_id[UNCHECKED].update(tests=["tests/a.py::b"]),
    )


def test_the_page_is_written_from_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ledger.main(["--check"]) == 0, "run python -m proofs.ledger"
    stale = tmp_path / "README.md"
    stale.write_text(ledger.PAGE.read_text().replace("**Refuted**", "**Holds**", 1))
    monkeypatch.setattr(ledger, "PAGE", stale)
    assert ledger.main(["--check"]) == 1
    assert ledger.main([]) == 0
    assert ledger.main(["--check"]) == 0
    assert ledger.main(["--chekc"]) == 2


def test_a_malformed_ledger_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "ledger.toml"
    bad.write_text(ledger.LEDGER.read_text().replace('id = "eq-12"', 'id = "eq-12"\nverdit = "x"', 1))
    monkeypatch.setattr(ledger, "LEDGER", bad)
    with pytest.raises(ValueError, match="claim 'eq-12': unknown key 'verdit'"):
        ledger.read()
    assert ledger.main([]) == 2
    assert "eq-12" in capsys.readouterr().err


def test_links_of_the_page_lead_somewhere() -> None:
    text = ledger.PAGE.read_text()
    anchors = set(re.findall(r'<a id="([^"]+)">', text))
    assert anchors == {claim["id"] for claim in CLAIMS}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert target[1:] in anchors if target.startswith("#") else (ledger.PAGE.parent / target).exists(), (
            target
        )


RUNS = [(run["command"], run["status"]) for claim in CLAIMS for run in claim.get("runs", [])]


def status_of(command: str) -> int:
    words = shlex.split(command)
    assert words[0] == "resispec"
    with pytest.raises(SystemExit) as stop:
        resispec(words[1:])
    return int(stop.value.code or 0)


@pytest.mark.parametrize(("command", "status"), RUNS)
def test_a_command_ends_as_stated(command: str, status: int) -> None:
    assert status_of(command) == status


def test_another_status_is_noticed() -> None:
    exact = [command for command, status in RUNS if status == 0 and "--rule specinfer" in command]
    assert exact
    assert status_of(exact[0].replace("--rule specinfer", "--rule resispec")) == 1

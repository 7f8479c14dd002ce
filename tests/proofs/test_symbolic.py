"""The symbolic and SMT checks find what the ledger says, and reject their planted wrong variants."""

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")
pytest.importorskip("sympy", reason="sympy is not installed")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # proofs/ is not part of the installed package

from proofs import ledger  # noqa: E402
from proofs.symbolic import __main__ as command  # noqa: E402
from proofs.symbolic.finding import Finding, decide  # noqa: E402
from proofs.symbolic.published_rule import REDISTRIBUTIONS, brute_force, published_law  # noqa: E402


@pytest.mark.parametrize("name", command.CHECKS)
def test_finding(name: str) -> None:
    finding = command.CHECKS[name]()
    assert finding.name == name
    assert finding.found == finding.expected, finding
    assert finding.planted == "fails", finding
    assert (finding.witness is not None) == (finding.expected == "fails")
    assert {claim["symbolic"][name] for claim in ledger.read() if name in claim.get("symbolic", {})} == {
        finding.found
    }


@pytest.mark.parametrize(
    ("how", "law"),
    [
        ("proportional", ["107/282", "46/105", "1801/9870"]),
        ("water-filling", ["7/18", "7/15", "13/90"]),
    ],
)
def test_published_law_agrees_with_the_formal_proof(how: str, law: list[str]) -> None:
    p, q = [Fraction(1, 3)] * 3, [Fraction(1, 2), Fraction(2, 5), Fraction(1, 10)]
    assert [str(x) for x in published_law(p, q, how)] == law


@pytest.mark.parametrize("how", REDISTRIBUTIONS)
def test_smallest_denominators(how: str) -> None:
    assert brute_force(how, 3, 1, positive=False) == 0
    assert brute_force(how, 3, 2, positive=False) > 0
    assert brute_force(how, 3, 3, positive=True) == 0
    assert brute_force(how, 3, 4, positive=True) > 0


@pytest.mark.parametrize("how", REDISTRIBUTIONS)
def test_published_law_is_a_law(how: str) -> None:
    laws = [[Fraction(a, 6), Fraction(b, 6), Fraction(6 - a - b, 6)] for a in range(7) for b in range(7 - a)]
    for p in laws:
        for q in laws:
            out = published_law(p, q, how)
            assert sum(out) == 1
            assert min(out) >= 0


def test_a_check_that_accepts_its_wrong_variant_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = Finding("x", "statement", "holds", "holds", "variant", "fails", None, 0.0)
    outcomes = [
        (good, 0),
        (replace(good, planted="holds"), 1),
        (replace(good, found="fails"), 1),
        (replace(good, found="unknown"), 3),
    ]
    for finding, status in outcomes:
        monkeypatch.setattr(command, "CHECKS", {"x": lambda finding=finding: finding})
        assert command.main([]) == status
        assert command.main(["--json"]) == status
    assert "NOT REJECTED" in capsys.readouterr().out


def test_solver_that_gives_up_says_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    import z3

    monkeypatch.setattr("proofs.symbolic.finding.TIMEOUT_MS", 1)
    x = [z3.Real(f"x{i}") for i in range(12)]
    hard = [z3.Sum([a * b for a, b in zip(x, x[k:] + x[:k], strict=True)]) == k * k + 1 for k in range(1, 12)]
    assert decide(hard, z3.Product(x) == 7)[0] == "unknown"


def test_command_line() -> None:
    run = [sys.executable, "-m", "proofs.symbolic"]
    run_json = [*run, "--json", "appendix-b"]
    done = subprocess.run(run_json, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (finding,) = json.loads(done.stdout)
    assert finding["found"] == "holds"
    assert finding["as_expected"] is True
    wrong = subprocess.run([*run, "no-such-check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "no-such-check" in wrong.stderr

"""`resispec audit` on one pair of laws: values, JSON fields, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction

import pytest
from cli_cases import WITNESS, Result

from resispec_core.errors import BudgetExceededError
from resispec_core.rules import RULES, SpecInfer

Run = Callable[..., Result]

ISSUE_FIELDS = {
    "verdict",
    "law",
    "total_variation",
    "kl",
    "acceptance",
    "ceiling",
    "acceptance_by_candidate",
    "paths",
    "witness",
    "paper_check_kl",
}
SECOND = ("--target", "1/5,2/5,2/5", "--draft", "3/5,3/10,1/10")


class Broken(SpecInfer):
    """The planted fault: forgets the residual and owes the whole target again."""

    name = "broken"

    def reject(self, stage, token):
        return stage.target


@pytest.mark.parametrize(
    ("pair", "redistribution", "candidates", "law"),
    [
        (WITNESS, "proportional", 1, ["107/282", "46/105", "1801/9870"]),
        (WITNESS, "waterfill", 1, ["7/18", "7/15", "13/90"]),
        (WITNESS, "waterfill", 2, ["7/18", "7/15", "13/90"]),
        (WITNESS, "waterfill", 3, ["7/18", "7/15", "13/90"]),
        (WITNESS, "proportional", 2, ["691/1786", "16/35", "9749/62510"]),
        (SECOND, "proportional", 1, ["1/5", "21/40", "11/40"]),
        (SECOND, "waterfill", 1, ["1/5", "3/5", "1/5"]),
    ],
)
def test_the_published_rule_on_the_known_pairs(
    run: Run, pair: tuple[str, ...], redistribution: str, candidates: int, law: list[str]
) -> None:
    options = ("--redistribution", redistribution, "--candidates", str(candidates), "--json")
    found = run("audit", "--rule", "resispec", *pair, *options)
    assert found.code == 1
    assert found.json["verdict"] == "BIASED"
    assert found.json["law"] == law
    target = [Fraction(entry) for entry in pair[1].split(",")]
    gap = sum(abs(Fraction(a) - b) for a, b in zip(law, target, strict=True)) / 2
    assert Fraction(found.json["total_variation"]) == gap


def test_uniform_redistribution_is_its_own_rule(run: Run) -> None:
    # Reject 0 (Z = 1/6): projected (0, 1/15, 1/60), deficit 1/12 shared equally: r = (0, 13/120, 7/120).
    # Reject 1 (Z = 1/15): projected (1/30, 0, 1/150), deficit 2/75: r = (7/150, 0, 1/50).
    found = run("audit", "--rule", "resispec", *WITNESS, "--redistribution", "uniform", "--json").json
    law = [
        Fraction(1, 3) + Fraction(7, 150),
        Fraction(1, 3) + Fraction(13, 120),
        Fraction(1, 10) + Fraction(7, 120) + Fraction(1, 50),
    ]
    assert [Fraction(entry) for entry in found["law"]] == law
    assert sum(law) == 1


def test_acceptance_and_ceiling_of_the_second_witness(run: Run) -> None:
    found = run("audit", "--rule", "resispec", *WITNESS, "-n", "2", "--json").json
    assert (found["acceptance"], found["ceiling"], found["above_ceiling"]) == ("89/100", "257/300", True)
    assert sum(map(Fraction, found["acceptance_by_candidate"])) == Fraction(89, 100)


def test_the_fields_of_one_pair(run: Run) -> None:
    found = run("audit", "--rule", "resispec", *WITNESS, "--json").json
    assert found.keys() >= ISSUE_FIELDS
    assert (found["paths"], found["candidates"], found["draw"], found["vocabulary"]) == (5, 1, "iid", 3)
    assert found["witness"] == {"token": 1, "rejected": [0], "ends": "resampled", "mass": "11/105"}
    assert isinstance(found["kl"], float)
    # The paper's check passes where the true law is off by 0.067 nats.
    assert found["kl"] > 0.066
    assert found["paper_check_kl"] == 0
    for field in ("total_variation", "acceptance", "ceiling"):
        assert isinstance(found[field], str)
        assert str(Fraction(found[field])) == found[field]


def test_an_exact_rule_is_exact_in_rationals(run: Run) -> None:
    found = run("audit", "--rule", "specinfer", *WITNESS, "-n", "3", "--json")
    assert found.code == 0
    assert (found.json["verdict"], found.json["total_variation"]) == ("EXACT", "0")
    assert Fraction(found.json["bound"]) == 0
    assert found.json["law"] == ["1/3"] * 3
    assert found.json["witness"] is None


def test_decimals_are_read_exactly(run: Run) -> None:
    found = run("audit", "--rule", "specinfer", "--target", "0.5,0.5", "--draft", "0.25, 0.75", "--json").json
    assert (found["law"], found["acceptance"]) == (["1/2", "1/2"], "3/4")


def test_eq13_budget_changes_the_law(run: Run) -> None:
    laws = [
        run("audit", "--rule", "resispec", *WITNESS, "--budget", budget, "--json").json["law"]
        for budget in ("local", "eq13")
    ]
    assert laws[0] != laws[1]


def test_a_broken_rule_exits_with_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "broken", Broken)
    found = run("audit", "--rule", "broken", *WITNESS, "--json")
    assert (found.code, found.json["verdict"]) == (1, "BIASED")
    # One over-drafted token keeps (p − q)+ = what p owes only by accident; here it does not.
    assert found.json["law"] == ["37/90", "37/90", "8/45"]


def test_several_rules_exit_with_the_worst(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "broken", Broken)
    found = run("audit", "--rule", "specinfer", "--rule", "broken", "--rule", "specinfer", *WITNESS, "--json")
    assert found.code == 1
    assert [audit["verdict"] for audit in found.json["audits"]] == ["EXACT", "BIASED", "EXACT"]


def test_without_a_rule_both_are_audited(run: Run) -> None:
    found = run("audit", *WITNESS, "--redistribution", "waterfill", "--json").json["audits"]
    assert [audit["rule"] for audit in found] == ["resispec", "specinfer"]
    assert found[0]["law"] == ["7/18", "7/15", "13/90"]


def test_lossy_by_design_exits_with_0(run: Run) -> None:
    found = run("audit", "--rule", "typical", *WITNESS, "--json")
    assert (found.code, found.json["verdict"]) == (0, "LOSSY_BY_DESIGN")


def test_draw_modes_and_a_mismatch(run: Run) -> None:
    exact = run(
        "audit", "--rule", "specinfer", *WITNESS, "-n", "2", "--draw", "without-replacement", "--json"
    )
    assert (exact.code, exact.json["draw"], exact.json["verdict"]) == (0, "without-replacement", "EXACT")
    options = ("-n", "2", "--draw", "without-replacement", "--mismatched", "--json")
    fault = run("audit", "--rule", "specinfer", *SECOND, *options)
    assert (fault.code, fault.json["verdict"], fault.json["mismatched_draw"]) == (1, "BIASED", True)


def test_a_budget_that_ends_exits_with_3(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BudgetExceededError("9 cells, over the budget of 8")

    monkeypatch.setattr("resispec_core.cli.audit.audit_pair", refuse)
    found = run("audit", *WITNESS)
    assert (found.code, found.err) == (3, "resispec: 9 cells, over the budget of 8\n")


def test_the_table_of_a_pair(run: Run) -> None:
    found = run("audit", "--rule", "resispec", *WITNESS)
    assert found.code == 1
    lines = [" ".join(line.split()) for line in found.out.splitlines()]
    assert lines[0] == "resispec, n = 1, iid draws"
    for line in (
        "verdict BIASED",
        "law (107/282, 46/105, 1801/9870)",
        "total variation 1489/9870",
        "acceptance 23/30",
        "witness path: its mass reject 0, resample 1: 11/105",
    ):
        assert line in lines


def test_json_is_ascii_and_one_document(run: Run) -> None:
    found = run("audit", *WITNESS, "--json")
    assert found.out.isascii()
    assert json.loads(found.out)
    assert found.err == ""

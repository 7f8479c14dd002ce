"""`resispec trees` and `resispec audit --tree`: what they print, their JSON, their status, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from cli_cases import Result

from resispec_core.audit.replay.tables import Markov
from resispec_core.cli import tree_audit
from resispec_core.rules import ResiSpec, SpecInfer
from resispec_core.trees import audit_tree, complete, load, sequoia

Run = Callable[..., Result]


def test_a_topology_is_shown(run: Run) -> None:
    found = run("trees", "3x2")
    assert found.code == 0
    assert "positions a level" in found.out
    assert "    └── 6" in found.out
    data = run("trees", "d5b3", "--json").json
    assert (data["positions"], data["drafted"], data["depth"], data["levels"]) == (
        121,
        120,
        5,
        [1, 3, 9, 27, 81],
    )
    assert data["expected_tokens"] is None
    large = run("trees", "d5b3").out
    assert "└──" not in large
    assert run("trees", "d5b3", "--picture").out.count("── ") == 120


def test_sequoia_is_chosen_saved_and_read_again(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    chosen = run("trees", "--sequoia", "9", "--acceptance", "0.6,1/5,0.1", "--save", str(path))
    assert chosen.code == 0
    assert f"written to {path}" in chosen.out
    expected = sequoia(9, [Fraction(3, 5), Fraction(1, 5), Fraction(1, 10)])
    assert load(path) == expected
    data = run("trees", str(path), "--json", "--acceptance", "0.6,0.2,0.1").json
    assert data["parents"] == list(expected.parents)
    by_hand = 1 + 0.6 + 0.2 + 0.1 + 0.36 + 0.12 + 0.12 + 0.216 + 0.1296
    assert data["expected_tokens"] == pytest.approx(by_hand)
    audited = run("audit", "--tree", str(path), "--rule", "specinfer", "--tables", "2", "--json")
    assert (audited.code, audited.json["positions"]) == (0, 9)
    limited = run("trees", "--sequoia", "9", "--acceptance", "0.6,0.2,0.1", "--max-depth", "3", "--json").json
    assert limited["depth"] == 3


def test_acceptance_is_measured_on_a_store(run: Run, small_store: Path) -> None:
    found = run("trees", "--sequoia", "6", "-n", "2", "--logits", str(small_store), "--json")
    assert found.code == 0
    first, second = found.json["acceptance"]
    assert 0 < second < first < 1
    report = run("audit", "--rule", "specinfer", "-n", "2", "--logits", str(small_store), "--json").json
    places = [place["acceptance_by_candidate"] for place in report["positions"]]
    assert first == pytest.approx(sum(place[0] for place in places) / len(places))
    assert second == pytest.approx(sum(place[1] for place in places) / len(places))


def test_the_published_rule_is_biased_on_a_tree_and_the_exact_ones_are_not(run: Run) -> None:
    found = run("audit", "--tree", "3x2", "--tables", "3", "--rule", "resispec", "--rule", "shaped", "--json")
    assert found.code == 1
    published, shaped = found.json["audits"]
    assert (published["verdict"], shaped["verdict"]) == ("BIASED", "EXACT")
    assert published["horizon"] == 4
    assert set(shaped["total_variation_by_table"]) == {"0"}
    assert shaped["witness"] is None
    assert (
        "most overproduced tokens" in run("audit", "--tree", "2x2", "--tables", "1", "--rule", "resispec").out
    )
    assert run("audit", "--tree", "3x2", "--tables", "2", "--rule", "shaped").code == 0


def test_the_json_holds_what_is_needed_to_see_the_bias_again(run: Run) -> None:
    data = run("audit", "--tree", "2x2", "--tables", "4", "--seed", "5", "--rule", "resispec", "--json").json
    target, draft = (Markov(data[side]["start"], data[side]["rows"]) for side in ("target", "draft"))
    again = audit_tree(ResiSpec(), target, draft, complete(2, 2), horizon=data["horizon"])
    assert str(again.total_variation) == data["total_variation"]
    tokens, mass, _ = again.witness
    assert (list(tokens), str(mass)) == (data["witness"]["tokens"], data["witness"]["law"])
    gaps = [Fraction(gap) for gap in data["total_variation_by_table"]]
    assert gaps[data["worst_table"]] == max(gaps) == again.total_variation


def test_options_of_the_rule_and_of_the_draw_are_used(run: Run) -> None:
    fills = [
        run(
            "audit",
            "--tree",
            "2x2",
            "--tables",
            "1",
            "--rule",
            "resispec",
            "--redistribution",
            kind,
            "--json",
        ).json
        for kind in ("proportional", "waterfill")
    ]
    assert fills[0]["total_variation"] != fills[1]["total_variation"]
    ranked = run("audit", "--tree", "2x2", "--tables", "1", "--rule", "resispec", "--draw", "top-k", "--json")
    assert (ranked.code, ranked.json["draw"], ranked.json["verdict"]) == (0, "top-k", "EXACT")
    seeds = [
        run("audit", "--tree", "2x1", "--tables", "3", "--seed", seed, "--rule", "resispec", "--json").json
        for seed in "112"
    ]
    assert seeds[0] == seeds[1] != seeds[2]


def test_an_interrupt_keeps_the_tables_that_are_done(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    def interrupted(*given, **options):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(audit_tree(*given, **options))
        return done[-1]

    monkeypatch.setattr(tree_audit, "audit_tree", interrupted)
    found = run("audit", "--tree", "2x2", "--tables", "5", "--rule", "specinfer")
    assert found.code == 130
    assert "2 of 5 tables, INTERRUPTED" in found.out
    assert "interrupted after 2 of 5 tables of specinfer" in found.err
    found = run("audit", "--tree", "2x2", "--tables", "5", "--rule", "specinfer")
    assert (found.code, found.out) == (130, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("trees",), "give either a TOPOLOGY, such as 5x3 or a .json file, or --sequoia M"),
        (("trees", "3x2", "--sequoia", "5"), "give either a TOPOLOGY"),
        (("trees", "5y3"), "'5y3' is not understood"),
        (("trees", "none.json"), "none.json: no such file"),
        (("trees", "3x2", "--max-depth", "2"), "--max-depth goes with --sequoia"),
        (("trees", "3x2", "--candidates", "2"), "--candidates goes with --sequoia"),
        (("trees", "3x2", "--acceptance", "0.5"), "2 siblings under one parent, but acceptance has 1"),
        (("trees", "3x2", "--save", "tree.txt"), "--save is tree.txt; name a file that ends in .json"),
        (("trees", "--sequoia", "5", "--acceptance", "0.5,x"), "entry 1 is 'x', not a number"),
        (("trees", "--sequoia", "5", "--acceptance", "0.5", "--rule", "k-seq"), "--rule is for measuring"),
        (("audit", "--tree", "3x2", "--logits", "x"), "--logits does not go with --tree"),
        (("audit", "--tree", "3x2", "--candidates", "2"), "--candidates does not go with --tree"),
        (("audit", "--tree", "3x2", "--temperature", "0.6"), "--temperature does not go with --tree"),
        (("audit", "--tree", "3x2", "--tables", "0"), "--tables is 0"),
        (("audit", "--tree", "3x2", "--horizon", "0"), "horizon is 0"),
        (("audit", "--tree", "3x2", "--draw", "greedy", "--rule", "shaped"), "'shaped' is meant for"),
        (("audit", "--seed", "1"), "--seed goes with --tree"),
        (("audit", "--tables", "1", "a.py:b"), "--tables is about rules, and a.py:b is a callable"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(run: Run, arguments: tuple[str, ...], message: str) -> None:
    found = run(*arguments)
    assert found.code == 2
    assert message in found.err
    assert "Traceback" not in found.err


def test_too_long_a_horizon_is_inconclusive(run: Run) -> None:
    found = run("audit", "--tree", "2x2", "--horizon", "30", "--json")
    assert found.code == 3
    assert "over the budget" in json.loads(found.out)["error"]


def test_lossy_rules_leave_status_0(run: Run) -> None:
    found = run("audit", "--tree", "2x2", "--tables", "1", "--rule", "typical", "--json")
    assert (found.code, found.json["verdict"]) == (0, "LOSSY_BY_DESIGN")


def test_the_random_tables_are_laws_with_zeros_and_differ() -> None:
    pairs = tree_audit.random_pairs(30, 1)
    rows = [tuple(row) for pair in pairs for model in pair for row in [model.start, *model.rows]]
    assert len(set(rows)) > len(rows) / 2
    assert any(0 in row for row in rows)
    assert all(sum(row) == 1 for row in rows)
    assert audit_tree(SpecInfer(), *pairs[-1], complete(2, 2)).total_variation == 0

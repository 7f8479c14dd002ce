"""`resispec audit` on recorded logits: small stores, then the shipped sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli_cases import Result, log_law, write_store
from test_cli_pair import ISSUE_FIELDS, Broken

from resispec_core.laws import law_from_logits
from resispec_core.llama.store import LogitsStore
from resispec_core.rules import RULES, SpecInfer

Run = Callable[..., Result]


class Undeclared(SpecInfer):
    """Exact, but not known to be: without the promise its paths cannot be merged at a large vocabulary."""

    name = "undeclared"
    residual_uses_token = True


def test_a_store_is_audited_position_by_position(run: Run, small_store: Path) -> None:
    found = run("audit", "--rule", "resispec", "--logits", str(small_store), "-n", "2", "--json")
    data = found.json
    assert found.code == 1
    assert [place["position"] for place in data["positions"]] == [0, 1, 2]
    assert [place["verdict"] for place in data["positions"]] == ["BIASED", "EXACT_WITHIN", "EXACT_WITHIN"]
    for place in data["positions"]:
        # The law of a position would be V numbers; everything else of a single pair is there.
        assert place.keys() >= ISSUE_FIELDS - {"law"}
    assert data["verdict"] == "BIASED"
    assert data["verdicts"] == {"BIASED": 1, "EXACT_WITHIN": 2}
    assert data["positions_above_ceiling"] == sum(place["above_ceiling"] for place in data["positions"])
    assert (data["positions_audited"], data["positions_in_store"], data["interrupted"]) == (3, 3, False)
    for name in ("acceptance", "ceiling", "total_variation"):
        assert math.isclose(data["means"][name], np.mean([place[name] for place in data["positions"]]))


def test_disjoint_supports_and_equal_rows(run: Run, small_store: Path) -> None:
    data = run("audit", "--rule", "specinfer", "--logits", str(small_store), "--json").json
    assert [round(place["acceptance"], 12) for place in data["positions"][1:]] == [1, 0]


@pytest.mark.parametrize(
    ("options", "shaping"),
    [
        (("--temperature", "0.5"), {"temperature": 0.5}),
        (("--temperature", "0"), {"temperature": 0.0}),
        (("--top-k", "2"), {"top_k": 2}),
        (("--top-p", "0.6"), {"top_p": 0.6}),
        (("--min-p", "0.3"), {"min_p": 0.3}),
    ],
)
def test_filters_reach_both_rows(
    run: Run, small_store: Path, options: tuple[str, ...], shaping: dict[str, float]
) -> None:
    data = run(
        "audit", "--rule", "specinfer", "--logits", str(small_store), "-n", "1", *options, "--json"
    ).json
    assert {name: data[name] for name in shaping} == shaping
    store = LogitsStore.open(small_store)
    for place in range(3):
        p, q = (law_from_logits(row, **shaping) for row in store.row(place))
        # With one candidate the acceptance is Σ min(p, q): an oracle that knows no rule.
        assert math.isclose(data["positions"][place]["acceptance"], np.minimum(p, q).sum(), abs_tol=1e-14)
    plain = run("audit", "--rule", "specinfer", "--logits", str(small_store), "-n", "1", "--json").json
    assert plain["means"]["acceptance"] != data["means"]["acceptance"]


def test_a_broken_rule_on_a_store_exits_with_1(
    run: Run, small_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RULES, "broken", Broken)
    found = run("audit", "--rule", "broken", "--rule", "specinfer", "--logits", str(small_store), "--json")
    assert found.code == 1
    assert [audit["verdict"] for audit in found.json["audits"]] == ["BIASED", "EXACT_WITHIN"]


def test_an_inconclusive_audit_exits_with_3_unless_a_bias_was_found(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    rows = [log_law(rng.dirichlet(np.ones(3000)).tolist()) for _ in range(2)]
    folder = str(write_store(tmp_path / "wide", rows[:1], rows[1:]))
    monkeypatch.setitem(RULES, "undeclared", Undeclared)
    monkeypatch.setitem(RULES, "broken", Broken)
    found = run("audit", "--rule", "undeclared", "--logits", folder, "-n", "2", "--json")
    assert (found.code, found.json["verdict"]) == (3, "INCONCLUSIVE")
    assert 0 < found.json["max_unexplored"] < 1
    both = ("--rule", "undeclared", "--rule", "broken")
    assert run("audit", *both, "--logits", folder, "-n", "2").code == 1


def test_the_table_says_where_numbers_are_lower_bounds(
    run: Run, tmp_path: Path, small_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    rows = [log_law(rng.dirichlet(np.ones(3000)).tolist()) for _ in range(2)]
    folder = str(write_store(tmp_path / "wide", rows[:1], rows[1:]))
    monkeypatch.setitem(RULES, "undeclared", Undeclared)
    partial = run("audit", "--rule", "undeclared", "--logits", folder, "-n", "2").out
    assert "undeclared, n = 2, iid draws, V = 3000: 1 of 1 positions" in partial
    assert "acceptance, mean" in partial
    assert "≥ 0." in partial
    assert "≥ 0." not in run("audit", "--rule", "specinfer", "--logits", str(small_store)).out


def test_token_texts_are_no_markup(run: Run, small_store: Path) -> None:
    text = (small_store / "store.json").read_text().replace('"context": "t0"', '"context": "[/b] [red]"')
    (small_store / "store.json").write_text(text)
    assert "[/b] [red]" in run("audit", "--rule", "resispec", "--logits", str(small_store)).out


# The shipped logits, at T = 1 and n = 3: what `resispec audit` says without any option.


def test_the_published_rule_is_biased_on_most_shipped_positions(sample_run: Run) -> None:
    found = sample_run("audit", "--json")
    data, exact = found.json["audits"]
    assert (found.code, found.err) == (1, "")
    assert (data["rule"], data["candidates"], data["temperature"]) == ("resispec", 3, 1.0)
    assert data["positions_in_store"] == len(data["positions"]) >= 24
    assert data["verdicts"]["BIASED"] > len(data["positions"]) / 2
    for place in data["positions"]:
        low, high = place["total_variation_bracket"]
        assert 0 <= low <= high <= 1
        if place["verdict"] == "BIASED":
            assert low > 0
            assert low <= place["total_variation"] <= high
            # Where mass is unexplored the lower end is what is reported.
            assert place["total_variation"] == low or place["unexplored"] == 0
            assert place["witness"]["mass"] > 0
        # Acceptances are lower bounds where mass is unexplored: never more than what is accounted for.
        assert place["acceptance"] + place["unexplored"] <= 1 + 1e-9
        assert place["paper_check_kl"] < 1e-12
    assert data["means"]["acceptance"] > data["means"]["ceiling"] == exact["means"]["ceiling"]
    assert data["positions_above_ceiling"] > len(data["positions"]) / 2
    print("certified mean TV", data["means"]["total_variation"], "acceptance", data["means"]["acceptance"])


def test_specinfer_is_exact_within_a_bound_on_the_shipped_positions(sample_run: Run) -> None:
    _, data = sample_run("audit", "--json").json["audits"]
    assert data["rule"] == "specinfer"
    assert data["verdicts"] == {"EXACT_WITHIN": data["positions_in_store"]}
    assert data["max_total_variation"] <= data["bound"] <= 1e-12
    assert data["means"]["acceptance"] <= data["means"]["ceiling"]
    assert data["positions_above_ceiling"] == 0

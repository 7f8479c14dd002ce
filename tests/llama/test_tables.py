"""The paper's tables for made-up runs, and what reported lengths imply."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from store_cases import write_shards

from resispec_core.cli.tables import tables
from resispec_core.errors import InputError
from resispec_core.llama.diagnostics import ceiling_length
from resispec_core.llama.paper import accepted_length, implied_acceptance
from resispec_core.llama.tables import read_rows, sheets


def journal(folder: Path, system: str, tree: str = "5x3", **options: Any) -> None:
    """A run of two prompts: 3 + 1 tokens, then 2."""
    folder.mkdir(exist_ok=True)
    breakdown = options.pop("breakdown", False)
    settings = {
        "system": system,
        "tree": tree,
        "sampling": {"temperature": 1.0},
        "breakdown": breakdown,
        "target": {"id": "T", "layers": 30},
        "draft": {"id": "T", "layers_skipped": [12, 13]},
    } | options
    node = {"level": 1, "candidates": 3, "ceiling": 0.8, "verdict": "EXACT_WITHIN", "total_variation": 0.0}
    if system == "resispec":
        node |= {"verdict": "BIASED", "total_variation": 0.25}
    common = {"verified": 242, "seconds": 2.0, "nodes": [node, {"level": 2, "candidates": 3, "ceiling": 0.5}]}
    if breakdown:
        common["components"] = {"drafting": 0.2, "target": 1.0, "verification": 0.5, "budgeting": 0.1}
    results = [
        {
            "key": "a",
            "prompt": "a",
            "tokens": [1, 2, 3, 4],
            "steps": [[[3, 0], [3, 1], [3, -1]], [[3, -1]]],
            **common,
        },
        {"key": "b", "prompt": "b", "tokens": [1, 2], "steps": [[[3, 2], [3, -1]]], **common},
    ]
    lines = [{"settings": settings}, *results]
    name = f"{system}-{tree}{'-parts' if breakdown else ''}.jsonl"
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for system in ("specinfer", "resispec", "shaped", "eagle"):
        journal(tmp_path / "runs", system)
    journal(tmp_path / "runs", "specinfer", "4x4")
    journal(tmp_path / "runs", "resispec", breakdown=True)
    return tmp_path / "runs"


def test_a_row_is_what_the_runs_say(runs: Path) -> None:
    row = next(row for row in read_rows([runs]) if (row["system"], row["tree"]) == ("shaped", "5x3"))
    assert row["accepted_length"] == 2.0  # 3, 1 and 2
    assert row["tokens_per_second"] == 6 / 4
    assert row["verification_cost"] == 484 / 3
    assert row["acceptance_by_index"] == [1 / 6, 1 / 5, 1 / 4]
    assert row["ceiling_length"] == pytest.approx(1 + 0.8 + 0.4)
    assert row["accepted_length_error"] == 0.0
    assert (row["total_variation"], row["audited_rows"]) == (0.0, 2)
    assert row["pair"] == "T without 2 of 30 layers (12-13)"


def test_tables_stand_in_the_papers_order_with_the_missing_columns(runs: Path) -> None:
    found = {sheet.name: sheet for sheet in sheets(read_rows([runs]))}
    assert list(found) == ["Table 1", "Table 2", "Table 3", "Implied"]
    first = found["Table 1"]
    assert [row[:2] for row in first.rows] == [
        ("specinfer", "5x3"),
        ("resispec", "5x3"),
        ("shaped", "5x3"),
        ("specinfer", "4x4"),
    ]
    published = next(row for row in first.rows if row[0] == "resispec")
    assert published[first.columns.index("law")] == "BIASED"
    assert published[first.columns.index("TV")] == "0.250"
    assert (
        "| specinfer | 5x3 | 1 | 2.00 ± 0.00 | 2.20 | 1.5 | 1.00 | EXACT_WITHIN | 0.000 |" in first.markdown()
    )


def test_other_pairs_make_table_6(runs: Path) -> None:
    journal(runs / "other", "shaped", draft={"id": "D", "layers_skipped": []})
    found = {sheet.name: sheet for sheet in sheets(read_rows([runs, runs / "other"]))}
    assert {row[0] for row in found["Table 6"].rows} == {"T + D", "T without 2 of 30 layers (12-13)"}


def test_audits_make_tables_4_and_5(tmp_path: Path) -> None:
    from resispec_core.llama.store import LogitsStore

    write_shards(tmp_path / "s")
    found = {sheet.name: sheet for sheet in sheets([], LogitsStore.open(tmp_path / "s"), positions=3)}
    rows = {row[0]: row for row in found["Table 4"].rows}
    for rule in ("specinfer", "resispec"):
        assert float(rows[rule][1]) < 1e-9  # the paper's check never fails …
    assert float(rows["resispec"][2]) > 1e-3  # … and the true divergence does
    assert float(rows["specinfer"][2]) < 1e-12
    assert rows["resispec"][4] == "BIASED"
    lengths = [float(row[2]) for row in found["Table 5"].rows]
    assert lengths == sorted(lengths)
    for row in found["Table 5"].rows:
        assert float(row[2]) <= float(row[4]) <= float(row[5])


def test_what_a_reported_length_implies() -> None:
    constant, least = implied_acceptance(4.68, 5)
    assert constant == pytest.approx(0.967, abs=5e-4)
    assert least == pytest.approx(0.92)
    for depth in (2, 4, 5):
        for a in (Fraction(0), Fraction(1, 3), Fraction(9, 10), Fraction(1)):
            length = accepted_length(a, depth)
            constant, least = implied_acceptance(float(length), depth)
            assert constant == pytest.approx(float(a), abs=1e-9)
            assert least <= constant + 1e-12  # constant acceptance is the best case for the root
    # Any decreasing reach with this length has at least that acceptance at the root; a planted one below it has not.
    assert implied_acceptance(1 + 0.5 + 0.5 + 0.5, 4)[1] == 0.5
    for length, depth in ((0.9, 5), (5.1, 5), (1.0, 1)):
        with pytest.raises(InputError, match="an accepted length at depth"):
            implied_acceptance(length, depth)


def test_the_ceiling_needs_every_node() -> None:
    assert ceiling_length([]) == 1.0
    # A root without a candidate (lookup found nothing) accepts nothing: leaving it out would read as 1.5.
    assert ceiling_length([{"level": 1, "ceiling": 0.5}, {"level": 1, "ceiling": 0.0}]) == 1.25
    assert ceiling_length([{"level": 1, "ceiling": 0.5}, {"level": 1, "ceiling": None}]) is None


def test_the_command_prints_plots_and_writes_markdown(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the plot extra")
    out, plots = tmp_path / "t.md", tmp_path / "plots"
    options = [str(runs), "--positions", "0"]
    result = CliRunner().invoke(
        tables, [*options, "--plots", str(plots), "--markdown", str(out)], catch_exceptions=False
    )
    assert "Table 1. ResiSpec and SpecInfer" in result.stdout
    assert "**Table 2. Sequoia" in out.read_text()
    for name in ("figure-1-live-121-T1.svg", "figure-1-live-85-T1.svg", "figure-3.svg"):
        assert (plots / name).read_text().lstrip().startswith("<?xml")
    again = json.loads(CliRunner().invoke(tables, [*options, "--json"], catch_exceptions=False).stdout)
    assert [sheet["name"] for sheet in again["tables"]] == ["Table 1", "Table 2", "Table 3", "Implied"]
    for more, words in (
        ([str(tmp_path / "none")], "no results found"),
        (["--positions", "-1"], "positions is -1"),
    ):
        assert words in str(CliRunner().invoke(tables, more).exception)
    (runs / "x.jsonl").write_text("{}\n")
    assert "is no journal of a speed run" in str(CliRunner().invoke(tables, options).exception)

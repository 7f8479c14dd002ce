"""`resispec diff`: planted changes are found, and nothing else is called a change."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_cases import PLAN, audited, flip_byte, make_store

from resispec_core.errors import InputError
from resispec_core.llama.store import LogitsStore
from resispec_core.rules import SpecInfer
from resispec_core.runs import Plan, Run, differences
from resispec_core.runs.difference import compare
from resispec_core.runs.totals import RuleColumns


class Broken(SpecInfer):
    """The sampler's next version: at one favourite token it forgets its residual."""

    name = "specinfer"

    def __init__(self, token: int = 0) -> None:
        self.token = token

    def reject(self, stage: Any, token: Any) -> Any:
        right = super().reject(stage, token)
        target = np.asarray(stage.target, dtype=float)
        return np.broadcast_to(stage.target, right.shape) if int(target.argmax()) == self.token else right


def test_a_run_is_the_same_as_itself_and_as_its_repetition(
    run: Any, store: LogitsStore, whole: Path, tmp_path: Path
) -> None:
    audited(store, tmp_path / "again")
    for other in (whole, tmp_path / "again"):
        found = run("diff", whole, other, "--json")
        assert (found.code, found.json["same"], found.json["first_setting_that_differs"]) == (0, True, None)
        assert [rule["positions_in_both"] for rule in found.json["rules"]] == [12, 12]
    assert run("diff", whole, whole).out.endswith("same: nothing is known to have changed\n")


def test_a_new_version_that_forgets_its_residual_sometimes(
    run: Any, store: LogitsStore, tmp_path: Path
) -> None:
    audited(store, tmp_path / "old", Plan(("specinfer",), 2))
    favourites = np.array([store.row(place)[0].argmax() for place in range(len(store))])
    token = int(favourites[0])
    audited(store, tmp_path / "new", Plan((Broken(token),), 2))
    found = run("diff", tmp_path / "old", tmp_path / "new", "--json")
    assert found.code == 1
    (told,) = found.json["rules"]
    assert [entry["position"] for entry in told["changed"]] == (favourites == token).nonzero()[0].tolist()
    count = int((favourites == token).sum())
    assert told["verdict_transitions"] == {"EXACT_WITHIN → BIASED": count}
    assert (told["total_variation"]["rose"], told["total_variation"]["fell"]) == (count, 0)
    assert found.json["first_setting_that_differs"].startswith("rules[0].")
    back = run("diff", tmp_path / "new", tmp_path / "old", "--json").json["rules"][0]
    assert (back["total_variation"]["rose"], back["total_variation"]["fell"]) == (0, count)
    text = run("diff", tmp_path / "old", tmp_path / "new").out
    assert "EXACT_WITHIN → BIASED" in text
    assert text.endswith("different\n")


def test_two_rules(run: Any, store: LogitsStore, tmp_path: Path) -> None:
    for rule in ("specinfer", "shaped"):
        audited(store, tmp_path / rule, Plan((rule,), 3))
    told = run("diff", tmp_path / "specinfer", tmp_path / "shaped", "--json").json["rules"][0]
    assert (told["first"], told["second"]) == ("specinfer", "shaped")
    assert told["verdict_transitions"] == {}
    # Shaping accepts no less anywhere (theory: never below SpecInfer), and both are exact.
    assert told["acceptance"]["rose"] > 0
    assert told["acceptance"]["fell"] == 0
    assert (told["total_variation"]["rose"], told["total_variation"]["fell"]) == (0, 0)


def test_positions_in_one_only(run: Any, store: LogitsStore, whole: Path, tmp_path: Path) -> None:
    shard = store.path / store.shards[2].file
    flip_byte(shard)
    audited(store.path, tmp_path / "part")
    flip_byte(shard)
    for one, other, key in (
        (tmp_path / "part", whole, "only_second"),
        (whole, tmp_path / "part", "only_first"),
    ):
        found = run("diff", one, other, "--json")
        assert found.code == 1
        assert found.json["rules"][0][key] == [8, 9, 10, 11]
        assert found.json["rules"][0]["changed"] == []


def test_rules_in_one_only(run: Any, store: LogitsStore, whole: Path, tmp_path: Path) -> None:
    audited(store, tmp_path / "one", replace(PLAN, rules=("specinfer",)))
    found = run("diff", whole, tmp_path / "one", "--json")
    assert (found.code, found.json["rules_only_in_first"]) == (1, ["resispec"])
    assert [rule["same"] for rule in found.json["rules"]] == [True]


def test_runs_that_cannot_be_compared(run: Any, store: LogitsStore, whole: Path, tmp_path: Path) -> None:
    other = make_store(tmp_path / "other", seed=9)
    audited(other, tmp_path / "elsewhere")
    found = run("diff", whole, tmp_path / "elsewhere")
    assert (found.code, found.out) == (2, "")
    assert "over different positions: store.index_sha256 is" in found.err
    assert "in the first run and" in found.err
    audited(store, tmp_path / "others", Plan(("shaped", "optimal"), 2))
    assert "have no rule in common" in run("diff", whole, tmp_path / "others").err
    missing = run("diff", whole, tmp_path / "nowhere", "--json")
    assert (missing.code, "it is no run" in json.loads(missing.out)["error"]) == (2, True)
    with pytest.raises(InputError, match="different positions"):
        differences(Run.open(whole), Run.open(tmp_path / "elsewhere"))


# The rule that tells a change from bounds that moved, on columns made by hand.


def columns(**changes: float) -> RuleColumns:
    values: dict[str, Any] = {
        "verdict": np.array(["BIASED"], dtype=object),
        "tv_low": np.array([0.2]),
        "tv_high": np.array([0.4]),
        "acceptance": np.array([0.5]),
        "unexplored": np.array([0.1]),
        "rounding": np.array([1e-14]),
    }
    made = {name: np.array([value]) for name, value in changes.items()}
    return RuleColumns("r", np.array([0]), values | made, np.zeros((1, 1)))


@pytest.mark.parametrize(
    ("changes", "tv", "acceptance", "moved"),
    [
        ({}, 0, 0, False),
        ({"tv_low": 0.3}, 0, 0, True),
        ({"tv_low": 0.41, "tv_high": 0.5}, 1, 0, False),
        ({"tv_low": 0.0, "tv_high": 0.19}, -1, 0, False),
        ({"tv_low": 0.4, "tv_high": 0.5}, 0, 0, True),  # they touch: 0.4 may be true of both
        ({"acceptance": 0.59}, 0, 0, True),
        ({"acceptance": 0.61}, 0, 1, False),
        ({"acceptance": 0.3}, 0, -1, False),
        ({"acceptance": 0.5 + 1e-14, "tv_low": 0.2 + 1e-13}, 0, 0, False),  # rounding
    ],
)
def test_a_change_is_what_cannot_both_be_true(
    changes: dict[str, float], tv: int, acceptance: int, moved: bool
) -> None:
    found = compare(columns(), columns(**changes))
    assert found.tv_change.tolist() == [tv]
    assert found.acceptance_change.tolist() == [acceptance]
    assert found.moved.tolist() == [moved]
    assert found.same == (tv == acceptance == 0)

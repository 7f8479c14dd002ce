"""Recorded trees: rows are the models' own, a replay needs no model, an interrupt loses nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from llama_oracle import fp16_tolerance, log_laws

from resispec_core.audit import audit
from resispec_core.cli.info import info
from resispec_core.cli.speed import speed
from resispec_core.errors import InputError
from resispec_core.laws import law_from_logits
from resispec_core.llama import models, record_trees
from resispec_core.llama.prompts import Prompt
from resispec_core.llama.record import record
from resispec_core.llama.record_trees import Drafting
from resispec_core.llama.recorded import open_trees, replay, systems_for
from resispec_core.llama.speed_rows import acceptance_by_index, read_journal, summarise
from resispec_core.llama.store import LogitsStore
from resispec_core.llama.tree_store import TreeStore, inner_nodes
from resispec_core.rules import rule
from resispec_core.trees import complete, walk

PROMPTS = (Prompt("first", "w1 w2 w3 w4 w0 w0 w7 w9"), Prompt("second", "w5 w4 w3 w2 w1 w11 w8"))


def record_steps(out: Path, target: Path, drafting: Drafting = Drafting("3x2"), **options: Any) -> TreeStore:  # noqa: B008
    sizes = {"positions_per_prompt": 2, "rows_per_shard": 3} | options
    store = record(out, target=target, skip_layers="1,3", prompts=PROMPTS, drafting=drafting, **sizes)
    assert isinstance(store, TreeStore)
    return store


@pytest.fixture(scope="module")
def recorded(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> TreeStore:
    return record_steps(tmp_path_factory.mktemp("trees") / "s", tiny)


def check_rows(store: TreeStore, model: Any) -> float:
    """The largest excess of a row's error over its tolerance."""
    worst = -np.inf
    for i, position in enumerate(store.positions):
        ids = store.metadata["prompts"][position.prompt]["token_ids"][: position.index]
        tree = store.trees[i]
        target, draft = store.rows_at(i)
        assert len(target) == len(tree.tokens)
        for nodes, rows, skipped in (
            (range(len(target)), target, ()),
            (inner_nodes(tree), draft, (1, 3)),
        ):
            for node, row in zip(nodes, rows, strict=True):
                exact = log_laws(model, [*ids, *tree.prefix(node)], skipped)[-1]
                worst = max(worst, (np.abs(row - exact) - fp16_tolerance(exact, model)).max())
    return float(worst)


def test_every_row_is_that_of_its_node(recorded: TreeStore, tiny: Path) -> None:
    model = models.load_model(models.find_model(tiny))
    assert len(recorded) == recorded.verify() == 4
    assert [tree.topology for tree in recorded.trees] == [complete(3, 2)] * 4
    assert check_rows(recorded, model) <= 0
    # The planted fault: two trees exchanged.
    wrong = LogitsStore.open(recorded.path)
    assert isinstance(wrong, TreeStore)
    wrong.trees = (*wrong.trees[2:], *wrong.trees[:2])
    assert check_rows(wrong, model) > 0.1


def test_tokens_are_drawn_from_the_stored_rows(recorded: TreeStore) -> None:
    """Drawing again with the same coins from what is on disk gives the same tokens: the replay is exact for it."""
    for i, tree in enumerate(recorded.trees):
        step, coins = recorded.step(i), np.random.default_rng(i)
        for node in inner_nodes(tree):
            draft = step.rows(node)[1]
            assert draft is not None
            for child in tree.children(node):
                cumulative = np.cumsum(draft)
                assert int(np.argmax(cumulative > coins.random())) == tree.tokens[child]


def test_the_root_rows_serve_every_audit_of_a_store(recorded: TreeStore) -> None:
    target, draft = (law_from_logits(row) for row in recorded.row(2))
    assert audit("shaped", target, draft, 2).verdict.value == "EXACT_WITHIN"
    assert (recorded.row(2)[0] == recorded.rows_at(2)[0][0]).all()


@pytest.mark.parametrize(
    ("drafting", "system"),
    [
        (Drafting("3x2"), "shaped"),
        (Drafting("3x3", "without-replacement", 0.6), "sequoia"),
        (Drafting("eagle:9:2:3"), "eagle"),
        (Drafting("3x2", "top-k"), "top-k"),
    ],
    ids=lambda value: getattr(value, "tree", value),
)
def test_replays(tiny: Path, tmp_path: Path, drafting: Drafting, system: str) -> None:
    store = record_steps(tmp_path / "s", tiny, drafting, positions_per_prompt=1)
    assert store.verify() == 2
    assert system in systems_for(store)
    assert list(replay(store, system, tmp_path / "j.jsonl", repeats=3, audit_every=1)) == [(1, 2), (2, 2)]
    row = summarise(*read_journal(tmp_path / "j.jsonl"))
    assert row["steps"] == 6
    assert 1 <= row["accepted_length"] <= 4
    # The walk is trees.walk on the stored laws and the stated coins.
    step = store.step(1)
    again = walk(
        step.tree,
        step.rows,
        rule({"sequoia": "specinfer", "shaped": "shaped"}.get(system, "deterministic")),
        np.random.default_rng([0, 1, 2]),
        draw=store.draw,
    )
    result = json.loads((tmp_path / "j.jsonl").read_text().splitlines()[-1])
    assert result["steps"][2] == [[len(visit.candidates), visit.accepted] for visit in again.visits]


def test_a_published_row_carries_its_bias_and_lies_above_the_ceiling_or_not(
    recorded: TreeStore, tmp_path: Path
) -> None:
    for _ in replay(recorded, "resispec", tmp_path / "j", repeats=1, audit_every=1):
        pass
    settings, results = read_journal(tmp_path / "j")
    row = summarise(settings, results)
    assert row["verdict"] == "BIASED"
    assert row["total_variation"] > 0
    for result in results:  # the planted fault: a row whose audits were lost is not reported
        result["nodes"] = [{k: v for k, v in node.items() if k != "verdict"} for node in result["nodes"]]
    with pytest.raises(
        InputError, match="resispec has no audited row yet, and is not reported without its bias"
    ):
        summarise(settings, results)


def test_ctrl_c_keeps_whole_shards_and_a_rerun_ends_alike(tiny: Path, tmp_path: Path) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "recording" and done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_steps(tmp_path / "s", tiny, progress=interrupt)
    part = LogitsStore.open(tmp_path / "s")
    assert len(part) == part.verify() == 3
    record_steps(tmp_path / "s", tiny)
    record_steps(tmp_path / "whole", tiny)
    for file in (tmp_path / "whole").iterdir():
        assert (tmp_path / "s" / file.name).read_bytes() == file.read_bytes()


def test_an_interrupted_replay_goes_on_where_it_was(recorded: TreeStore, tmp_path: Path) -> None:
    steps = replay(recorded, "specinfer", tmp_path / "j", repeats=2)
    next(steps)
    steps.close()
    before = (tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(before + b'{"key": "1", "steps": [[[2')  # killed in the middle of a line
    list(replay(recorded, "specinfer", tmp_path / "j", repeats=2))
    after = (tmp_path / "j").read_bytes()
    assert after.startswith(before)
    assert [json.loads(line).get("key") for line in after.splitlines()] == [None, "0", "1", "2", "3"]
    with pytest.raises(InputError, match=r"other settings: repeats is 2 in the store and 3 now"):
        list(replay(recorded, "specinfer", tmp_path / "j", repeats=3))


def test_other_settings_and_damage_are_refused(
    recorded: TreeStore, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_trees, "recorded_steps", None)
    with pytest.raises(InputError, match=r"drafting.temperature is 1.0 in the store and 0.5 now"):
        record_steps(recorded.path, tiny, Drafting("3x2", temperature=0.5))
    with pytest.raises(InputError, match="drafts no rows to record"):
        Drafting("lookup")
    with pytest.raises(InputError, match="has no drafted node"):
        Drafting("1x3")
    index = json.loads((recorded.path / "store.json").read_text())
    for change, words in (
        ({"trees": index["trees"][1:]}, "not a tree for each"),
        ({"trees": [*index["trees"][1:], {"parents": [-1, 3], "tokens": [-1, 1]}]}, r"trees\[3\] is no tree"),
        (
            {"trees": [*index["trees"][1:], {"parents": [-1, 0], "tokens": [-1, 99]}]},
            "outside the vocabulary",
        ),
        (
            {"trees": [*index["trees"][1:], {"parents": [-1, 0], "tokens": [-1, 1]}]},
            r"but store.json says F16",
        ),
        ({"drafting": {}}, "has no drafting"),
    ):
        folder = tmp_path / "broken"
        folder.mkdir(exist_ok=True)
        for file in recorded.path.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        (folder / "store.json").write_text(json.dumps(index | change))
        with pytest.raises(InputError, match=words):
            LogitsStore.open(folder)


def test_a_store_without_trees_is_refused(store_folder: Path, recorded: TreeStore, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"holds rows and no trees: record with `resispec record --tree 5x3`"
    ):
        open_trees(store_folder)
    with pytest.raises(InputError, match=r"siblings drawn iid: 'sequoia' does not verify those"):
        next(replay(recorded, "sequoia", tmp_path / "j"))


def test_acceptance_by_index() -> None:
    visits = [[3, 0], [3, 2], [3, -1], [2, 1], [0, -1]]
    assert acceptance_by_index(visits) == [1 / 4, 1 / 3, 1 / 2]


def test_the_command(recorded: TreeStore, tmp_path: Path) -> None:
    out = str(tmp_path / "results")
    options = ["--recorded", str(recorded.path), "--out", out]
    result = CliRunner().invoke(speed, [*options, "--system", "shaped", "--json"], catch_exceptions=False)
    row = json.loads(result.stdout)["rows"][0]
    assert (row["system"], row["tree"], row["prompts"]) == ("shaped", "3x2", 2)
    line = (tmp_path / "results" / "speed.csv").read_text().splitlines()[1]
    assert line.split(",")[1:7] == ["recorded", "shaped", "3x2", "7", "1.0", "2"]
    table = CliRunner().invoke(speed, options, catch_exceptions=False).stdout
    assert "resispec" in table
    assert "BIASED" in table
    assert "name a folder for the results" in CliRunner().invoke(speed, options[:2]).stderr
    assert "say what to time" in CliRunner().invoke(speed, [*options, "--live"]).stderr
    for more, words in (
        (["--system", "eagle"], "verifies these stores"),
        (["--device", "cuda"], "time the GPU's kernels with --kernels"),
    ):
        result = CliRunner().invoke(speed, [*options, *more])
        assert words in str(result.exception)


def test_info_says_how_the_trees_were_drafted(recorded: TreeStore) -> None:
    out = CliRunner().invoke(info, [str(recorded.path)], catch_exceptions=False).stdout
    assert "3x2, siblings iid, T = 1, seed 0; 28 nodes in all" in out

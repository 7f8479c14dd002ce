"""A run on disk: its rows are those of the audit, and a kill at any step neither loses nor doubles one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from run_cases import PLAN, Raising, audited, check_whole, flip_byte, make_store, plant_nan, rows

from resispec_core import audit
from resispec_core.audit.positions import summarise
from resispec_core.errors import InputError
from resispec_core.laws import law_from_logits
from resispec_core.llama import writer as store_writer
from resispec_core.llama.store import LogitsStore
from resispec_core.runs import Plan, Run
from resispec_core.runs import plan as plan_module
from resispec_core.runs import run as run_module
from resispec_core.runs.store import PROBLEMS, RunWriter, parts, writing
from resispec_core.runs.totals import rule_columns, rule_totals, worst_positions


def test_rows_are_those_of_the_audit(store: LogitsStore, whole: Path) -> None:
    found = {(row["position"], row["rule"]): row for row in rows(whole)}
    assert len(found) == 2 * len(store)
    reports = {}
    for place in range(len(store)):
        p, q = (law_from_logits(row) for row in store.row(place))
        for rule in ("resispec", "specinfer"):
            report = reports[place, rule] = audit(rule, p, q, 2)
            row = found[place, rule]
            told = report.to_json()
            for name in (
                "verdict",
                "acceptance",
                "ceiling",
                "above_ceiling",
                "kl",
                "chi_square",
                "paths",
                "method",
            ):
                assert row[name] == told[name], name
            assert [row["tv_low"], row["tv_high"]] == told["total_variation_bracket"]
            assert row["acceptance_by_candidate"] == told["acceptance_by_candidate"]
            assert (row["witness_token"] is None) == (report.witness is None)
            if report.witness is not None:
                assert row["witness_text"] == f"t{report.witness.token}"
                assert row["witness_rejected_texts"] == [f"t{token}" for token in report.witness.rejected]
            position = store.positions[place]
            assert (row["context"], row["next_token"]) == (position.context, position.next_token)
    run = Run.open(whole)
    for rule in ("resispec", "specinfer"):
        one = rule_totals(rule_columns(run, rule)).to_json()
        other = summarise([reports[place, rule] for place in range(len(store))]).to_json()
        assert one.keys() == other.keys()
        assert one["verdicts"] == other["verdicts"]
        assert one["bound"] == other["bound"]
        # Two sums of 12 numbers ≤ 1 differ by less than 12·eps of their size.
        assert np.allclose(
            [one["means"][name] for name in ("acceptance", "ceiling", "total_variation")],
            [other["means"][name] for name in ("acceptance", "ceiling", "total_variation")],
            rtol=12 * np.finfo(float).eps,
            atol=0,
        )
    worst = worst_positions(run, rule_columns(run, "resispec"), 3)
    lows = sorted(reports[place, "resispec"].total_variation_bracket[0] for place in range(len(store)))
    assert [row["tv_low"] for row in worst] == lows[:-4:-1]


# Kills. Every fsync and every rename is a step; with one position a part there are many.


class KilledError(BaseException):
    """The process ends here."""


@contextmanager
def killed_at(step: int, *, after: bool) -> Iterator[list[int]]:
    """End the session at the step-th fsync or rename, before or after it; nothing that follows touches the disk."""
    count = [0]
    real: dict[str, Callable[..., Any]] = {"fsync": os.fsync, "replace": os.replace}

    def stepping(name: str) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            if count[0] >= step:
                raise KilledError
            count[0] += 1
            if count[0] == step and not after:
                if name == "fsync":
                    os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2)
                raise KilledError
            real[name](*arguments)
            if count[0] == step:
                raise KilledError

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_writer.os, "fsync", stepping("fsync"))
        patch.setattr(store_writer.os, "replace", stepping("replace"))
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # a killed process tidies nothing up
        yield count


@pytest.fixture
def one_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "POSITIONS_PER_PART", 1)


def check_kill(store: LogitsStore, out: Path, whole: Path, step: int, *, after: bool) -> None:
    with pytest.raises(KilledError), killed_at(step, after=after):
        audited(store, out)
    if (out / "run.json").exists():
        # After the manifest's two steps there are two a part, and a part is there once it is renamed.
        assert Run.open(out).done.sum() == max(0, (step if after else step - 1) - 2) // 2
    audited(store, out)
    check_whole(out, whole)


@pytest.mark.usefixtures("one_a_part")
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_step_loses_and_doubles_nothing(tmp_path: Path, after: bool) -> None:
    store = make_store(tmp_path / "small", positions=4, per_shard=2)
    audited(store, tmp_path / "whole")
    with killed_at(10**9, after=False) as steps:
        audited(store, tmp_path / "counted")
    assert steps == [2 + 2 * 4]
    for step in range(1, steps[0] + 1):
        check_kill(store, tmp_path / f"run{step}", tmp_path / "whole", step, after=after)


@pytest.mark.usefixtures("one_a_part")
@pytest.mark.parametrize("fault", ["written in place", "kept in memory", "twice"])
def test_the_check_catches_a_writer_that_loses_or_doubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    store = make_store(tmp_path / "small", positions=4, per_shard=2)
    audited(store, tmp_path / "whole")
    real = RunWriter.append

    def in_place(file: Path, data: bytes) -> None:
        with file.open("wb") as handle:
            handle.write(data)
            handle.flush()
            store_writer.os.fsync(handle.fileno())
        store_writer.os.replace(file, file)

    def append(writer: RunWriter, found: Any) -> None:
        if fault == "twice":
            real(writer, found)
            real(writer, found)
        elif found[0]["position"] != 2:
            real(writer, found)
        else:
            writer.done[2] = True  # counted as done, and nowhere on disk

    if fault == "written in place":
        monkeypatch.setattr("resispec_core.runs.store.replace_file", in_place)
    else:
        monkeypatch.setattr(RunWriter, "append", append)
    failing = 0
    for step in range(1, 11):
        try:
            check_kill(store, tmp_path / f"run{step}", tmp_path / "whole", step, after=False)
        except (AssertionError, InputError, pytest.fail.Exception):
            failing += 1
    assert failing > 0


# What a run refuses.


@pytest.mark.parametrize(
    ("plan", "named"),
    [
        (replace(PLAN, candidates=3), "candidates is 2 in the run and 3 now"),
        (
            replace(PLAN, draw="greedy", mismatched=True),
            'draw is null in the run and "greedy" now',
        ),
        (replace(PLAN, shaping={"temperature": 0.5}), "shaping.temperature is 1.0 in the run and 0.5 now"),
        (replace(PLAN, shaping={"top_k": 3}), "shaping.top_k is null in the run and 3 now"),
        (
            replace(PLAN, rules=("specinfer", "resispec")),
            'rules[0].label is "resispec" in the run and "specinfer" now',
        ),
    ],
)
def test_a_run_continues_only_as_it_was_begun(
    store: LogitsStore, whole: Path, plan: Plan, named: str
) -> None:
    before = rows(whole)
    with pytest.raises(InputError) as refused:
        audited(store, whole, plan)
    assert named in str(refused.value)
    assert rows(whole) == before


def test_a_run_is_of_one_store(tmp_path: Path, whole: Path) -> None:
    for positions, seed, named in ((11, 1, "store.positions is 12"), (12, 2, "store.index_sha256 is")):
        other = make_store(tmp_path / f"other{seed}", positions=positions, seed=seed)
        with pytest.raises(InputError, match=named):
            audited(other, whole)


def test_other_code_does_not_continue_a_run(
    store: LogitsStore, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = plan_module.versions() | {"code_sha256": "0" * 64}
    monkeypatch.setattr(plan_module, "versions", lambda: changed)
    with pytest.raises(InputError, match="code_sha256 is"):
        audited(store, whole)


def test_the_code_of_the_rooms_that_decide_is_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(plan_module.resispec_core.__file__).parent
    copy = shutil.copytree(
        root, tmp_path / "resispec_core", ignore=shutil.ignore_patterns("sample", "__pycache__")
    )
    monkeypatch.setattr(plan_module.resispec_core, "__file__", str(copy / "__init__.py"))
    hashed = plan_module._code_sha256.__wrapped__
    assert hashed() == plan_module._code_sha256()
    for file in ("audit/pair.py", "laws.py", "rules/specinfer.py", "drafts.py", "arrays.py"):
        before = hashed()
        (copy / file).write_text((copy / file).read_text() + "\n")
        assert hashed() != before, file


def test_a_folder_of_something_else(store: LogitsStore, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match=r"not empty \(thesis.txt\)"):
        audited(store, tmp_path / "out")
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"
    with pytest.raises(InputError, match="it is no run"):
        Run.open(tmp_path / "out")
    with pytest.raises(InputError, match="cannot write to"):
        audited(store, tmp_path / "out" / "thesis.txt")


def test_a_plan_that_makes_no_sense() -> None:
    for plan, message in (
        (lambda: Plan(()), "at least one rule"),
        (lambda: Plan(("specinfer", "specinfer")), "given twice"),
        (lambda: Plan(("specinfer",), candidates=0), "candidates is 0"),
        (lambda: Plan(("k-seq",), draw="without-replacement"), "is meant for candidates drawn"),
    ):
        with pytest.raises(InputError, match=message):
            plan()


def check_lock(store: LogitsStore, whole: Path) -> None:
    with writing(whole, PLAN, store), pytest.raises(InputError, match="another process is writing to"):
        audited(store, whole)
    assert audited(store, whole).audited == 0
    Run.open(whole)  # reading needs no lock


def test_only_one_process_writes(store: LogitsStore, whole: Path) -> None:
    check_lock(store, whole)


def test_the_check_sees_a_lock_that_does_not_lock(
    store: LogitsStore, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resispec_core.runs.store.file_lock", lambda _: Mock())
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check_lock(store, whole)


def test_two_runs_read_one_store(store: LogitsStore, whole: Path, tmp_path: Path) -> None:
    with writing(tmp_path / "first", PLAN, store):
        audited(store, tmp_path / "second")
    check_whole(tmp_path / "second", whole)


# Damage.


def test_a_full_disk(
    store: LogitsStore, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "POSITIONS_PER_PART", 3)
    real, left = os.fsync, [3]  # the manifest and two parts

    def fsync(handle: int) -> None:
        if not left[0]:
            raise OSError(28, "No space left on device")
        left[0] -= 1
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(store_writer.os, "fsync", fsync)
        with pytest.raises(
            InputError, match=r"part-00000002.parquet: No space left .* run the same command again"
        ):
            audited(store, tmp_path / "out")
    assert Run.open(tmp_path / "out").done.sum() == 6
    assert not list((tmp_path / "out").glob("*.part"))
    assert audited(store, tmp_path / "out").audited == 6
    check_whole(tmp_path / "out", whole)


def check_damaged_shard(store: LogitsStore, whole: Path, tmp_path: Path) -> None:
    shard = store.path / store.shards[1].file
    intact = shard.read_bytes()
    for number, damage in enumerate((flip_byte, Path.unlink, lambda file: file.write_bytes(intact[:50]))):
        out = tmp_path / f"out{number}"
        damage(shard)
        outcome = audited(store.path, out)
        assert (outcome.complete, outcome.done, outcome.interrupted) == (False, 8, False)
        (problem,) = outcome.problems
        assert (problem["place"], problem["positions"]) == (shard.name, 4)
        assert str(shard) in problem["error"]
        run = Run.open(out)
        assert run.problems == outcome.problems
        assert run.done.tolist() == [True] * 4 + [False] * 4 + [True] * 4
        shard.write_bytes(intact)
        assert audited(store.path, out).audited == 4
        check_whole(out, whole)
        assert Run.open(out).problems == []


def test_a_damaged_shard_costs_its_own_positions_only(
    store: LogitsStore, whole: Path, tmp_path: Path
) -> None:
    check_damaged_shard(store, whole, tmp_path)


def test_the_check_sees_a_session_that_trusts_every_shard(
    store: LogitsStore, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "_damage", lambda *_: None)
    with pytest.raises(AssertionError):
        check_damaged_shard(store, whole, tmp_path)


def test_a_bad_row_costs_its_own_position_only(store: LogitsStore, tmp_path: Path) -> None:
    plant_nan(store.path, shard=1, row=2)
    outcome = audited(store.path, tmp_path / "out")
    (problem,) = outcome.problems
    assert problem["place"] == "position 6"
    assert "position 6, target row: token 3 has logit nan" in problem["error"]
    assert outcome.done == 11


def test_a_bug_of_a_rule_is_told_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "PROBLEMS_KEPT", 5)
    store = make_store(tmp_path / "store")
    outcome = audited(store, tmp_path / "out", Plan((Raising(),), 1))
    assert (outcome.done, len(outcome.problems)) == (0, 6)
    assert outcome.problems[0]["error"] == "ZeroDivisionError: a bug of the rule"
    assert sum(problem["positions"] for problem in outcome.problems) == 12
    assert json.loads((tmp_path / "out" / PROBLEMS).read_text()) == outcome.problems


def test_what_fails_everywhere_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "FAILURES_ALLOWED", 5)
    store = make_store(tmp_path / "store")
    with pytest.raises(InputError, match=r"5 positions failed and none was audited, .* a bug of the rule"):
        audited(store, tmp_path / "out", Plan((Raising(),), 1))
    assert len(Run.open(tmp_path / "out").problems) == 5


def test_a_damaged_vocabulary(store: LogitsStore, tmp_path: Path) -> None:
    flip_byte(store.path / "vocabulary.json.gz")
    with pytest.raises(InputError, match=r"vocabulary.json.gz"):
        audited(store.path, tmp_path / "out")


@pytest.mark.usefixtures("one_a_part")
def test_a_damaged_part_is_named_and_can_be_deleted(store: LogitsStore, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    audited(store, out)
    audited(store, tmp_path / "colder", replace(PLAN, shaping={"temperature": 0.5}))
    part, other = parts(out)[3], parts(tmp_path / "colder")[0]
    intact = part.read_bytes()
    for damage, message in (
        (lambda: part.write_bytes(intact[:-1]), "part-00000003.parquet"),
        (lambda: part.write_bytes(b""), "part-00000003.parquet"),
        (lambda: part.write_bytes(other.read_bytes()), "it belongs to another run"),
        (lambda: (out / "part-00000099.parquet").write_bytes(intact), "holds position 3: a part before it"),
    ):
        damage()
        for use in (lambda: Run.open(out), lambda: audited(store, out)):
            with pytest.raises(InputError, match=message) as refused:
                use()
            assert "delete it and run the same" in str(refused.value)
        part.write_bytes(intact)
    (out / "part-00000099.parquet").unlink()
    part.unlink()
    assert audited(store, out).audited == 1
    check_whole(out, whole)


def test_damaged_manifests(whole: Path) -> None:
    manifest = whole / "run.json"
    good = json.loads(manifest.read_text())
    for text, message in (
        ("{", "cannot read"),
        (json.dumps(good | {"kind": "other"}), "it is no run"),
        (json.dumps(good | {"schema": 2}), "has schema 2"),
    ):
        manifest.write_text(text)
        with pytest.raises(InputError, match=message):
            Run.open(whole)


def test_parts_of_equal_runs_can_be_put_together(store: LogitsStore, whole: Path, tmp_path: Path) -> None:
    """Two machines that audited some of one store each: the parts of one are copied to the other under new names."""
    for damaged in (store.shards[:1], store.shards[1:]):
        out = tmp_path / f"without{len(damaged)}"
        intact = {shard.file: (store.path / shard.file).read_bytes() for shard in damaged}
        for name in intact:
            flip_byte(store.path / name)
        assert not audited(store.path, out).complete
        for name, data in intact.items():
            (store.path / name).write_bytes(data)
    for number, file in enumerate(parts(tmp_path / "without1")):
        shutil.copy(file, tmp_path / "without2" / f"part-{900 + number:08d}.parquet")
    check_whole(tmp_path / "without2", whole)

"""Writing a store: a kill at any step loses at most the shard in flight, and the check can tell."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save
from store_cases import VOCABULARY, log_rows, planned, settings, write_shards

from resispec_core.errors import InputError
from resispec_core.llama import writer as writer_module
from resispec_core.llama.store import LogitsStore
from resispec_core.llama.writer import StoreWriter, first_difference, replace_file

STEPS = 16  # vocabulary, index, then three times shard and index: eight files, an fsync and a rename each


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_at(step: int, *, after: bool) -> Iterator[None]:
    """End the run at the step-th fsync or rename, before or after it; nothing that follows touches the disk.

    Killed before an fsync, a file has reached the disk only in half.
    """
    count = 0
    real = {"fsync": os.fsync, "replace": os.replace}

    def stepping(name: str) -> Any:
        def call(*arguments: Any) -> None:
            nonlocal count
            count += 1
            if count == step and not after:
                if name == "fsync":
                    os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2)
                raise Killed
            real[name](*arguments)
            if count == step:
                raise Killed

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer_module.os, "fsync", stepping("fsync"))
        patch.setattr(writer_module.os, "replace", stepping("replace"))
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # a killed process tidies nothing up
        yield


def check_kill(
    folder: Path, step: int, *, after: bool, writer_class: type[StoreWriter] = StoreWriter
) -> None:
    """Kill a run at a step: what is left verifies, and a rerun ends with the bytes of a whole run."""
    with pytest.raises(Killed), killed_at(step, after=after):
        write_shards(folder, writer_class)
    steps_done = step if after else step - 1
    if steps_done >= 4:  # the vocabulary and the first index are there; then four steps a shard
        store = LogitsStore.open(folder)
        assert len(store) == store.verify() >= 2 * ((steps_done - 4) // 4)
    write_shards(folder, writer_class)
    whole = folder.parent / "whole"
    write_shards(whole)
    for file in whole.iterdir():
        assert (folder / file.name).read_bytes() == file.read_bytes(), file.name


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_a_kill_at_any_step_loses_at_most_the_shard_in_flight(tmp_path: Path, step: int, after: bool) -> None:
    check_kill(tmp_path / "store", step, after=after)


def test_the_steps_above_are_all_there_are(tmp_path: Path) -> None:
    with killed_at(STEPS + 1, after=False):
        write_shards(tmp_path / "store")


class IndexFirst(StoreWriter):
    """The planted fault: lists a shard before it is written."""

    def append(self, target: np.ndarray, draft: np.ndarray) -> None:
        data = save({"target": target, "draft": draft})
        name = f"shard-{len(self._index['shards']):05d}.safetensors"
        shard = {"file": name, "sha256": hashlib.sha256(data).hexdigest(), "rows": len(target)}
        positions = [vars(position) for position in self._planned[self.done : self.done + len(target)]]
        self._index["shards"].append(shard)
        self._index["positions"] += positions
        self._write_index(self._index)
        replace_file(self._folder / name, data)


def in_place(file: Path, data: bytes) -> None:
    """The planted fault: writes under the final name."""
    with file.open("wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(file, file)  # so that the steps are counted alike


def failing_steps(folder: Path, writer_class: type[StoreWriter], steps: int) -> list[int]:
    failing = []
    for step in range(1, steps + 1):
        try:
            check_kill(folder / str(step) / "store", step, after=False, writer_class=writer_class)
        except (AssertionError, InputError):
            failing.append(step)
    return failing


def test_a_writer_that_writes_the_index_first_is_caught(tmp_path: Path) -> None:
    assert failing_steps(tmp_path, IndexFirst, STEPS) == [7, 8, 11, 12, 15, 16]


def test_a_writer_that_writes_in_place_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "replace_file", in_place)
    # Killed inside store.json. A torn shard does no harm here: it is not listed yet.
    assert failing_steps(tmp_path, StoreWriter, STEPS) == [3, 7, 11, 15]


def test_ctrl_c_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    writer = StoreWriter(tmp_path / "s", settings(), planned(), VOCABULARY)
    monkeypatch.setattr(writer_module.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        writer.append(log_rows(2, 5, 1), log_rows(2, 5, 2))
    assert sorted(file.name for file in (tmp_path / "s").iterdir()) == ["store.json", "vocabulary.json.gz"]


def test_an_unfinished_store_can_be_read_and_says_so(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path, settings(), planned(), VOCABULARY)
    writer.append(log_rows(2, 5, 1), log_rows(2, 5, 2))
    store = LogitsStore.open(tmp_path)
    assert (len(store), store.complete) == (2, False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vocabulary_size": 6}, "vocabulary_size is 5 in the store and 6 now"),
        (
            {"draft": {"id": "D", "layers_skipped": [2]}},
            r"draft.layers_skipped\[0\] is 1 in the store and 2 now",
        ),
        ({"libraries": {"numpy": "3"}}, 'libraries.numpy is "2" in the store and "3" now'),
        ({"prompts": []}, r"prompts is .*… in the store and \[\] now"),
    ],
)
def test_other_settings_do_not_continue_a_store(
    store_folder: Path, changes: dict[str, Any], words: str
) -> None:
    before = {file.name: file.read_bytes() for file in store_folder.iterdir()}
    with pytest.raises(
        InputError, match=rf"recorded with other settings: {words}; rerun with the settings of"
    ):
        write_shards(store_folder, **changes)
    assert before == {file.name: file.read_bytes() for file in store_folder.iterdir()}


def test_another_vocabulary_does_not_continue_a_store(store_folder: Path) -> None:
    with pytest.raises(InputError, match=r"vocabulary_sha256 is"):
        StoreWriter(store_folder, settings(), planned(), ["another"])


def test_difference_of_equal_and_of_added_fields() -> None:
    assert first_difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}) is None
    assert first_difference({"a": 1}, {"a": 1, "b": 2}) == "b is null in the store and 2 now"


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"holds no store.json and is not empty \(thesis.txt\)"):
        write_shards(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(InputError, match=r"cannot write to .*f: .*; choose another folder"):
        write_shards(tmp_path / "f")


def test_a_full_disk_keeps_what_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    writer = StoreWriter(tmp_path, settings(), planned(), VOCABULARY)
    writer.append(log_rows(2, 5, 1), log_rows(2, 5, 2))
    with monkeypatch.context() as patch:
        patch.setattr(writer_module.os, "fsync", full)
        with pytest.raises(InputError, match=r"No space left .* are kept: make room"):
            writer.append(log_rows(2, 5, 1), log_rows(2, 5, 2))
    assert LogitsStore.open(tmp_path).verify() == writer.done == 2


@pytest.mark.parametrize(
    ("target", "draft", "words"),
    [
        (log_rows(2, 4, 1), log_rows(2, 4, 1), r"of shape \(2, 5\); got float16 \(2, 4\)"),
        (log_rows(2, 5, 1), log_rows(1, 5, 1), r"and float16 \(1, 5\)"),
        (log_rows(2, 5, 1), log_rows(2, 5, 1).astype(np.float32), r"and float32 \(2, 5\)"),
        (log_rows(7, 5, 1), log_rows(7, 5, 1), r"7 rows do not fit: 6 are still planned"),
        (log_rows(0, 5, 1), log_rows(0, 5, 1), r"0 rows do not fit"),
    ],
)
def test_shards_that_do_not_fit(tmp_path: Path, target: np.ndarray, draft: np.ndarray, words: str) -> None:
    writer = StoreWriter(tmp_path, settings(), planned(), VOCABULARY)
    with pytest.raises(InputError, match=words):
        writer.append(target, draft)
    assert len(LogitsStore.open(tmp_path)) == 0

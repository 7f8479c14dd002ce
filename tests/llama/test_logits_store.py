"""Reading a store: what comes back, how much is read, and what every kind of damage says."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from store_cases import log_rows, settings

from resispec_core.errors import InputError
from resispec_core.llama.positions import Position
from resispec_core.llama.store import LogitsStore, file_sha256, sample_store
from resispec_core.llama.writer import StoreWriter


def edit(folder: Path, change: Callable[[dict], object]) -> None:
    file = folder / "store.json"
    index = json.loads(file.read_text())
    change(index)
    file.write_text(json.dumps(index))


def test_what_was_written_comes_back(store_folder: Path) -> None:
    store = LogitsStore.open(store_folder)
    target, draft = log_rows(6, 5, seed=1), log_rows(6, 5, seed=2)
    assert len(store) == 6
    assert store.vocabulary == 5
    assert store.complete
    for i in range(6):
        row, other = store.row(i)
        assert row.dtype == other.dtype == np.float16
        assert np.array_equal(row, target[i])
        assert np.array_equal(other, draft[i])
    assert store.positions[2] == Position(0, 3, "a", 4, "d")
    assert store.metadata["draft"] == {"id": "D", "layers_skipped": [1]}
    assert [store.decode(i) for i in range(5)] == ["<unk>", "a", "b", "c", "d"]
    assert store.verify() == 6


def test_a_padded_vocabulary_has_ids_without_text(tmp_path: Path) -> None:
    StoreWriter(tmp_path / "s", settings(vocabulary_size=7), [], ["x", "y"])
    store = LogitsStore.open(tmp_path / "s")
    assert (store.decode(1), store.decode(6)) == ("y", None)
    with pytest.raises(InputError, match=r"token id 7 is outside the vocabulary, 0 to 6"):
        store.decode(7)


@pytest.mark.parametrize("i", [-1, 6])
def test_a_row_that_is_not_there(store_folder: Path, i: int) -> None:
    with pytest.raises(InputError, match=rf"row {i} is not in .*: it holds rows 0 to 5"):
        LogitsStore.open(store_folder).row(i)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def huge_header(file: Path) -> None:
    file.write_bytes((2**62).to_bytes(8, "little") + file.read_bytes()[8:])


def other_tensors(file: Path) -> None:
    save_file({"target": np.zeros((2, 5), np.float16)}, file)


def other_shape(file: Path) -> None:
    save_file({name: np.zeros((2, 4), np.float16) for name in ("target", "draft")}, file)


def other_dtype(file: Path) -> None:
    save_file({name: np.zeros((2, 5), np.float32) for name in ("target", "draft")}, file)


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGE = {
    "truncated": (cut, "not fully covered"),
    "empty": (lambda file: file.write_bytes(b""), ""),
    "garbage": (lambda file: file.write_bytes(b"\xff" * 100), "header"),
    "garbage JSON": (lambda file: file.write_bytes((8).to_bytes(8, "little") + b"not json" * 9), "header"),
    "huge header": (huge_header, "header"),
    "missing": (Path.unlink, "it is missing"),
    "a folder": (a_folder, ""),
    "other tensors": (other_tensors, r"it holds \['target'\] instead of target and draft"),
    "other shape": (other_shape, r"is F16 \(2, 4\), but store.json says F16 \(2, 5\)"),
    "other dtype": (other_dtype, r"is F32 \(2, 5\)"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_shard_is_named_when_the_store_is_opened(store_folder: Path, name: str) -> None:
    damage, words = DAMAGE[name]
    damage(store_folder / "shard-00001.safetensors")
    with pytest.raises(InputError, match=rf"(?s)shard-00001.safetensors: .*{words}.*; copy the store again"):
        LogitsStore.open(store_folder)


def test_a_shard_lost_after_opening_is_an_input_error_too(store_folder: Path) -> None:
    store = LogitsStore.open(store_folder)
    (store_folder / "shard-00000.safetensors").unlink()
    with pytest.raises(InputError, match=r"shard-00000"):
        store.row(0)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))


@pytest.mark.parametrize("name", ["shard-00002.safetensors", "vocabulary.json.gz"])
def test_one_changed_bit_passes_open_and_fails_verify(store_folder: Path, name: str) -> None:
    flip(store_folder / name)
    store = LogitsStore.open(store_folder)
    with pytest.raises(InputError, match=rf"{name}: its sha256 is .* but store.json says"):
        store.verify()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (math.nan, "token 3 is NaN"),
        (math.inf, r"token 3 is \+inf"),
        (0.0, "sum to .*, not to 1"),
        (-math.inf, "sum to"),
    ],
)
def test_verify_finds_a_bad_row_behind_a_good_hash(store_folder: Path, value: float, words: str) -> None:
    target, draft = log_rows(2, 5, seed=1), log_rows(2, 5, seed=2)
    draft[1] = np.log([0.1, 0.1, 0.1, 0.6, 0.1])
    draft[1, 3] = value
    shard = store_folder / "shard-00000.safetensors"
    save_file({"target": target, "draft": draft}, shard)
    edit(store_folder, lambda index: index["shards"][0].update(sha256=file_sha256(shard)))
    with pytest.raises(InputError, match=rf"draft row 1 of .*: .*{words}.*record again"):
        LogitsStore.open(store_folder).verify()


def test_verify_finds_a_position_that_its_prompt_contradicts(store_folder: Path) -> None:
    edit(store_folder, lambda index: index["positions"][4].update(next_token=4))
    with pytest.raises(InputError, match=r"row 4 of .* says token 4 followed, but the prompt has 2 there"):
        LogitsStore.open(store_folder).verify()


INDEX_DAMAGE = {
    "newer schema": (
        lambda i: i.update(schema=3),
        "has schema 3; this release reads schemas 1 and 2: upgrade resispec-core",
    ),
    "no schema": (lambda i: i.pop("schema"), "has schema None; .*: record again"),
    "schema true": (lambda i: i.update(schema=True), "has schema True"),
    "other kind": (lambda i: i.update(kind="x"), 'it does not say "kind": "resispec-logits"'),
    "no vocabulary": (lambda i: i.pop("vocabulary_size"), "it has no vocabulary_size of type int"),
    "other vocabulary": (lambda i: i.update(vocabulary_size=9), r"says F16 \(2, 9\)"),
    "empty vocabulary": (lambda i: i.update(vocabulary_size=0), "vocabulary_size is 0"),
    "row count": (
        lambda i: i["shards"][0].update(rows=3),
        "its shards hold 7 rows, but it lists 6 positions",
    ),
    "too many rows": (lambda i: i.update(planned_rows=5), "it holds 6 rows of 5 planned"),
    "no rows": (lambda i: i["shards"][0].update(rows=0), "has 0 rows"),
    "way out": (
        lambda i: i["shards"][0].update(file="../x.safetensors"),
        "not a plain .safetensors file name",
    ),
    "text as a row count": (
        lambda i: i["shards"][0].update(rows="2"),
        r"shards\[0\] has no rows of type int",
    ),
    "a list for a shard": (lambda i: i["shards"].__setitem__(0, []), r"shards\[0\] is not an object"),
    "unknown field": (lambda i: i["positions"][0].update(x=1), r"positions\[0\] has unknown fields \['x'\]"),
    "no such prompt": (lambda i: i["positions"][0].update(prompt=1), r"positions\[0\] names prompt 1 of 1"),
    "past the prompt": (lambda i: i["positions"][0].update(index=7), r"positions\[0\] is outside its prompt"),
    "no such token": (
        lambda i: i["positions"][0].update(next_token=10**30),
        r"positions\[0\] names token 1000",
    ),
}


@pytest.mark.parametrize("name", INDEX_DAMAGE)
def test_a_damaged_index_says_what_is_wrong(store_folder: Path, name: str) -> None:
    change, words = INDEX_DAMAGE[name]
    edit(store_folder, change)
    with pytest.raises(InputError, match=words):
        LogitsStore.open(store_folder)


@pytest.mark.parametrize("text", [b"{", b"[]", b"\xff\xfe", b"[" * 100_000])
def test_an_index_that_is_not_ours(store_folder: Path, text: bytes) -> None:
    (store_folder / "store.json").write_bytes(text)
    with pytest.raises(InputError, match=r"cannot use .*store.json: .*; copy the store again"):
        LogitsStore.open(store_folder)


def test_folders_that_are_no_store(
    tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        InputError, match=r"nowhere does not exist; pass a folder written by `resispec record`"
    ):
        LogitsStore.open(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"is a file; pass the folder"):
        LogitsStore.open(store_folder / "store.json")
    with pytest.raises(InputError, match=r"holds no store.json: .* make one with `resispec record`"):
        LogitsStore.open(tmp_path)

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)  # permissions do not bind a test that runs as root
    with pytest.raises(
        InputError, match=r"cannot read .*store.json: Permission denied; check its permissions"
    ):
        LogitsStore.open(store_folder)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"no gzip", "gzip"),
        (gzip.compress(b"[]" * 100, mtime=0)[:-9], ""),
        (gzip.compress(b"{}", mtime=0), "not a list of strings"),
        (gzip.compress(b'["a", 3]', mtime=0), "not a list of strings"),
        (gzip.compress(json.dumps(["a"] * 6).encode(), mtime=0), "lists 6 tokens, but the rows hold 5"),
    ],
)
def test_a_damaged_vocabulary_is_named_when_it_is_read(store_folder: Path, data: bytes, words: str) -> None:
    (store_folder / "vocabulary.json.gz").write_bytes(data)
    store = LogitsStore.open(store_folder)
    with pytest.raises(InputError, match=rf"vocabulary.json.gz: .*{words}"):
        store.decode(0)


def peak_of(call: Callable[[], object]) -> int:
    """Most bytes that Python and NumPy held at once during a call (both report to tracemalloc)."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_row_is_read_without_its_shard(tmp_path: Path) -> None:
    rows, width = 512, 16_384  # a shard of 32 MiB, two rows of 32 KiB each
    ids = [i % 5 for i in range(rows + 1)]
    prompts = [{"name": "p", "text": "", "token_ids": ids}]
    places = [Position(0, i, "", ids[i], "") for i in range(1, rows + 1)]
    writer = StoreWriter(tmp_path / "s", settings(vocabulary_size=width, prompts=prompts), places, ["a"])
    block = np.zeros((rows, width), np.float16)
    writer.append(block, block)
    store = LogitsStore.open(tmp_path / "s")
    shard = store.path / store.shards[0].file
    assert 2 * 2 * width <= peak_of(lambda: store.row(300)) < 4 * (2 * 2 * width)
    # The planted fault, reading the whole shard: the measure sees it.
    assert peak_of(lambda: load_file(shard)["target"][300]) >= 2 * rows * width


HEAVY = "torch transformers tokenizers gguf cupy matplotlib"


def heavy_after(statement: str) -> str:
    code = f"import sys\n{statement}\nprint(*sorted(set({HEAVY!r}.split()) & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return answer.stdout.strip()


def test_reading_a_store_imports_no_heavy_library() -> None:
    read = "from resispec_core.llama.store import sample_store; sample_store().row(0)"
    commands = "import resispec_core.cli.info, resispec_core.cli.record, resispec_core.llama.models"
    assert heavy_after(f"{read}\n{commands}") == ""
    assert heavy_after("import tokenizers") == "tokenizers"  # the planted fault


def test_the_shipped_sample_keeps_its_promises() -> None:
    store = sample_store()
    assert store.complete
    assert store.verify() == len(store) >= 24
    assert store.vocabulary == 49_152
    assert sum(file.stat().st_size for file in store.path.iterdir()) <= 6_000_000
    assert [prompt["name"] for prompt in store.metadata["prompts"]] == ["prose", "code", "list", "dialogue"]
    for prompt in range(4):
        places = [position.index for position in store.positions if position.prompt == prompt]
        assert len(places) >= 6
        assert places == sorted(set(places))
        assert places[0] > 3
        assert places[-1] > 100
    for position in store.positions:
        assert store.decode(position.next_token) == position.next_text
    assert store.metadata["draft"]["layers_skipped"] == [12, 13, 14, 15, 16, 17]
    assert not any("/" in entry["file"] for entry in store.metadata["target"]["files"])


def test_the_sample_holds_a_useful_pair() -> None:
    """Target and draft differ, the target is the better model, and easy and hard positions occur."""
    store = sample_store()
    overlaps, target_loss, draft_loss = [], 0.0, 0.0
    for i, position in enumerate(store.positions):
        p, q = (np.exp(row.astype(np.float64)) for row in store.row(i))
        overlaps.append(float(np.minimum(p / p.sum(), q / q.sum()).sum()))
        target_loss -= math.log(p[position.next_token])
        draft_loss -= math.log(q[position.next_token])
    assert min(overlaps) < 0.3
    assert max(overlaps) > 0.9
    assert target_loss < draft_loss < len(store) * math.log(store.vocabulary)

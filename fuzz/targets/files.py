"""Parsers of files: a store of logits (index, shard, vocabulary) and counterexample files.

Any bytes give an ``InputError`` or a valid object: nothing else may be raised, and what is returned must work.
A counterexample of a rule is also run, through ``resispec replay``; those of callables are only read, since running
one imports the code it names. The numbers in documents stay small: a valid file may ask for any amount of work.
"""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fuzz.target import Case, Target
from fuzz.targets.commands import run
from resispec_core.audit.counterexample import Counterexample, load
from resispec_core.errors import InputError
from resispec_core.llama.positions import Position
from resispec_core.llama.store import LogitsStore
from resispec_core.llama.writer import StoreWriter

PARSERS = ("counterexample", "store.json", "shard", "vocabulary")


def write_store(folder: Path) -> Path:
    """Two rows over three tokens, in one shard."""
    settings = {
        "target": {"id": "T"},
        "draft": {"id": "D"},
        "libraries": {},
        "tokenizer_sha256": "0" * 64,
        "vocabulary_size": 3,
        "dtype": "float16",
        "prompts": [{"name": "p", "text": "t", "token_ids": [0, 1, 2]}],
    }
    positions = [Position(0, 1, "t", 1, "b"), Position(0, 2, "t", 2, "c")]
    writer = StoreWriter(folder, settings, positions, ["a", "b", "c"])
    rows = np.log(np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])).astype(np.float16)
    writer.append(rows, rows[::-1].copy())
    return folder


def examples() -> dict[str, bytes]:
    """A good file for every parser."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = write_store(Path(scratch) / "store")
        (shard,) = folder.glob("*.safetensors")
        case = Counterexample(
            "rule", "resispec", ["1/3"] * 3, ["1/2", "2/5", "1/10"], {"candidates": 1, "draw": "iid"},
            {"budget": "local"}, {"verdict": "BIASED", "total_variation": "1489/9870", "witness": None},
        )  # fmt: skip
        return {
            "counterexample": json.dumps(case.to_json()).encode(),
            "store.json": (folder / "store.json").read_bytes(),
            "shard": shard.read_bytes(),
            "vocabulary": (folder / "vocabulary.json.gz").read_bytes(),
        }


EXAMPLES = examples()

SCALARS = st.one_of(
    st.sampled_from([None, True, False, 0, 1, -1, 2, 3, 7, 1.5, float("nan"), float("inf"), "\ud800"]),
    st.sampled_from(
        ["", "1/0", "1/2", "nan", "1e400", "0.5", "resispec", "specinfer", "top-k", "verify", "iid", "F16"]
    ),
    st.sampled_from(["../x.safetensors"]),
    st.text(max_size=8),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(
    ["candidates", "draw", "max_cells", "mismatched", "partial", "orders", "epsilon", "foo", "rule"]
)


def places(document: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every part of a JSON document."""
    found = [at]
    inside = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in inside:
        found += places(value, (*at, key))
    return found


@st.composite
def documents(draw: st.DrawFn, good: Any) -> bytes:
    """``good`` with up to four of its parts replaced, removed or added to."""
    box = [copy.deepcopy(good)]
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(places(box)[1:]))
        parent = box
        for key in path[:-1]:
            parent = parent[key]
        part = parent[path[-1]]
        deed = draw(st.sampled_from(["replace", "remove", "add"]))
        if deed == "add" and isinstance(part, dict):
            part[draw(st.one_of(KEYS, st.text(max_size=6)))] = draw(VALUES)
        elif deed == "add" and isinstance(part, list):
            part.insert(draw(st.integers(0, len(part))), draw(VALUES))
        elif deed == "remove" and parent is not box:
            del parent[path[-1]]
        else:
            parent[path[-1]] = draw(VALUES)
        if not box:
            break
    return json.dumps(box[0] if box else None).encode("utf-8", "surrogatepass")


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    """``good`` cut, and with bytes changed, inserted or repeated."""
    data = bytearray(good)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        deed = draw(st.sampled_from(["set", "cut", "insert", "repeat"]))
        if deed == "set" and data:
            data[place] = draw(st.integers(0, 255))
        elif deed == "cut":
            del data[place:]
        elif deed == "insert":
            data[place:place] = draw(st.binary(min_size=1, max_size=8))
        else:
            data[place:place] = data[place : place + 4] * draw(st.sampled_from([1, 2, 40]))
    return bytes(data)


@st.composite
def shards(draw: st.DrawFn) -> bytes:
    """A shard with its header rewritten: length, document, and the bytes behind."""
    good = EXAMPLES["shard"]
    length = int.from_bytes(good[:8], "little")
    header = draw(documents(json.loads(good[8 : 8 + length])))
    said = draw(st.one_of(st.just(len(header)), st.integers(0, 2**64 - 1)))
    return said.to_bytes(8, "little") + header + good[8 + length :]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A parser and the bytes of its file, as latin-1 text."""
    parser = draw(st.sampled_from(PARSERS))
    good = EXAMPLES[parser]
    ways = [damaged(good), damaged(good), st.binary(max_size=64)]
    if parser in ("counterexample", "store.json"):
        ways = [documents(json.loads(good))] * 4 + ways
    elif parser == "shard":
        ways = [shards(), *ways]
    elif parser == "vocabulary":
        import gzip

        ways = [documents(["a", "b", "c"]).map(lambda text: gzip.compress(text, mtime=0)), *ways]
    return {"parser": parser, "data": draw(st.one_of(ways)).decode("latin-1")}


def check(case: Case) -> None:
    """Read the file as its user would; only ``InputError`` may come out."""
    data = case["data"].encode("latin-1")
    with tempfile.TemporaryDirectory(prefix="resispec-fuzz-file-") as scratch:
        if case["parser"] == "counterexample":
            path = Path(scratch) / "case.json"
            path.write_bytes(data)
            check_counterexample(path)
        else:
            folder = write_store(Path(scratch) / "store")
            place = {"store.json": "store.json", "vocabulary": "vocabulary.json.gz"}.get(case["parser"])
            path = folder / place if place else next(iter(folder.glob("*.safetensors")))
            path.write_bytes(data)
            check_store(folder)


def check_counterexample(path: Path) -> None:
    """Loading; saving what was loaded; for a rule, replaying it."""
    try:
        case = load(path)
    except InputError as error:
        if path.name not in str(error):
            raise AssertionError(f"the message does not name the file: {error}") from None
        return
    again = load(case.save(path.with_name("again.json")))
    assert again == case or "NaN" in path.read_text(encoding="utf-8"), (
        "a saved counterexample reads differently"
    )
    count = case.settings.get("candidates", 1)
    if case.kind == "rule" and not (isinstance(count, int) and count > 100):
        run(["replay", str(path)], path.parent)
        run(["replay", str(path), "--json"], path.parent)


def check_store(folder: Path) -> None:
    """Opening; then every row, every token's text, and the whole check."""
    try:
        store = LogitsStore.open(folder)
    except InputError:
        return
    assert len(store) == sum(shard.rows for shard in store.shards)
    uses: list[Any] = [store.verify, lambda: store.complete, lambda: store.decode(0)]
    uses += [lambda i=i: store.row(i) for i in range(min(len(store), 20))]
    for use in uses:
        try:
            use()
        except InputError:
            continue
    run(["info", str(folder), "--verify", "--json"], folder.parent)


TARGET = Target("files", cases, check)

"""Bad input: the message names the value and the place, the status is 2, and there is no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_cases import WITNESS, Result, overwrite_rows, run_process, shard, write_store

Run = Callable[..., Result]
NAN = float("nan")


def damage_truncated(folder: Path) -> None:
    shard(folder).write_bytes(shard(folder).read_bytes()[:-3])


def damage_header(folder: Path) -> None:
    shard(folder).write_bytes((2**62).to_bytes(8, "little") + shard(folder).read_bytes()[8:])


def damage_vocabulary(folder: Path) -> None:
    overwrite_rows(folder, target=[[-1.0] * 4] * 3, draft=[[-1.0] * 5] * 3)


def damage_missing(folder: Path) -> None:
    shard(folder).unlink()


def damage_index(folder: Path) -> None:
    (folder / "store.json").write_text("{")


def damage_no_index(folder: Path) -> None:
    (folder / "store.json").unlink()


def damage_unreadable(folder: Path) -> None:
    # A folder in the file's place: unreadable for everybody, the superuser included.
    (folder / "store.json").unlink()
    (folder / "store.json").mkdir()


def damage_nan(folder: Path) -> None:
    rows = [[-1.0] * 4, [-1.0, NAN, -1.0, -1.0], [-1.0] * 4]
    overwrite_rows(folder, target=rows, draft=[[-1.0] * 4] * 3)


def damage_plus_infinity(folder: Path) -> None:
    rows = [[-1.0] * 4, [-1.0] * 4, [float("inf"), -1.0, -1.0, -1.0]]
    overwrite_rows(folder, target=[[-1.0] * 4] * 3, draft=rows)


def damage_masked(folder: Path) -> None:
    overwrite_rows(folder, target=[[float("-inf")] * 4] * 3, draft=[[-1.0] * 4] * 3)


@pytest.mark.parametrize(
    ("damage", "messages"),
    [
        (damage_truncated, ("shard-00000.safetensors", "record again")),
        (damage_header, ("shard-00000.safetensors", "header", "record again")),
        (damage_vocabulary, ("shard-00000.safetensors", "draft is F16 (3, 5)", "F16 (3, 4)")),
        (damage_missing, ("shard-00000.safetensors", "it is missing")),
        (damage_index, ("store.json", "it is not JSON")),
        (damage_no_index, ("holds no store.json",)),
        (damage_unreadable, ("cannot read", "store.json", "check its permissions")),
        (damage_nan, ("position 1, target row", "token 1 has logit nan")),
        (damage_plus_infinity, ("position 2, draft row", "token 0 has logit inf")),
        (damage_masked, ("position 0, target row", "all 4 tokens are masked")),
    ],
)
def test_a_damaged_store(
    run: Run, small_store: Path, damage: Callable[[Path], None], messages: tuple[str, ...]
) -> None:
    damage(small_store)
    before = sorted(path.name for path in small_store.iterdir())
    found = run("audit", "--rule", "specinfer", "--logits", str(small_store))
    refused(found, *messages, str(small_store))
    assert found.out == ""
    assert sorted(path.name for path in small_store.iterdir()) == before
    # The twin for machines: the same message as JSON on standard output.
    twin = run("audit", "--rule", "specinfer", "--logits", str(small_store), "--json")
    assert json.loads(twin.out)["error"] == found.err.removeprefix("resispec: ").rstrip("\n")


def refused(found: Result, *messages: str) -> None:
    """Status 2, one line that says all of ``messages``, no traceback."""
    assert found.code == 2
    assert "Traceback" not in found.err
    assert found.err.startswith("resispec: ")
    assert found.err.count("\n") == 1
    for message in messages:
        assert message in found.err


@pytest.mark.parametrize(
    "wrong",
    [
        Result(1, "", "resispec: row 3\n"),
        Result(2, "", "Traceback (most recent call last):\nrow 3\n"),
        Result(2, "", "resispec: row 4\n"),
    ],
)
def test_the_check_itself_fails_on_a_bad_refusal(wrong: Result) -> None:
    with pytest.raises(AssertionError):
        refused(wrong, "row 3")


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (("--rule", "resispecs"), ("unknown rule 'resispecs'", "did you mean 'resispec'?", "known: ")),
        (("--rule", "SpecInfer"), ("did you mean 'specinfer'?",)),
        (("--rule", "zzz"), ("unknown rule 'zzz' (known: ",)),
        (("--rule", "resispec", "--redistribution", "even"), ("'even' is unknown", "waterfill")),
        (("--rule", "resispec", "--budget", "big"), ("'big' is unknown", "eq13")),
        (
            ("--rule", "specinfer", "--redistribution", "waterfill"),
            ("--redistribution is an option of resispec, not of specinfer",),
        ),
        (("--rule", "specinfer", "-n", "-2"), ("candidates is -2", "at least one")),
        (("--rule", "specinfer", "-n", "0"), ("candidates is 0",)),
        (("--rule", "specinfer", "--draw", "sorted"), ("unknown draw mode 'sorted'", "without-replacement")),
        (("--rule", "k-seq", "--draw", "top-k"), ("'k-seq' is meant for candidates drawn iid, not top-k",)),
        (("--rule", "k-seq", "--mismatched"), ("mismatched=True needs draw",)),
    ],
)
@pytest.mark.parametrize("source", ["pair", "store"])
def test_bad_options(
    run: Run, small_store: Path, source: str, arguments: tuple[str, ...], messages: tuple[str, ...]
) -> None:
    where = WITNESS if source == "pair" else ("--logits", str(small_store))
    refused(run("audit", *where, *arguments), *messages)


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (("--target", "1/2,1/2"), ("--target and --draft go together",)),
        (("--draft", "1/2,1/2"), ("--target and --draft go together",)),
        (
            ("--target", "1/2,1/3", "--draft", "1/2,1/2"),
            ("--target: probabilities sum to 5/6", "off by -1/6"),
        ),
        (("--target", "1/2,1/2", "--draft", "0.3,0.69"), ("--draft: probabilities sum to 99/100",)),
        (("--target", "1/2,1/2", "--draft", "1/2,1/4,1/4"), ("2 tokens", "3", "same vocabulary")),
        (("--target", "3/2,-1/2", "--draft", "1/2,1/2"), ("--target: token 1 has probability -1/2",)),
        (("--target", "1/2,x", "--draft", "1/2,1/2"), ("--target: entry 1 is 'x'",)),
        (("--target", "1/0,1", "--draft", "1/2,1/2"), ("--target: entry 0 is '1/0'",)),
        (("--target", "nan,1", "--draft", "1/2,1/2"), ("--target: entry 0 is 'nan'",)),
        (("--target", "", "--draft", "1/2,1/2"), ("--target: entry 0 is ''",)),
        ((*WITNESS, "--temperature", "0.5"), ("--temperature applies to logits",)),
        ((*WITNESS, "--top-k", "0"), ("--top-k applies to logits",)),
        ((*WITNESS, "--top-p", "0.9"), ("--top-p applies to logits",)),
        ((*WITNESS, "--min-p", "0.1"), ("--min-p applies to logits",)),
        ((*WITNESS, "--logits", "somewhere"), ("--logits applies to logits",)),
        (("--rule", "specinfer", *WITNESS, "-n", "4", "--draw", "without-replacement"), ("at most 3",)),
    ],
)
def test_bad_pairs(run: Run, arguments: tuple[str, ...], messages: tuple[str, ...]) -> None:
    refused(run("audit", *arguments), *messages)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--temperature", "-1"), "temperature is -1.0"),
        (("--temperature", "nan"), "temperature is nan"),
        (("--top-k", "0"), "top_k is 0"),
        (("--top-p", "1.5"), "top_p is 1.5"),
        (("--min-p", "-0.1"), "min_p is -0.1"),
    ],
)
def test_bad_filters(run: Run, small_store: Path, arguments: tuple[str, ...], message: str) -> None:
    refused(run("audit", "--logits", str(small_store), *arguments), message)


def test_places_that_hold_no_store(run: Run, tmp_path: Path) -> None:
    refused(run("audit", "--logits", str(tmp_path / "no")), "does not exist", "resispec record")
    (tmp_path / "file").write_text("x")
    refused(run("audit", "--logits", str(tmp_path / "file")), "is a file", "resispec record")
    refused(run("audit", "--logits", str(tmp_path)), "holds no store.json")
    refused(run("info", str(tmp_path)), "holds no store.json")


def test_a_store_without_positions(run: Run, tmp_path: Path) -> None:
    folder = write_store(tmp_path / "s", [[-1.0, -1.0]], [[-1.0, -1.0]])
    index = json.loads((folder / "store.json").read_text())
    (folder / "store.json").write_text(json.dumps(index | {"positions": [], "shards": []}))
    refused(run("audit", "--logits", str(folder)), "holds no recorded position", "resispec record")


def test_a_process_of_its_own_prints_no_traceback(small_store: Path) -> None:
    damage_nan(small_store)
    refused(
        run_process("audit", "--rule", "specinfer", "--logits", str(small_store)), "position 1, target row"
    )
    refused(run_process("audit", "--rule", "resispc"), "did you mean 'resispec'?")

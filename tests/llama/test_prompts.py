"""The texts, their files, and the positions chosen in them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resispec_core.errors import InputError
from resispec_core.llama.prompts import BUILT_IN, Prompt, read_prompts, spread_indices


@given(st.integers(1, 60), st.integers(0, 500))
def test_indices_are_spread_evenly_and_never_the_first_token(count: int, more: int) -> None:
    length = count + 1 + more
    indices = spread_indices(length, count)
    assert len(indices) == count
    assert indices[0] >= 1
    assert indices[-1] < length
    steps = [b - a for a, b in pairwise(indices)]
    assert min(steps, default=1) >= 1
    assert max(steps, default=0) - min(steps, default=0) <= 1


def test_indices_of_a_known_case() -> None:
    assert spread_indices(11, 5) == [2, 4, 6, 8, 10]


@pytest.mark.parametrize(
    ("length", "count", "words"),
    [(5, 0, "is 0; pass at least 1"), (5, 5, "5 tokens, too few for 5"), (0, 1, "0 tokens.*pass at most 0")],
)
def test_too_few_tokens_or_positions(length: int, count: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        spread_indices(length, count)


def test_the_built_in_texts_are_of_four_kinds() -> None:
    assert [prompt.name for prompt in BUILT_IN] == ["prose", "code", "list", "dialogue"]
    compile(BUILT_IN[1].text, "code", "exec")  # the code is code


def test_files(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("One.\n\nTwo.\n", encoding="utf-8")
    assert read_prompts(tmp_path / "story.txt") == (Prompt("story", "One.\n\nTwo.\n"),)
    (tmp_path / "p.jsonl").write_text(
        '{"text": "a\u2028b"}\n\n{"name": "n", "text": "c"}\n', encoding="utf-8"
    )
    assert read_prompts(tmp_path / "p.jsonl") == (Prompt("p-1", "a\u2028b"), Prompt("n", "c"))


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.txt", b"  \n", "a.txt holds no text"),
        ("a.jsonl", b"\n", "a.jsonl holds no text"),
        ("a.txt", b"ok \xff", r"not UTF-8 text \(byte 3\); save it as UTF-8"),
        ("a.jsonl", b'{"text": "a"}\n{oops', "a.jsonl line 2 is not JSON"),
        ("a.jsonl", b'{"txt": "a"}', 'line 1 has no text: write {"text"'),
        ("a.jsonl", b'["a"]', "line 1 has no text"),
        ("a.jsonl", b'{"text": "a", "name": 3}', "line 1: name is 3; make it a string"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=words):
        read_prompts(tmp_path / name)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read prompts from .*no.txt: No such file"):
        read_prompts(tmp_path / "no.txt")

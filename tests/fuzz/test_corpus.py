"""Every case that the fuzzer has kept, run again: each once failed, or reached code that no other case reaches."""

from __future__ import annotations

import json

import pytest

from fuzz import corpus
from fuzz.target import TARGETS
from resispec_core.errors import InputError
from tests.shim import build

FILES = corpus.files()


@pytest.mark.parametrize("target", TARGETS)
def test_the_corpus_passes(target: str) -> None:
    if target == "kernels" and build.unavailable() is not None:
        pytest.skip(str(build.unavailable()))
    own = [path for path in FILES if path.parent.name == target]
    assert own, f"no case is on record for {target}"
    for path in own:
        try:
            corpus.replay(path)
        except Exception as error:
            error.add_note(f"on {path}")
            raise


def test_every_file_says_which_target_it_is_of() -> None:
    assert {path.parent.name for path in FILES} == set(TARGETS)
    for path in FILES:
        assert corpus.read(path)[0] == path.parent.name


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "resispec-fuzz", "target": "laws2"}'])
def test_other_files_are_refused_by_name(tmp_path, text: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"odd\.json"):
        corpus.read(path)


def test_a_case_comes_back_from_its_file(tmp_path) -> None:
    for path in (next(own for own in FILES if own.parent.name == name) for name in TARGETS):
        name, case = corpus.read(path)
        again = corpus.write(name, case, {"error": "none"}, tmp_path)
        assert corpus.read(again) == (name, case)
        assert json.loads(again.read_text())["found"]["error"] == "none"

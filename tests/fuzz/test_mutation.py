"""The mutation runner on a room of one function: a strict test kills a mutant, a careless one does not."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from fuzz import mutation
from fuzz.target import TARGETS

ROOT = mutation.ROOT
SOURCE = "def half(x):\n    if x < 0:\n        return 0\n    return x / 2\n"
HEAD = "from resispec_core.rules.thing import half\n\ndef test_half():\n"
STRICT = HEAD + "    assert [half(x) for x in (-2, 0, 1, 3)] == [0, 0, 0.5, 1.5]\n"
CARELESS = HEAD + "    assert half(0) == 0\n"
BROKEN = "import nowhere_to_be_found\n"


def room(tmp_path: Path, test: str) -> dict[str, list[str]]:
    pytest.importorskip("cosmic_ray", reason="cosmic-ray is in the extra 'fuzz'")
    (tmp_path / "resispec_core" / "rules").mkdir(parents=True)
    (tmp_path / "resispec_core" / "audit").mkdir()
    for folder in ("", "rules", "audit"):
        (tmp_path / "resispec_core" / folder / "__init__.py").write_text("")
    (tmp_path / "resispec_core" / "rules" / "thing.py").write_text(SOURCE)
    (tmp_path / "test_thing.py").write_text(test)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return {"resispec_core/": ["test_thing.py"]}


@pytest.mark.parametrize(
    ("test", "outcome", "void"),
    [(STRICT, "killed", []), (CARELESS, "survived", []), (BROKEN, "killed", ["test_thing.py"])],
    ids=["strict", "careless", "broken"],
)
def test_what_kills_and_whose_kill_is_void(
    tmp_path: Path, test: str, outcome: str, void: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The fork must see this folder's package, not the one that is loaded here.
    lists = room(tmp_path, test)
    found = [mutant for mutant in mutation.mutants(tmp_path) if mutant.file.endswith("thing.py")]
    (halved,) = (mutant for mutant in found if mutant.operator == "core/ReplaceBinaryOperator_Div_Mul")
    for name in [name for name in sys.modules if name.split(".")[0] == "resispec_core"]:
        monkeypatch.delitem(sys.modules, name)
    line = mutation.attempt(tmp_path, halved, lists, rationed=True)
    assert line["diff"][1:] == ["-    return x / 2", "+    return x * 2"]
    assert line["outcome"] == outcome
    assert (tmp_path / "resispec_core" / "rules" / "thing.py").read_text() == SOURCE
    (tmp_path / "results.jsonl").write_text(json.dumps(line) + "\n")
    assert mutation.control(tmp_path) == void


def test_kinds_of_mutant() -> None:
    assert mutation.wanted("core/ReplaceComparisonOperator_Lt_LtE")
    assert mutation.wanted("core/ReplaceComparisonOperator_Is_IsNot")
    for operator in ("ReplaceComparisonOperator_Lt_Is", "ReplaceBinaryOperator_Add_BitOr", "RemoveDecorator"):
        assert not mutation.wanted(f"core/{operator}")
    assert not mutation.compiles("def f(:")


def test_wilson_s_interval() -> None:
    low, high = mutation.interval(90, 100)
    assert (round(low, 3), round(high, 3)) == (0.826, 0.945)


def test_every_file_of_the_rooms_has_tests_and_they_exist() -> None:
    for folder in mutation.MUTATED:
        for path in (ROOT / folder).rglob("*.py"):
            for lists in (mutation.TESTS, mutation.MORE):
                for test in mutation.tests_for(str(path.relative_to(ROOT)), lists):
                    assert (ROOT / test.partition("::")[0]).exists(), test
    for name in mutation.COUNTING:
        file, _, test = name.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text()


def test_the_nightly_workflow_names_what_there_is() -> None:
    text = (ROOT / ".ci" / "nightly.yml").read_text()
    assert re.search(r"target: \[(.*)\]", text)[1].split(", ") == list(TARGETS)
    modules = set(re.findall(r"python -m fuzz\.(\w+)", text))
    assert modules == {"soak", "power", "mutation"}
    assert all((ROOT / "fuzz" / f"{name}.py").exists() for name in modules)
    assert (ROOT / "tests" / "gpu" / "device_check.sh").exists()

"""`resispec audit CALLABLE` and `--package`: verdicts, files and exit codes, and what is refused."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli_cases import Result

from resispec_core.audit import Verdict
from resispec_core.cli import sampler

Run = Callable[..., Result]
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of docs/examples as the working directory."""
    folder = shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(folder)
    return folder


def test_a_module_of_the_working_directory(run: Run, examples: Path) -> None:
    before = list(sys.path)
    found = run("audit", "mypackage.sampler:verify")
    assert found.code == 1
    assert "written to: counterexample-verify.json" in found.out
    assert "outcome [0] has probability 0.75 instead of 0.5" in found.out
    assert sys.path == before
    case = json.loads((examples / "counterexample-verify.json").read_text())
    assert (case["subject"], case["target"]) == ("mypackage.sampler:verify", ["1/2", "1/2"])
    again = run("replay", "counterexample-verify.json")
    assert again.code == 1
    assert again.out.count("1/4") == 2


def test_the_right_sampler_is_exact_and_writes_nothing(run: Run, examples: Path) -> None:
    found = run("audit", "mypackage/sampler.py:right", "--json")
    assert (found.code, found.json["verdict"], found.json["written"]) == (0, "EXACT", None)
    assert not list(examples.glob("*.json"))


@pytest.mark.parametrize(
    ("arguments", "code", "tv"),
    [
        (("right", "--target", "1/2,1/2", "--draft", "3/4,1/4"), 0, "0"),
        (("verify", "--target", "1/2,1/2", "--draft", "3/4,1/4", "-n", "1"), 1, "1/8"),
        (("right", "--draw", "top-k", "-n", "1"), 1, None),
        (("step", "--horizon", "1"), 0, "0"),
        (("step", "--horizon", "2"), 1, None),
        # A target that does not depend on the prefix, and whose mode is certain, hides the greedy bonus.
        (("step", "--horizon", "2", "--target", "0,1", "--draft", "1/2,1/2"), 0, "0"),
        (("step", "--horizon", "2", "--target", "1/3,2/3", "--draft", "1/2,1/2"), 1, None),
        (("kernel", "-n", "1"), 1, None),
    ],
)
def test_options_reach_the_engine(
    run: Run, examples: Path, arguments: tuple[str, ...], code: int, tv: str | None
) -> None:
    name, *options = arguments
    found = run("audit", f"mypackage.sampler:{name}", *options, "--write", "case.json", "--json")
    assert found.code == code
    assert (examples / "case.json").exists() == (code == 1)
    if tv is not None:
        assert found.json["worst"]["total_variation"] == tv


def test_a_kernel_is_measured_never_exact(run: Run, examples: Path) -> None:
    Path("mine.py").write_text(
        "import numpy as np\n"
        "def kernel(target, draft, candidates, uniforms):\n"
        "    return int(np.searchsorted(np.cumsum(target)[:-1], uniforms[0], side='right'))\n"
    )
    found = run("audit", "mine.py:kernel", "--target", "1/4,3/4", "--draft", "1/2,1/2", "--coins", "1")
    assert found.code == 3
    assert "NOT_REFUTED" in found.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mypackage.sampler:nothing",), "mypackage.sampler has no 'nothing'; it has kernel"),
        (("mypackage.nowhere:verify",), "module 'mypackage.nowhere' is not installed"),
        (("nowhere.py:verify",), "nowhere.py: no such file"),
        (("verify",), "names no callable; write module:callable"),
        (("resispec",), "'resispec' is a rule; write --rule resispec"),
        (("mypackage.sampler:residual",), "pass --signature"),
        (("mypackage.sampler:verify", "--signature", "rule"), "known: verify, step, kernel"),
        (("mypackage.sampler:verify", "--rule", "resispec"), "--rule is about rules"),
        (("mypackage.sampler:verify", "--top-k", "3"), "--top-k is about rules"),
        (("mypackage.sampler:verify", "--temperature", "0.5"), "--temperature is about rules"),
        (("mypackage.sampler:verify", "--target", "1"), "--target and --draft go together"),
        (("mypackage.sampler:verify", "--draw", "sorted"), "unknown draw mode 'sorted'"),
        (("mypackage.sampler:verify", "-n", "0"), "candidates is 0"),
        (("mypackage.sampler:step", "--horizon", "0"), "horizon is 0"),
        (("mypackage.sampler:verify", "--library", "jax"), "known: numpy, torch"),
        (("quits.py:verify",), "quits.py cannot be loaded: SystemExit"),
        (("--horizon", "2"), "--horizon needs a CALLABLE"),
        (("--write", "x.json"), "--write needs a CALLABLE"),
        (("--package", "numpy"), "no adapter for package 'numpy'; known: transformers"),
        (("--package", "transformers", "--rule", "resispec"), "--rule does not go with --package"),
        (("mypackage.sampler:verify", "--package", "transformers"), "CALLABLE does not go with --package"),
    ],
)
def test_refusals(run: Run, examples: Path, arguments: tuple[str, ...], message: str) -> None:
    Path("quits.py").write_text("raise SystemExit(0)\n")
    found = run("audit", *arguments)
    assert (found.code, found.out) == (2, "")
    assert message in found.err
    assert "Traceback" not in found.err


def test_an_uncontrolled_source_is_refused_by_name(run: Run, examples: Path) -> None:
    Path("mine.py").write_text(
        "import os\ndef verify(target, draft, candidates, rng):\n    return os.urandom(1)[0] % len(target)\n"
    )
    found = run("audit", "mine.py:verify")
    assert found.code == 2
    assert "urandom" in found.err


def test_a_package_is_audited_with_its_version(run: Run) -> None:
    found = run("audit", "--package", "transformers", "--json")
    assert (found.code, found.json["verdict"]) == (0, "EXACT_WITHIN")
    audits = found.json["audits"]
    assert any(item["report"]["real_coin_grid"] for item in audits)
    assert {item["version"] for item in audits} == {found.json["version"]}
    assert found.json["verdict_on_the_coin_grid"] == "BIASED"  # printed, and no part of the exit code


def test_a_biased_package_leaves_status_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def item(verdict: Verdict, grid: bool) -> SimpleNamespace:
        report = SimpleNamespace(
            verdict=verdict, grid=grid, total_variation=0.25, zero_mass=0, paths=3, crash_mass=0
        )
        return SimpleNamespace(package="p", version="1", function="f", setting="s", report=report)

    items = [item(Verdict.EXACT, False), item(Verdict.BIASED, True)]
    monkeypatch.setattr(sampler, "audit_package", lambda name: items)
    found = run("audit", "--package", "p")
    assert found.code == 0
    exact, biased = (line for line in found.out.splitlines() if line.startswith("f: s"))
    assert exact.split()[2:] == ["EXACT", "0.25", "0", "3"]
    assert "TV 0.25; 0 where p = 0" in biased
    assert "BIASED" not in biased
    assert "not part of the verdict or the exit code" in found.out
    items.append(item(Verdict.BIASED, False))
    assert run("audit", "--package", "p").code == 1

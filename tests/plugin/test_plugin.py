"""The pytest plugin, in runs of its own: silent until used, then a line a verdict, also under pytest-xdist."""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

import resispec_core.testing.assertions  # noqa: F401  (loaded here, since pytester unloads what a test loads)
from resispec_core.audit.counterexample import load
from resispec_core.cli.main import main
from resispec_core.testing.session import current

pytest_plugins = ["pytester"]

INSTALLED = any(
    entry.value == "resispec_core.testing.plugin" for entry in metadata.entry_points(group="pytest11")
)
PLUGIN = () if INSTALLED else ("-p", "resispec_core.testing.plugin")

SAMPLERS = """
import numpy as np
from hypothesis import Phase, given, settings
from resispec_core import parse_law
from resispec_core.testing import *

CASE = VerificationCase(parse_law("1/3,1/3,1/3"), parse_law("1/2,2/5,1/10"), 1)

def good(target, draft, candidates, rng):
    for x in candidates:
        if rng.random() * draft[x] < target[x]:
            return x
        left = np.maximum(target - draft, 0 * target)
        target = left / left.sum()
    return int(rng.choice(len(target), p=target))

def forgetful(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] < target[x]:
        return x
    return int(rng.choice(len(target), p=target))
"""


@pytest.fixture
def tests(pytester: pytest.Pytester):
    """Runs these tests: ``tests("def test_x(): ...", "-n", "2")``."""

    def call(body: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_mine=SAMPLERS + body)
        parallel = () if "-n" in arguments else ("-p", "no:xdist")
        # In processes of their own: pytester would unload compiled modules that NumPy loads only once.
        return pytester.runpytest_subprocess(
            *PLUGIN, *parallel, "-p", "no:cacheprovider", "-W", "error", *arguments
        )

    return call


def test_no_effect_until_used(tests, pytester: pytest.Pytester) -> None:
    found = tests("\ndef test_plain(): pass\n")
    found.assert_outcomes(passed=1)
    printed = [line for line in found.outlines if not line.startswith(("plugins:", "rootdir:"))]
    assert "resispec" not in "".join(printed)
    assert not (pytester.path / ".resispec").exists()


def test_a_run_inside_a_run_gives_the_session_back(pytester: pytest.Pytester) -> None:
    before = current()
    config = pytester.parseconfigure(*PLUGIN, "--resispec-alpha", "0.25")
    assert current().alpha == 0.25
    config._ensure_unconfigure()
    assert current() is before


def test_a_line_per_verdict(tests) -> None:
    found = tests(
        """
def test_rule(): assert_exact("specinfer", CASE)
def test_sampler(): assert_exact(good, CASE)
@settings(max_examples=10, database=None, deadline=None)
@given(case=verification_cases(3, 2))
def test_many(case): assert_exact(good, case)
"""
    )
    found.assert_outcomes(passed=3)
    found.stdout.fnmatch_lines(
        [
            "*resispec verdicts*",
            "test_mine.py::test_many good: EXACT, 10 cases, * paths, TV = 0",
            "test_mine.py::test_rule specinfer: EXACT, 5 paths, TV = 0",
            "test_mine.py::test_sampler good: EXACT, * paths, TV = 0 *",
        ]
    )
    assert "statistical" not in found.stdout.str()


def test_a_failure_names_a_file_that_shows_it_again(
    tests, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tests("\ndef test_it(): assert_exact(forgetful, CASE)\n")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        [
            "*AssertionError: test_mine.py:forgetful: BIASED*",
            "*witness: outcome*",
            "*counterexample written to *.resispec*test_mine.py-test_it-forgetful.json",
            "test_mine.py::test_it forgetful: BIASED, * paths, TV = *",
        ]
    )
    assert "assertions.py" not in found.stdout.str()  # the traceback ends in the user's own line
    (file,) = (pytester.path / ".resispec").iterdir()
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["replay", str(file)])
    assert stop.value.code == 1
    assert capsys.readouterr().out.count("BIASED") == 2


def test_the_file_of_a_hypothesis_test_holds_the_smallest_case(tests, pytester: pytest.Pytester) -> None:
    found = tests(
        """
@settings(
    max_examples=100, database=None, deadline=None, derandomize=True, phases=[Phase.generate, Phase.shrink]
)
@given(case=verification_cases(5, 2))
def test_many(case): assert_exact(forgetful, case, monte_carlo=0)
""",
        "--resispec-folder",
        "found",
    )
    found.assert_outcomes(failed=1)
    (file,) = (pytester.path / "found").iterdir()
    case = load(file)
    assert len(case.target) <= 3
    text = f"parse_law('{','.join(case.target)}'), parse_law('{','.join(case.draft)}')"
    assert text in found.stdout.str()


STATISTICAL = """
import pytest
def draws(row):
    rng = np.random.default_rng(1)
    return lambda count: rng.choice(len(row), size=count, p=row)
@pytest.mark.parametrize("place", range(4))
def test_draws(place): assert_not_refuted(draws([.5, .5]), [.5, .5], samples=2000, name="coin")
def test_own(resispec_alpha, resispec_session): assert 0 < resispec_alpha <= resispec_session.alpha / 2
def test_exact(): assert_exact(good, CASE)
def test_fails(): assert_exact(forgetful, CASE)
"""


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_alpha_is_shared_by_all(tests, pytester: pytest.Pytester, parallel: tuple[str, ...]) -> None:
    found = tests(STATISTICAL, "--resispec-alpha", "1e-4", *parallel)
    found.assert_outcomes(passed=6, failed=1)
    text = found.stdout.str()
    assert len(re.findall(r"coin: NOT REFUTED above TV 0\.\d+, e = \S+, n = 2000", text)) == 4
    assert len(re.findall(r"test_exact good: EXACT, \d+ paths, TV = 0", text)) == 1
    count, spent = re.search(r"statistical assertions: (\d+), α spent (\S+) of 0.0001", text).groups()
    assert count == "5"
    assert 2e-5 < float(spent) < 1e-4
    (file,) = (pytester.path / ".resispec").iterdir()
    assert json.loads(file.read_text())["kind"] == "verify"


TRACED = """
def test_good(): assert_exact(good, CASE)
def test_forgetful(): assert_exact(forgetful, CASE)
def test_torch():
    import torch
    assert_exact(lambda target, draft, candidates, rng: int(torch.multinomial(target, 1)), CASE, library="torch")
def test_refused():
    assert_exact(lambda target, draft, candidates, rng: int(rng.normal() > 0), CASE)
"""
TRACERS = {
    "pytest-cov, C tracer": ("ctrace", ["--cov=test_mine", "--cov-report="]),
    "pytest-cov, Python tracer, xdist": (
        "pytrace",
        ["--cov=test_mine", "--cov-report=", "-n", "2", "-k", "not torch"],
    ),
    "pytest-cov, sys.monitoring": ("sysmon", ["--cov=test_mine", "--cov-report="]),
    "sys.settrace": ("", ["-p", "tracing", "-k", "not torch"]),
}
TRACING = """
import sys
lines = 0
def trace(frame, event, argument):
    global lines
    lines += 1
    return trace
sys.settrace(trace)
def pytest_unconfigure():
    sys.settrace(None)
    print("traced", lines > 10_000)
"""


def verdicts(found: pytest.RunResult) -> list[str]:
    """The summary's lines and the refusal; node ids, counts and figures included."""
    text = found.stdout.str()
    assert re.search("RefusalError: numpy.random Generator.normal is read at test_mine.py:", text), text
    return sorted(re.findall(r"^test_mine\.py::\S+ \S+: [A-Z].*$", text, re.M))


UNTRACED: list[str] = []
"""The verdicts of the first run without a tracer, kept for the others."""


@pytest.mark.parametrize("name", TRACERS)
def test_tracing_changes_no_verdict(
    tests, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A tracer watches the sampler, its replay and the patches; paths, figures and refusals stay the same."""
    core, arguments = TRACERS[name]
    if core == "sysmon" and sys.version_info < (3, 12):
        pytest.skip("sys.monitoring came with Python 3.12")
    if not UNTRACED:
        UNTRACED.extend(verdicts(tests(TRACED)))
    assert len(UNTRACED) == 3
    pytester.makepyfile(tracing=TRACING)
    if core:
        monkeypatch.setenv("COVERAGE_CORE", core)
    traced = tests(TRACED, *arguments)
    with_torch = "not torch" not in arguments  # imported once is enough: it takes seconds
    assert verdicts(traced) == [line for line in UNTRACED if with_torch or "test_torch" not in line]
    if core:
        assert (pytester.path / ".coverage").stat().st_size > 0
    else:
        assert "traced True" in traced.stdout.str()


def test_a_wrong_alpha_is_a_usage_error(tests) -> None:
    found = tests("\ndef test_plain(): pass\n", "--resispec-alpha", "2")
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    assert "--resispec-alpha is 2.0" in found.stderr.str()


def test_help_names_the_options(tests) -> None:
    found = tests("", "--help")
    found.stdout.fnmatch_lines(["*--resispec-alpha=RATE*", "*--resispec-folder=DIR*"])
    assert Path(".resispec").name in found.stdout.str()

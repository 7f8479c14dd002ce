"""The assertions without pytest's help: what they return, raise and write."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from resispec_core import parse_law, rules
from resispec_core.audit.counterexample import load, reproduce
from resispec_core.errors import InputError
from resispec_core.testing import VerificationCase, assert_exact, assert_exact_sampler, assert_not_refuted
from resispec_core.testing.session import Session, activate

CASE = VerificationCase(parse_law("1/3,1/3,1/3"), parse_law("1/2,2/5,1/10"), 1)


@pytest.fixture(autouse=True)
def session(tmp_path: Path):
    """A session whose files go to a folder of the test."""
    mine = Session(1e-6, tmp_path)
    before = activate(mine)
    yield mine
    activate(before)


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


def greedy_step(target_model, draft_model, prefix, rng):
    return [int(np.argmax(target_model(prefix)))]


def threshold_kernel(target, draft, candidates, uniforms):
    return int(np.searchsorted(np.cumsum(target)[:-1], uniforms[0], side="right"))


def test_what_is_exact_passes_and_is_noted(session: Session) -> None:
    assert assert_exact("specinfer", CASE).verdict == "EXACT"
    assert assert_exact(rules.SpecInfer(), target=[0.5, 0.5], draft=[0.1, 0.9]).verdict == "EXACT_WITHIN"
    assert assert_exact(good, CASE).verdict == "EXACT"
    assert assert_exact("deterministic", CASE).draw == "top-k"
    lines = {name: str(record) for name, record in session.records.items()}
    assert lines["good"].startswith("good: EXACT, ")
    assert lines["specinfer"].startswith("specinfer: EXACT WITHIN, 2 cases, ")
    assert not list(session.folder.iterdir())


def test_a_biased_rule_fails_with_its_file(session: Session) -> None:
    rule = rules.ResiSpec(redistribution="waterfill")
    with pytest.raises(AssertionError, match=r"resispec: BIASED, 5 paths, TV = 0\.189") as failure:
        assert_exact(rule, CASE)
    (file,) = session.folder.iterdir()
    assert f"resispec replay {file}" in str(failure.value)
    assert str(reproduce(load(file)).total_variation) == "17/90"


def test_a_biased_callable_fails_with_its_witness(session: Session) -> None:
    with pytest.raises(AssertionError, match=r"witness: outcome .* instead of") as failure:
        assert_exact(forgetful, CASE)
    (file,) = session.folder.iterdir()
    assert "counterexample written to" in str(failure.value)
    data = json.loads(file.read_text())
    assert (data["kind"], data["target"], data["draft"]) == ("verify", ["1/3"] * 3, ["1/2", "2/5", "1/10"])
    assert reproduce(load(file), forgetful).verdict == "BIASED"


def test_settings_reach_the_audit_and_the_file(session: Session) -> None:
    case = VerificationCase(CASE.target, CASE.draft, 2)
    with pytest.raises(AssertionError):
        assert_exact(good, case, draw="top-k", numbers="float64")
    (file,) = session.folder.iterdir()
    assert load(file).settings == {"candidates": 2, "draw": "top-k", "numbers": "float64"}


def test_a_local_function_is_not_said_to_be_replayable() -> None:
    with pytest.raises(AssertionError) as failure:
        assert_exact(lambda target, draft, candidates, rng: candidates[0], CASE)
    assert "counterexample written" in str(failure.value)
    assert "resispec replay" not in str(failure.value)


def test_samplers_on_the_hard_inputs(session: Session) -> None:
    assert len(assert_exact_sampler(good).reports) > 10
    with pytest.raises(AssertionError, match="counterexample written to"):
        assert_exact_sampler(forgetful)
    with pytest.raises(AssertionError, match=r"(?s)greedy_step: BIASED.*'horizon': 1"):
        assert_exact_sampler(greedy_step)
    assert len(list(session.folder.iterdir())) == 2


def test_a_measured_kernel_never_passes() -> None:
    with pytest.raises(AssertionError, match="measured is not proved"):
        assert_exact_sampler(threshold_kernel, target=["1/4", "3/4"], draft=["1/2", "1/2"], coins=1)


def test_draws(session: Session) -> None:
    rng = np.random.default_rng(3)
    row = [0.1, 0.2, 0.3, 0.4]
    report = assert_not_refuted(lambda count: rng.choice(4, size=count, p=row), row, name="good")
    assert (report.verdict, report.alpha) == ("NOT_REFUTED", 5e-7)
    with pytest.raises(AssertionError, match=r"biased: BIASED at level 1\.7e-07"):
        assert_not_refuted(lambda count: rng.choice(4, size=count, p=row[::-1]), row, name="biased")
    with pytest.raises(AssertionError, match=r"INCONCLUSIVE, 2000 draws refute only .* not 0\.001; raise"):
        assert_not_refuted(
            lambda count: rng.choice(4, size=count, p=row), row, samples=2000, smallest=0.001, alpha=1e-9
        )
    assert session.spent == [5e-7, 1e-6 / 6]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: assert_exact(good), "no case was given"),
        (lambda: assert_exact(good, CASE, candidates=2), "one or the other"),
        (lambda: assert_exact("resispecs", CASE), "did you mean 'resispec'"),
        (lambda: assert_exact(lambda a, b, c, rng: rng.normal(), CASE), "normal"),
        (lambda: assert_exact("k-seq", CASE, draw="top-k"), "is meant for candidates drawn iid"),
    ],
)
def test_what_cannot_be_audited_is_an_error_not_a_failure(act, message: str) -> None:
    with pytest.raises(InputError, match=message):
        act()

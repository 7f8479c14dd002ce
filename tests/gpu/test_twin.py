"""`resispec replay --on gpu`: the law of a rule's twin, measured through its coins, beside the reference's."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from resispec_core.audit import Verdict
from resispec_core.audit.counterexample import Counterexample
from resispec_core.cli.main import main
from resispec_core.errors import BudgetExceededError, InputError
from resispec_core.gpu import api, law, twin
from resispec_core.gpu.twin import ON_THE_CPU, TWINS, twin_audit
from tests.gpu.pairs import PAIRS, Pair

P, Q = ["1/3"] * 3, ["1/2", "2/5", "1/10"]
HARD = (
    (P, Q),
    (["1/10", "1/5", "3/10", "2/5"], ["2/5", "3/10", "1/5", "1/10"]),
    (["0", "3/10", "1/10", "3/5"], ["1/2", "0", "2/5", "1/10"]),
    ([0.1, 0.2, 0.7], [0.6, 0.3, 0.1]),  # not on a common grid: rounded to float32, for both
)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_every_twin_has_the_law_of_the_reference(pair: Pair) -> None:
    for target, draft in HARD:
        for candidates in (1,) if pair.rule == "single_draft" else (1, 2):
            report = twin_audit(
                pair.rule.replace("_", "-"), target, draft, candidates, options=pair.options()
            )
            assert report.agrees, str(report)
            biased = report.reference.verdict is Verdict.BIASED
            assert report.verdict is (Verdict.BIASED if biased else Verdict.NOT_REFUTED), str(report)
            assert report.exit_code == (1 if biased else 3)


def test_every_twin_is_in_the_table() -> None:
    assert {(pair.rule.replace("_", "-"), pair.draw) for pair in PAIRS} == set(TWINS.items())


def test_the_published_rule_has_its_known_law() -> None:
    report = twin_audit("resispec", P, Q)
    assert report.reference.total_variation == Fraction(1489, 9870)
    np.testing.assert_allclose(report.law, [107 / 282, 46 / 105, 1801 / 9870], rtol=0, atol=1e-15)


FAULTS = {
    "rows in the wrong slots": lambda rule, p, q, ids, coins, **kept: api.verify(
        rule, q, p, ids, coins, target_norm=kept["draft_norm"], draft_norm=kept["target_norm"]
    ),
    "one coin for both": lambda rule, p, q, ids, coins, **kept: api.verify(
        rule, p, q, ids, coins[:, [0] * coins.shape[1]], **kept
    ),
    "last candidate ignored": lambda rule, p, q, ids, coins, **kept: api.verify(
        rule, p, q, ids[:, [0] * ids.shape[1]], coins, **kept
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_twin_is_told_from_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin, "verify", FAULTS[name])
    report = twin_audit("specinfer", *HARD[1], 2)
    assert not report.agrees, str(report)
    assert report.verdict in (Verdict.BIASED, Verdict.INCONCLUSIVE)
    assert report.exit_code == 1


def test_a_twin_that_refuses_its_rows_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(rule, p, q, ids, coins, **kept):
        return api.verify(rule, p * np.float32(np.nan), q, ids, coins, **kept)

    monkeypatch.setattr(twin, "verify", faulty)
    with pytest.raises(InputError, match=r"refused 100\.0% of its nodes"):
        twin_audit("specinfer", P, Q)


def test_what_has_no_twin_is_named() -> None:
    with pytest.raises(InputError, match="'k-seq' has no GPU twin"):
        twin_audit("k-seq", P, Q)
    with pytest.raises(InputError, match="drawn without-replacement"):
        twin_audit("specinfer", P, Q, 2, draw="without-replacement")
    with pytest.raises(InputError, match="candidates is 9"):
        twin_audit("specinfer", P, Q, 9)


def test_a_batch_beyond_the_budget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(law, "MAX_ENTRIES", 1000)
    with pytest.raises(BudgetExceededError, match="9 candidate tuples over 3 tokens"):
        twin_audit("specinfer", P, Q, 2)


def test_a_device_is_asked_when_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plumbing only, with NumPy in CuPy's place: where the arrays go and what the report says it ran on."""
    sent = []
    properties = SimpleNamespace(getDeviceProperties=lambda _: {"name": b"Stand-in"})
    fake = SimpleNamespace(
        asarray=lambda array: sent.append(array.shape) or array,
        asnumpy=np.asarray,
        cuda=SimpleNamespace(runtime=properties, Device=lambda: SimpleNamespace(id=0)),
    )
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(twin, "why_no_device", lambda: None)
    report = twin_audit("resispec", P, Q)
    assert report.runs_on == "fused kernels on Stand-in"
    assert report.agrees
    assert len(sent) == 55 * 6  # 54 bisections and the random coins; six arrays each


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str]):
    def call(*words: object) -> tuple[object, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(["replay", *map(str, words)])
        return stop.value.code, *capsys.readouterr()

    return call


@pytest.mark.skipif(twin.why_no_device() is None, reason="a CUDA device is here; its kernels would run")
def test_the_command_says_where_it_ran(replay, tmp_path) -> None:
    found = {"verdict": "BIASED", "total_variation": "1489/9870"}
    case = Counterexample("rule", "resispec", P, Q, {"candidates": 1}, found=found)
    file = case.save(tmp_path / "rule.json")
    code, out, _ = replay(file, "--on", "gpu")
    assert code == 1
    assert out.count("BIASED") == 3
    assert f"runs on: {ON_THE_CPU} (no GPU path" in out
    assert "they agree" in out
    data = json.loads(replay(file, "--on", "gpu", "--json")[1])
    assert (data["agrees"], data["reference"]["total_variation"]) == (True, "1489/9870")


def test_a_callable_has_no_twin(replay, tmp_path) -> None:
    file = Counterexample("verify", "mine.py:f", P, Q, {"candidates": 1}).save(tmp_path / "verify.json")
    code, _, err = replay(file, "--on", "gpu")
    assert code == 2
    assert "only a rule has a GPU twin" in err

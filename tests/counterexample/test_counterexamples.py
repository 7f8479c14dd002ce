"""From a user's callable to a small file and back: search, shrinking, the file format, the replay command."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
import user_samplers

from resispec_core.adapters.callable import audit_callable, guess_signature, load_callable
from resispec_core.audit import Verdict
from resispec_core.audit.counterexample import Counterexample, load, reproduce
from resispec_core.audit.search import rounded
from resispec_core.cli.main import main
from resispec_core.errors import InputError

FILE = str(Path(__file__).with_name("user_samplers.py"))


@pytest.fixture
def replay(capsys):
    """Runs ``resispec replay`` with these words: (exit code, output, errors)."""

    def call(*words):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(["replay", *map(str, words)])
        return stop.value.code, *capsys.readouterr()

    return call


@pytest.mark.parametrize("fault", user_samplers.FAULTS, ids=lambda fault: fault.__name__)
def test_planted_faults_are_found_and_shrink_small(fault):
    """Within the hard cases and 24 mutations; to V ≤ 4 and denominators ≤ 12."""
    result = audit_callable(fault)
    assert result.verdict is Verdict.BIASED
    assert result.exit_code == 1
    case = result.counterexample
    rows = [Fraction(entry) for row in (case.target, case.draft) for entry in row]
    assert len(case.target) <= 4
    assert max(entry.denominator for entry in rows) <= 12
    assert case.settings["candidates"] <= 2
    assert reproduce(case, fault).verdict is Verdict.BIASED


def test_good_sampler_is_exact_on_every_hard_case():
    result = audit_callable(f"{FILE}:good")
    assert result.verdict is Verdict.EXACT
    assert result.counterexample is None
    assert result.to_json()["inputs_tried"] == len(result.reports) > 10


@pytest.mark.parametrize("draw", ["without-replacement", "top-k"])
def test_draw_mode_reaches_the_sampler(draw):
    assert audit_callable(f"{FILE}:good", draw=draw, candidates=2).verdict is Verdict.BIASED


def test_given_rows_are_used():
    result = audit_callable(f"{FILE}:greedy", target=["1/2", "1/2"], draft=["1/2", "1/2"], candidates=1)
    assert [report.total_variation for report in result.reports] == [Fraction(1, 2)]
    with pytest.raises(InputError, match="go together"):
        audit_callable(f"{FILE}:greedy", target=["1/2", "1/2"])


def test_kernel_and_step_signatures():
    result = audit_callable(f"{FILE}:kernel")
    assert (result.signature, result.verdict) == ("kernel", Verdict.BIASED)
    assert audit_callable(f"{FILE}:step").verdict is Verdict.EXACT
    biased = audit_callable(f"{FILE}:greedy_bonus")
    assert biased.verdict is Verdict.BIASED
    assert biased.counterexample.settings["horizon"] == 2


@pytest.mark.parametrize("name", ["redraws_from_target", "greedy_bonus", "kernel"])
def test_file_round_trip_and_command(tmp_path, replay, name):
    result = audit_callable(f"{FILE}:{name}", write_to=tmp_path)
    assert result.written == tmp_path / f"counterexample-{name}.json"
    case = load(result.written)
    assert case.to_json() == result.counterexample.to_json()
    code, out, _ = replay(result.written)
    assert code == 1
    assert out.count("BIASED") == 2
    assert json.loads(replay(result.written, "--json")[1])["verdict"] == "BIASED"


def test_command_shows_that_a_fault_is_gone(tmp_path, replay):
    written = audit_callable(f"{FILE}:redraws_from_target", write_to=tmp_path / "case.json").written
    code, out, _ = replay(written, "--callable", f"{FILE}:good")
    assert code == 0
    assert "EXACT" in out


def test_rule_counterexamples_replay_on_the_reference(tmp_path, replay):
    case = Counterexample("rule", "resispec", ["1/3"] * 3, ["1/2", "2/5", "1/10"], {"candidates": 1})
    assert reproduce(case).total_variation == Fraction(1489, 9870)
    assert replay(case.save(tmp_path / "rule.json"))[0] == 1
    code, _, err = replay(tmp_path / "rule.json", "--callable", f"{FILE}:good")
    assert code == 2
    assert "is about the rule 'resispec'" in err


BROKEN = {
    "not JSON": "{",
    "not a counterexample file": "{}",
    "version 9": {"version": 9},
    "kind is 'law'": {"kind": "law"},
    "'settings' is": {"settings": []},
    "must be a list of rows": {"target": "1/2"},
    "sum to 5/6": {"target": ["1/2", "1/3"]},
    "not a list of strings": {"draft": [0.5, 0.5]},
    "expected a float": {"draft": ["half", "1/2"]},
    "settings: 'draw' is {}; it must be a str": {"settings": {"draw": {}}},
    "settings: 'candidates' is True; it must be a int": {"settings": {"candidates": True}},
    "settings: 'horizon' is unknown for kind 'rule'; known: candidates": {"settings": {"horizon": 2}},
}


@pytest.mark.parametrize("message", BROKEN)
def test_broken_files_are_named_errors(tmp_path, replay, message):
    good = Counterexample("rule", "resispec", ["1/2", "1/2"], ["1/2", "1/2"]).to_json()
    change = BROKEN[message]
    path = tmp_path / "broken.json"
    path.write_text(change if isinstance(change, str) else json.dumps({**good, **change}))
    with pytest.raises(InputError, match=message) as error:
        load(path)
    assert "broken.json" in str(error.value)
    code, out, err = replay(path)
    assert (code, out) == (2, "")
    assert err.startswith("resispec: ")
    assert "Traceback" not in err


def test_what_a_file_says_it_found_is_only_shown(tmp_path, replay):
    """Found by fuzzing: a total variation that is no number ended the replay with a traceback."""
    case = Counterexample(
        "rule", "resispec", ["1/2", "1/2"], ["1/2", "1/2"], found={"total_variation": "much"}
    )
    code, out, _ = replay(case.save(tmp_path / "odd.json"))
    assert code == 0
    assert "much" in out


def test_missing_file():
    with pytest.raises(InputError, match=r"nowhere\.json: cannot be read"):
        load("nowhere.json")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("user_samplers", "names no callable"),
        ("nowhere.py:f", "no such file"),
        ("no_such_module_xyz:f", "not installed"),
        (f"{FILE}:nothing", "has no 'nothing'"),
        (f"{FILE}:NUMBER", "not a callable"),
    ],
)
def test_loading_errors_say_what_to_write(spec, message):
    with pytest.raises(InputError, match=message):
        load_callable(spec)


def test_a_file_that_fails_to_load(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("raise RuntimeError('boom')")
    with pytest.raises(InputError, match="boom"):
        load_callable(f"{path}:f")


def test_signatures_are_guessed_or_asked_for():
    assert guess_signature(user_samplers.good) == "verify"
    assert guess_signature(user_samplers.step) == "step"
    assert guess_signature(user_samplers.kernel) == "kernel"
    with pytest.raises(InputError, match="pass --signature"):
        guess_signature(user_samplers.unclear)
    with pytest.raises(InputError, match="signature is 'law'"):
        audit_callable(user_samplers.good, signature="law")


@pytest.mark.parametrize("denominator", [2, 3, 7, 12])
def test_rounding_a_row_keeps_a_law(denominator):
    row = (Fraction(1, 3), Fraction(0), Fraction(1, 6), Fraction(1, 2))
    small = rounded(row, denominator)
    assert sum(small) == 1
    assert small[1] == 0
    assert all((entry * denominator).denominator == 1 for entry in small)

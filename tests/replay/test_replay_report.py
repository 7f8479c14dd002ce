"""From the law of the outcomes to the verdict, with every figure worked out by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from resispec_core.audit import Verdict
from resispec_core.audit.replay import replay_step, replay_verify
from resispec_core.audit.replay.compare import report_of, rounding, variation
from resispec_core.audit.replay.outcomes import Crash, Outcomes, read_tokens
from resispec_core.audit.replay.report import Witness
from resispec_core.audit.replay.rows import convert, copy, exact, nonempty, simple, unchanged
from resispec_core.audit.replay.tables import Markov
from resispec_core.audit.replay.trail import Budget

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def outcomes(**changes: Any) -> Outcomes:
    found = Outcomes()
    for tokens, mass in changes.pop("law").items():
        found.add(tokens, mass, [])
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def judged(found: Outcomes, expected: Any, numbers: str = "float64", **changes: Any) -> Any:
    horizon = len(next(iter(expected)))
    given = {"size": 3, "grid": False, "stages": 3, "precision": None, "tuples": {}} | changes
    return report_of(
        found, expected, horizon, given["size"], numbers, Budget(), "it", "verify", given["grid"],
        given["stages"], given["tuples"], given["precision"],
    )  # fmt: skip


def test_distances_of_a_sequence_law() -> None:
    """The second token is wrong; a fifth crashed, left the vocabulary or ended early."""
    tenth = Fraction(1, 10)
    expected = {(0, 0): HALF, (1, 0): HALF}
    law = {
        (0, 1): 4 * tenth, (1, 0): 4 * tenth, Crash("KeyError", "lost"): tenth, (0, 3): tenth / 2, (0,): tenth / 2,
    }  # fmt: skip
    report = judged(outcomes(law=law), expected)
    assert report.verdict is Verdict.BIASED
    assert report.crash_mass == 2 * tenth
    assert report.total_variation == (5 * tenth + 4 * tenth + tenth + 2 * tenth) / 2
    assert report.first_token == (tenth + tenth + 2 * tenth) / 2
    assert report.zero_mass == 4 * tenth
    assert report.witness.outcome == (0, 1)
    assert (report.witness.found, report.witness.expected) == (4 * tenth, 0)
    assert set(report.crashes.values()) == {tenth, tenth / 2}
    assert "InvalidToken: returned [0, 3], vocabulary 3" in report.crashes
    assert variation({}, {(0,): Fraction(1)}, Fraction(1)) == 1


@pytest.mark.parametrize(
    ("gap", "numbers", "inexact", "verdict"),
    [
        (Fraction(0), "rational", 0, Verdict.EXACT),
        (Fraction(1, 10**9), "rational", 0, Verdict.BIASED),
        (Fraction(1, 10**13), "rational", 0, Verdict.INCONCLUSIVE),
        (Fraction(0), "rational", 1, Verdict.INCONCLUSIVE),
        (Fraction(0), "float64", 0, Verdict.EXACT_WITHIN),
        (Fraction(1, 10**15), "float64", 0, Verdict.EXACT_WITHIN),
        (Fraction(1, 10**12), "float64", 0, Verdict.BIASED),
        (Fraction(1, 10**7), "float32", 0, Verdict.EXACT_WITHIN),
        (Fraction(1, 10**4), "float32", 0, Verdict.BIASED),
    ],
)
def test_the_verdict_of_a_gap(gap: Fraction, numbers: str, inexact: int, verdict: Verdict) -> None:
    found = outcomes(law={(0,): HALF + gap, (1,): HALF - gap}, inexact=inexact)
    report = judged(found, {(0,): HALF, (1,): HALF}, numbers)
    assert report.verdict is verdict
    assert report.total_variation == gap
    if verdict is Verdict.EXACT_WITHIN:
        assert report.bound == float(gap) + report.rounding
    elif verdict is Verdict.INCONCLUSIVE:
        assert report.bound == 1
    else:
        assert report.bound == gap
    assert (report.witness is not None) == (verdict is Verdict.BIASED)


def test_the_bound_on_rounding() -> None:
    """stages · (16 + 2 log2 V) · eps, as it is documented; what was neglected is added."""
    assert rounding(4, 3, "float64") == 3 * 20 * 2.0**-52
    assert rounding(1024, 1, "float32") == 36 * 2.0**-23
    assert rounding(1, 1, "float16") == 18 * 2.0**-10
    assert rounding(16, 2, "bfloat16") == 48 * 2.0**-7
    assert rounding(16, 2, "rational") == 0
    light = Fraction(1, 10**6)
    report = judged(outcomes(law={(0,): Fraction(1)}, neglected=light), {(0,): Fraction(1)})
    assert report.rounding == rounding(3, 3, "float64") + 1e-6


@pytest.mark.parametrize("returned", [(0, 0), (), (0, 1, 1)])
def test_a_result_of_another_length_is_a_wrong_outcome(returned: tuple[int, ...]) -> None:
    report = judged(outcomes(law={returned: HALF, (0,): HALF}), {(0,): Fraction(1)})
    assert report.crash_mass == report.total_variation == HALF
    assert report.law == {(0,): HALF}


def test_notes() -> None:
    gap = Fraction(1, 10**7)
    found = outcomes(law={(0,): HALF + gap, (1,): HALF - gap})
    found.reused["a.py:1 and a.py:2"] += 3
    expected = {(0,): HALF, (1,): HALF}
    notes = judged(found, expected).notes
    assert notes[0] == "reused randomness: a.py:1 and a.py:2 (3 paths)"
    assert "float32 rounding" in notes[1]
    assert judged(found, expected, precision="float32").verdict is Verdict.EXACT_WITHIN
    far = outcomes(law={(0,): 3 * QUARTER, (1,): QUARTER})
    assert judged(far, expected).notes == []


def test_on_the_real_grid_any_impossible_mass_is_a_finding() -> None:
    found = outcomes(law={(0,): 1 - Fraction(1, 2**53), (1,): Fraction(1, 2**53)})
    assert judged(found, {(0,): Fraction(1)}, grid=True).verdict is Verdict.BIASED
    assert judged(found, {(0,): Fraction(1)}).verdict is Verdict.EXACT_WITHIN


def test_what_a_report_says() -> None:
    found = outcomes(law={(0,): HALF, (2,): QUARTER, Crash("KeyError", "lost"): QUARTER})
    found.paths = 7
    report = judged(found, {(0,): HALF, (1,): HALF}, grid=True)
    assert str(report) == (
        "BIASED, 7 paths, TV = 0.5 over 1 token(s), crashes with probability 0.25, "
        "mass 0.25 where the target has none [real coin grid]"
    )
    data = report.to_json()
    assert data["law"] == {"0": "1/2", "2": "1/4"}
    assert data["crash_mass"] == data["zero_mass"] == "1/4"
    assert (report.exit_code, data["verdict"], data["paths"]) == (1, "BIASED", 7)
    same = outcomes(law={(0,): HALF, (1,): HALF})
    assert str(judged(same, {(0,): HALF, (1,): HALF}, "rational")) == "EXACT, 0 paths, TV = 0 over 1 token(s)"
    witness = Witness((1,), HALF, QUARTER, (2,), ())
    assert str(witness) == (
        "outcome [1] has probability 0.5 instead of 0.25; with candidates [2]: no coin is needed"
    )


def test_outcomes_are_merged_by_weight() -> None:
    first = outcomes(law={(0,): HALF, (1,): HALF}, paths=2, inexact=1, neglected=QUARTER)
    second = outcomes(law={(1,): Fraction(1)}, paths=3, inexact=4, neglected=HALF)
    total = Outcomes()
    total.merge(first, QUARTER)
    total.merge(second, 3 * QUARTER)
    assert total.law == {(0,): QUARTER / 2, (1,): 7 * QUARTER / 2}
    assert (total.paths, total.inexact) == (5, 5)
    assert total.neglected == QUARTER * QUARTER + 3 * QUARTER * HALF
    assert total.heaviest[1,][0] == 3 * QUARTER


def test_what_counts_as_a_token() -> None:
    for good in (2, 2.0, np.int64(2), [2], (2,), np.array([2]), np.array([[2]]), np.array(2)):
        assert read_tokens(good) == ((2,), {})
    for bad in (True, np.True_, 2.5, "2", None, [2, -1], math.nan):
        assert isinstance(read_tokens(bad)[0], Crash), bad
    assert read_tokens([0, 3])[0] == (0, 3)
    assert read_tokens(0)[0] == (0,)


def test_rows_in_every_number_system() -> None:
    row = np.array([0.1, 0.2, 0.7])
    assert convert(row, "rational", "numpy").tolist() == [Fraction(1, 10), Fraction(1, 5), Fraction(7, 10)]
    third = np.array([Fraction(1, 3), Fraction(2, 3)], dtype=object)
    assert convert(third, "rational", "numpy").tolist() == third.tolist()
    assert convert(row, "float32", "numpy").dtype == np.float32
    assert convert(row, "float64", "torch").tolist() == row.tolist()
    assert sum(simple(np.array([1 / 3, 1 / 3, 1 / 3])).tolist()) == 1
    assert exact(row / 2 + 0.5 / 3).sum() == 1
    twin = copy(row)
    assert unchanged(twin, row)
    twin[0] = 0.2
    assert not unchanged(twin, row)
    assert row[0] == 0.1
    with pytest.raises(ValueError, match="no token"):
        nonempty([])
    assert nonempty([1]) == [1]


def test_a_row_changed_in_place_is_noted() -> None:
    def verify(target: Any, draft: Any, candidates: Any, rng: Any) -> int:
        token = int(rng.choice(2, p=target))
        target[:] = 0
        return token

    report = replay_verify(verify, [0.5, 0.5], [0.25, 0.75])
    assert any("in place" in note for note in report.notes)
    report = replay_verify(lambda p, q, x, rng: int(rng.choice(2, p=p)), [0.5, 0.5], [0.25, 0.75])
    assert not any("in place" in note for note in report.notes)
    assert report.inputs["candidates"] == 1


def test_a_sampler_that_only_the_replay_sees_is_caught_by_the_closing_run() -> None:
    """It looks at its generator's type; unpatched it returns another token a tenth of the time."""

    def verify(target: Any, draft: Any, candidates: Any, rng: Any) -> int:
        if type(rng) is np.random.Generator and rng.random() < 0.2:
            return 0
        return int(rng.choice(2, p=target))

    with pytest.raises(Exception, match=r"of 1000 runs; replayed it has probability 0\.5"):
        replay_verify(verify, [0.5, 0.5], [0.25, 0.75])


def test_steps_of_any_length_give_the_sequence_law() -> None:
    target = Markov([0.5, 0.5], [[0.25, 0.75], [1.0, 0.0]])

    def step(target_model: Any, draft_model: Any, prefix: Any, rng: Any) -> list[int]:
        tokens = [int(rng.choice(2, p=target_model(tuple(prefix))))]
        if tokens[0] == 0:  # a step of two tokens, or of one
            tokens.append(int(rng.choice(2, p=target_model((*prefix, 0)))))
        return tokens

    for extend in ("step", "target"):
        report = replay_step(step, target, target, horizon=3, extend=extend)
        assert report.verdict in (Verdict.EXACT, Verdict.EXACT_WITHIN)
        assert report.law[0, 1, 0] == Fraction(1, 2) * Fraction(3, 4)
        assert report.law[1, 0, 1] == Fraction(1, 2) * Fraction(3, 4)
        assert report.law[0, 0, 0] == Fraction(1, 2) * Fraction(1, 4) * Fraction(1, 4)

"""The verdict of every kind of evidence, and values as JSON holds them."""

import math
from fractions import Fraction

import numpy as np
import pytest

from resispec_core import InputError, audit, parse_law, rules
from resispec_core.audit.carriers import Path
from resispec_core.audit.verdict import EXIT_CODES, Verdict, decide, path_to_json, plain


@pytest.mark.parametrize(
    ("low", "high", "complete", "rounding", "lossy", "verdict"),
    [
        (0, 0, True, 0.0, False, Verdict.EXACT),
        (0, 0.1, True, 0.0, False, Verdict.INCONCLUSIVE),
        (0, 1e-12, True, 1e-12, False, Verdict.EXACT_WITHIN),
        (0, 0, True, 1e-12, True, Verdict.EXACT_WITHIN),
        (0, 0, False, 0.0, False, Verdict.INCONCLUSIVE),
        (0, 0.1, False, 1e-12, False, Verdict.INCONCLUSIVE),
        (1e-9, 0.1, False, 1e-12, False, Verdict.BIASED),
        (Fraction(1, 10**30), 1, True, 0.0, False, Verdict.BIASED),
        (0.1, 0.1, True, 0.0, True, Verdict.LOSSY_BY_DESIGN),
    ],
)
def test_decide(low, high, complete, rounding, lossy, verdict):
    assert decide(low, high, complete=complete, rounding=rounding, lossy=lossy) is verdict


def test_the_documented_exit_codes():
    assert {verdict.value: code for verdict, code in EXIT_CODES.items()} == {
        "EXACT": 0,
        "EXACT_WITHIN": 0,
        "LOSSY_BY_DESIGN": 0,
        "BIASED": 1,
        "NOT_REFUTED": 3,
        "INCONCLUSIVE": 3,
    }


def test_values_as_json_holds_them():
    values = [Fraction(1, 3), math.inf, math.nan, np.float64(0.5), np.int64(3), 2, "x", None]
    assert [plain(value) for value in values] == ["1/3", "inf", "nan", 0.5, 3, 2, "x", None]
    assert path_to_json(Path((0, 1), 2, True, Fraction(1, 4))) == {
        "token": 2,
        "rejected": [0, 1],
        "ends": "accepted",
        "mass": "1/4",
    }
    assert path_to_json(Path((), 2, False, 0.5))["ends"] == "resampled"


def test_a_report_in_json_has_its_witness_and_its_law():
    p, q = parse_law("1/3,1/3,1/3"), parse_law("1/2,2/5,1/10")
    good, bad = audit("specinfer", p, q, 2).to_json(), audit("resispec", p, q, 1)
    assert (good["verdict"], good["witness"], good["total_variation"]) == ("EXACT", None, "0")
    assert good["law"] == ["1/3", "1/3", "1/3"]
    data = bad.to_json(with_law=False)
    assert (data["verdict"], data["total_variation"]) == ("BIASED", "1489/9870")
    assert data["witness"] == path_to_json(bad.witness)
    assert "law" not in data


@pytest.mark.parametrize(("place", "candidates"), [(1, 1), (2, 2)])
def test_a_residual_that_is_no_law_is_named_by_token_and_candidate(place, candidates):
    """Candidates count from 1; token 0 is the first that the rule rejects."""

    class Broken(rules.SpecInfer):
        name = "broken"

        def reject(self, stage, token):
            found = super().reject(stage, token)
            return found / 2 if stage.index == place - 1 else found

    p, q = parse_law("1/4,1/4,1/2"), parse_law("1/2,1/4,1/4")
    with pytest.raises(
        InputError, match=f"'broken': after rejecting token 0 at candidate {place} the residual"
    ):
        audit(Broken(), p, q, candidates)

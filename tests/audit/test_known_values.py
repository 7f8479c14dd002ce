"""Every rational value the theory states, as equal fractions."""

from fractions import Fraction

import pytest

from resispec_core import audit, parse_law, rules
from resispec_core.audit import Verdict, acceptance_ceiling

THIRDS = (parse_law("1/3,1/3,1/3"), parse_law("1/2,2/5,1/10"))
ONE_OVER = (parse_law("1/5,2/5,2/5"), parse_law("3/5,3/10,1/10"))


@pytest.mark.parametrize(
    ("pair", "redistribution", "candidates", "law", "distance"),
    [
        (THIRDS, "proportional", 1, "107/282,46/105,1801/9870", "1489/9870"),
        (THIRDS, "proportional", 2, "691/1786,16/35,9749/62510", None),
        (THIRDS, "waterfill", 1, "7/18,7/15,13/90", "17/90"),
        (THIRDS, "waterfill", 2, "7/18,7/15,13/90", "17/90"),
        (THIRDS, "waterfill", 3, "7/18,7/15,13/90", "17/90"),
        (ONE_OVER, "proportional", 1, "1/5,21/40,11/40", None),
        (ONE_OVER, "waterfill", 1, "1/5,3/5,1/5", None),
    ],
)
def test_the_published_rule_returns_the_stated_law(pair, redistribution, candidates, law, distance):
    report = audit(rules.ResiSpec(redistribution), *pair, candidates)
    assert report.law.tolist() == parse_law(law).tolist()
    assert report.verdict is Verdict.BIASED
    assert distance is None or report.total_variation == Fraction(distance)
    assert report.paper_check_kl == 0.0


def test_acceptance_above_the_ceiling_is_a_second_witness():
    report = audit("resispec", *THIRDS, 2)
    assert (report.acceptance, report.ceiling) == (Fraction(89, 100), Fraction(257, 300))
    assert report.above_ceiling


@pytest.mark.parametrize(
    ("candidates", "total", "reach", "acceptance"),
    [(2, "19/10", ("1", "9/10"), "257/300"), (3, "97/36", ("1", "9/10", "143/180"), "337/360")],
)
def test_shaped_has_the_stated_scalars(candidates, total, reach, acceptance):
    plan = rules.Shaped().plan(*THIRDS, candidates)
    report = audit("shaped", *THIRDS, candidates)
    assert plan.total == Fraction(total)
    assert plan.reach == tuple(map(Fraction, reach))
    assert report.verdict is Verdict.EXACT
    assert report.acceptance == Fraction(acceptance)


def test_the_ceiling_at_two_candidates():
    assert acceptance_ceiling(*THIRDS, 2) == Fraction(257, 300)


def test_the_witness_is_a_path_that_was_taken():
    report = audit("resispec", *THIRDS, 1)
    path = report.witness
    assert (path.rejected, path.token, path.accepted) == ((0,), 1, False)
    # Draw and reject token 0 (1/2 - 1/3), then resample token 1 from r / Z = (0, 11/105, ...) * 6.
    assert path.mass == Fraction(11, 105)


def test_rational_bounds_stay_rational():
    report = audit("resispec", *THIRDS, 1).to_json()
    assert report["bound"] == "1489/9870"
    assert report["total_variation_bracket"] == ["1489/9870", "1489/9870"]

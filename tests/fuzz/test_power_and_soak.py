"""The power tables and the soak, small: what docs/power.md claims holds, and each check can fail."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fuzz import power, soak
from resispec_core.audit import Verdict

ROOT = Path(__file__).parents[2]
EXACT_ENGINES = list(power.EXACT)


@pytest.mark.parametrize("engine", EXACT_ENGINES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 1000)])
def test_exact_engines_see_leniency_and_nothing_else(engine: str, epsilon: Fraction) -> None:
    assert power.EXACT[engine](epsilon).verdict is Verdict.BIASED
    assert power.EXACT[engine](Fraction(0)).verdict is not Verdict.BIASED


def test_white_box_and_replay_agree_on_its_size() -> None:
    for epsilon in (Fraction(1, 100), Fraction(1, 1000)):
        sizes = {power.white_box(epsilon).total_variation, power.replay(epsilon, "rational").total_variation}
        p, q = (np.array([float(Fraction(x)) for x in row]) for row in power.SMALL)
        (size,) = sizes
        assert abs(float(size) - power.tv(power.lenient_law(p, q, float(epsilon)), p)) < 1e-15


@pytest.mark.parametrize("rule", power.TODAY, ids=lambda rule: rule.name)
def test_today_s_rules_pass_it_and_see_a_gross_fault(rule: power.Today) -> None:
    """100 runs each: below 90 % of them at ε = 0.01 and 0.001, and above at ε = 10."""
    for epsilon in (0.0, 0.001, 0.01):
        assert power.rate(rule, epsilon, 100, seed=1) < 0.5
    assert power.rate(rule, 10.0, 100, seed=1) >= power.DETECTED


def test_every_fault_of_the_museum_is_seen_by_an_engine() -> None:
    shown = power.museum()
    assert len(shown) > 40
    assert all(exhibit.flagged for exhibit in shown)
    with_law = [exhibit for exhibit in shown if exhibit.law is not None and exhibit.law.sum()]
    assert len(with_law) > 20
    assert all(abs(exhibit.target.sum() - 1) < 1e-9 for exhibit in with_law)


def test_the_page_is_a_real_page() -> None:
    """Written by `python -m fuzz.power --write`; its marks follow from the rates beside them."""
    page = power.PAGE.read_text(encoding="utf-8")
    assert page.startswith(power.HEADER)
    for mark, share in re.findall(r"(\*\*seen\*\*|passes) \((\d+)%\)", page):
        assert (mark == "**seen**") == (int(share) >= 100 * power.DETECTED)
    for name in (*EXACT_ENGINES, "sequential (median draws)", *(rule.name for rule in power.TODAY)):
        assert f"| {name} |" in page


SOAKS = """
import json
from fuzz import soak

class Leak(list):
    def append(self, item):
        super().append((item, b"x" * 50_000))

print(json.dumps([soak.audits(300), soak.audits(300, keep=Leak())]))
"""


def test_memory_is_flat_and_a_kept_report_is_noticed() -> None:
    """Planted fault: every report is kept, and 50 kB with it.

    In a process of its own: one that has run other tests may hold enough freed memory to hide a leak."""
    done = subprocess.run((sys.executable, "-c", SOAKS), cwd=ROOT, capture_output=True, text=True, check=True)
    plain, leaking = json.loads(done.stdout)
    assert plain["audits"] == 300
    assert plain["wrong_verdicts"] == 0
    assert plain["flat"], plain
    assert not leaking["flat"]


def test_false_alarms_stay_within_alpha_and_a_bias_raises_them() -> None:
    assert soak.sessions(500)["within_alpha"]
    assert not soak.sessions(100, bias=0.05)["within_alpha"]

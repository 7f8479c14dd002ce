"""Rows whose last entry outweighs the rest: there "what is left" and its near misses differ (a mutant asked for it)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from resispec_core.audit import Verdict
from resispec_core.audit.replay import replay_verify


@pytest.mark.parametrize("row", [("1/10", "1/5", "7/10"), ("1/20", "1/20", "9/10"), ("0", "0", "1")])
def test_multinomial_gives_the_last_token_what_is_left(row: tuple[str, ...]) -> None:
    target = [float(Fraction(entry)) for entry in row]

    def verify(target, draft, candidates, rng):
        return int(np.argmax(rng.multinomial(1, target)))

    report = replay_verify(verify, target, target, numbers="float64")
    assert report.verdict is Verdict.EXACT_WITHIN
    assert abs(float(report.law[(2,)]) - target[2]) < 1e-15

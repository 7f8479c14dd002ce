"""A symbolic coin's functions against the numbers they stand for (the threshold tests use the symbol on both sides)."""

from __future__ import annotations

import math

import pytest
from test_replay_coins import coin

from resispec_core.audit.replay.coin import evaluate
from resispec_core.audit.replay.trail import Trail

FUNCTIONS = {
    "log": (lambda u: u.log(), math.log),
    "log1p of -u": (lambda u: (-u).log1p(), lambda u: math.log1p(-u)),
    "log2": (lambda u: u.log2(), math.log2),
    "sqrt": (lambda u: u.sqrt(), math.sqrt),
    "expm1 of log": (lambda u: (3 * u.log()).expm1(), lambda u: u**3 - 1),
    "exp of log": (lambda u: (3 * u.log()).exp(), lambda u: u**3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("at", [0.123, 0.5, 0.87])
def test_values(name: str, at: float) -> None:
    symbolic, plain = FUNCTIONS[name]
    assert float(evaluate(symbolic(coin(Trail())), at)) == pytest.approx(plain(at), rel=1e-12)

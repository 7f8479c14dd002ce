"""Arithmetic and comparisons of a coin against the numbers they stand for: values at given u, and exact laws."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from scipy.stats import entropy
from test_replay_coins import coin, law

from resispec_core.audit.replay import LeakError
from resispec_core.audit.replay.coin import Symbol, evaluate
from resispec_core.audit.replay.grid import FRACTION_53, half_grid
from resispec_core.audit.replay.monte_carlo import _kl
from resispec_core.audit.replay.trail import RefusalError, Trail

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
VALUES: dict[str, Callable[[Any], Any]] = {
    "u + 2": lambda u: u + 2,
    "2 + u": lambda u: 2 + u,
    "u - 2": lambda u: u - 2,
    "2 - u": lambda u: 2 - u,
    "3u": lambda u: 3 * u,
    "u * -3": lambda u: u * -3,
    "u / 4": lambda u: u / 4,
    "3 / u": lambda u: 3 / u,
    "-u": lambda u: -u,
    "+u": lambda u: +u,
    "u + u": lambda u: u + u,
    "(3u + 1) - u": lambda u: (3 * u + 1) - u,
    "u ** 1": lambda u: (2 * u + 1) ** 1,
    "u ** -1": lambda u: (2 * u) ** -1,
    "(2u) ** 3": lambda u: (2 * u) ** 3,
    "(u ** 2) ** 3": lambda u: (u**2) ** 3,
    "1 / (4u)": lambda u: 1 / (4 * u),
    "1 / u ** 2": lambda u: 1 / (u**2),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("at", [0.125, 0.75])
def test_arithmetic_has_the_value_of_numbers(name: str, at: float) -> None:
    found = VALUES[name](coin(Trail()))
    assert isinstance(found, Symbol)
    assert evaluate(found, at) == pytest.approx(VALUES[name](at), rel=1e-14)


LOGS: dict[str, tuple[Callable[[Any], Any], Callable[[float], float]]] = {
    "log of 2(1 - u)": (lambda u: (2 - 2 * u).log(), lambda u: math.log(2 - 2 * u)),
    "log of 3u": (lambda u: (3 * u).log(), lambda u: math.log(3 * u)),
    "log of u²": (lambda u: (u**2).log(), lambda u: 2 * math.log(u)),
    "Gumbel of u, scaled": (lambda u: -(-2 * u.log()).log(), lambda u: -math.log(-2 * math.log(u))),
    "Gumbel of 1 - u": (lambda u: -(-(1 - u).log()).log(), lambda u: -math.log(-math.log(1 - u))),
    "log of 3 / e": (lambda u: (3 / -u.log()).log(), lambda u: math.log(3 / -math.log(u))),
    "log of 3 / f": (lambda u: (3 / -(1 - u).log()).log(), lambda u: math.log(3 / -math.log(1 - u))),
    "e from its reciprocal": (lambda u: 1 / (2 / -u.log()), lambda u: -math.log(u) / 2),
    "f from its reciprocal": (lambda u: 1 / (2 / -(1 - u).log()), lambda u: -math.log(1 - u) / 2),
    "exp of a Gumbel": (lambda u: (-(-u.log()).log()).exp(), lambda u: -1 / math.log(u)),
    "exp of minus a Gumbel, shifted": (
        lambda u: ((-u.log()).log() + 1).exp(),
        lambda u: -math.e * math.log(u),
    ),
    "exp of a Gumbel of 1 - u": (lambda u: (-(-(1 - u).log()).log()).exp(), lambda u: -1 / math.log(1 - u)),
    "exp of log plus 1": (lambda u: (u.log() + 1).exp(), lambda u: math.e * u),
    "exp of minus 2 log": (lambda u: (-2 * u.log()).exp(), lambda u: u**-2),
    "10 ** log10": (lambda u: 10 ** u.log10(), lambda u: u),
    "log10": (lambda u: u.log10(), math.log10),
    "root of 4u": (lambda u: (4 * u).sqrt(), lambda u: 2 * math.sqrt(u)),
}


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("at", [0.125, 0.75])
def test_functions_have_the_value_of_numbers(name: str, at: float) -> None:
    symbolic, plain = LOGS[name]
    assert evaluate(symbolic(coin(Trail())), at) == pytest.approx(plain(at), rel=1e-12)


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("at", [0.125, 0.75])
def test_every_function_is_inverted(name: str, at: float) -> None:
    symbolic, plain = LOGS[name]
    cut, rising = plain(at), plain(at + 0.01) > plain(at)
    for less in (True, False):
        compare = operator.lt if less else operator.ge
        found = law(lambda trail, compare=compare: bool(compare(symbolic(coin(trail)), cut)))
        assert float(found[True]) == pytest.approx(at if less == rising else 1 - at, abs=1e-12)


CERTAIN: dict[str, Callable[[Any], Any]] = {
    "-log u": lambda u: -u.log() > -1,
    "-log u at 0": lambda u: -u.log() > 0,
    "-log(1 - u)": lambda u: -(1 - u).log() >= -1,
    "-log(1 - u) at 0": lambda u: -(1 - u).log() > 0,
    "1 / e": lambda u: 1 / -u.log() > -1,
    "1 / f": lambda u: 1 / -(1 - u).log() > -1,
    "1 / f at 0": lambda u: 1 / -(1 - u).log() > 0,
    "1 / u": lambda u: 1 / u > HALF,
    "1 / u at 0": lambda u: 1 / u > 0,
    "u ** 2": lambda u: u**2 > -1,
    "u ** 2 above": lambda u: u**2 < 2,
    "u ** -2": lambda u: (u**2).reciprocal() > -1,
    "u ** -2 at a half": lambda u: (u**2).reciprocal() > HALF,
    "Gumbel": lambda u: -(-u.log()).log() > -1000,
    "Gumbel, above": lambda u: -(-u.log()).log() < 1000,
    "Gumbel of 1 - u": lambda u: -(-(1 - u).log()).log() > -1000,
    "Gumbel of 1 - u, above": lambda u: -(-(1 - u).log()).log() < 1000,
    "below": lambda u: u < 2,
    "above": lambda u: u > -1,
}


@pytest.mark.parametrize("name", CERTAIN)
def test_outside_its_range_a_comparison_is_certain(name: str) -> None:
    assert law(lambda trail: bool(CERTAIN[name](coin(trail)))) == {True: 1}


ROUNDED: dict[str, tuple[Callable[[Any], Any], dict[Any, Fraction]]] = {
    "floor of 4u - 2": (
        lambda u: math.floor(4 * u - 2),
        {-2: QUARTER, -1: QUARTER, 0: QUARTER, 1: QUARTER},
    ),
    "int of 4u - 2": (lambda u: int(4 * u - 2), {-1: QUARTER, 0: HALF, 1: QUARTER}),
    "int of 2 - 4u": (lambda u: math.trunc(2 - 4 * u), {-1: QUARTER, 0: HALF, 1: QUARTER}),
    "int of -2u": (lambda u: int(-2 * u), {0: HALF, -1: HALF}),
    "ceil of 4u": (lambda u: math.ceil(4 * u), dict.fromkeys((1, 2, 3, 4), QUARTER)),
    "4u // 1": (lambda u: (4 * u) // 1, dict.fromkeys((0, 1, 2, 3), QUARTER)),
    "u // (1/4)": (lambda u: u // QUARTER, dict.fromkeys((0, 1, 2, 3), QUARTER)),
    "half of 4u % 1": (lambda u: bool((4 * u) % 1 < QUARTER), {True: QUARTER, False: 3 * QUARTER}),
    "3u % 2": (lambda u: bool((4 * u) % 2 < 1), {True: HALF, False: HALF}),
    "floor of log2": (
        lambda u: max(-3, math.floor(4 * u)) if u >= QUARTER else 0,
        dict.fromkeys((0, 1, 2, 3), QUARTER),
    ),
    "size of 2u - 1": (lambda u: bool(abs(2 * u - 1) < HALF), {True: HALF, False: HALF}),
    "size of -u": (lambda u: bool(abs(-u) < QUARTER), {True: QUARTER, False: 3 * QUARTER}),
    "(u - 1/4) * inf": (lambda u: (u - QUARTER) * math.inf, {math.inf: 3 * QUARTER, -math.inf: QUARTER}),
    "inf / (u - 1/4)": (lambda u: math.inf / (u - QUARTER), {math.inf: 3 * QUARTER, -math.inf: QUARTER}),
    "(u - 1/4) / 0": (lambda u: (u - QUARTER) / 0, {math.inf: 3 * QUARTER, -math.inf: QUARTER}),
    "-u * inf": (lambda u: -u * math.inf, {-math.inf: Fraction(1)}),
    "u / inf": (lambda u: u / math.inf, {0.0: Fraction(1)}),
    "u < inf": (lambda u: (u < math.inf, u > math.inf, u < -math.inf), {(True, False, False): Fraction(1)}),
    "u - u": (lambda u: u - u, {0.0: Fraction(1)}),
    "u ** 0": (lambda u: u**0, {1.0: Fraction(1)}),
    "truth": (bool, {True: Fraction(1)}),
    "truth of what is negative": (lambda u: bool(-u), {True: Fraction(1)}),
    "itself": (lambda u: (u == u, u <= u, u < u, u >= u, u > u, u != u),
               {(True, True, False, True, False, False): Fraction(1)}),
    "u against u + 1": (lambda u: (u < u + 1, u > u + 1, u <= u - 1, u >= u - 1),
                        {(True, False, False, True): Fraction(1)}),
    "2u against u + 1/4": (lambda u: bool(2 * u < u + QUARTER), {True: QUARTER, False: 3 * QUARTER}),
    "2u above u + 1/4": (lambda u: bool(2 * u >= u + QUARTER), {False: QUARTER, True: 3 * QUARTER}),
    "None": (lambda u: (u == None, u != None), {(False, True): Fraction(1)}),  # noqa: E711
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDED)
def test_integers_signs_and_infinities_have_their_exact_laws(name: str) -> None:
    function, shares = ROUNDED[name]
    found = law(lambda trail: function(coin(trail)))
    assert {key: mass for key, mass in found.items() if mass} == shares


REFUSED: dict[str, Callable[[Any], Any]] = {
    "power of a shift": lambda u: (u + 1) ** 2,
    "power of a negative": lambda u: (-u) ** 2,
    "power of noise": lambda u: u.log() ** 2,
    "log after a shift": lambda u: (u + 1).log(),
    "log of 2 - u": lambda u: (2 - u).log(),
    "log of u² turned": lambda u: (1 - u**2).log(),
    "reciprocal after a shift": lambda u: 1 / (u + 1),
    "exp of a coin": lambda u: u.exp(),
    "exp of a scaled Gumbel": lambda u: (2 * (-u.log()).log()).exp(),
    "another function of itself": lambda u: u < u**2,
    "sum with its square": lambda u: u + u**2,
    "its square with itself": lambda u: u**2 + u,
    "sum with its logarithm": lambda u: u + u.log(),
    "its logarithm with itself": lambda u: u.log() + u,
    "its square against itself": lambda u: u**2 < u,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_closed_form_is_refused(name: str) -> None:
    with pytest.raises(RefusalError):
        REFUSED[name](coin(Trail()))


@pytest.mark.parametrize("leak", [float, complex, round, lambda u: [0, 1][u], lambda u: u.sin()])
def test_reading_a_number_out_is_a_leak(leak: Callable[[Any], Any]) -> None:
    with pytest.raises(LeakError):
        leak(coin(Trail()))


def test_an_interval_is_remembered_from_both_sides() -> None:
    def run(trail: Any) -> tuple[bool, ...]:
        u = coin(trail)
        return bool(u > QUARTER), bool(u <= 3 * QUARTER), bool(u > HALF), bool(1 - u < HALF)

    assert law(run) == {
        (False, True, False, False): QUARTER,
        (True, True, False, False): QUARTER,
        (True, True, True, True): QUARTER,
        (True, False, True, True): QUARTER,
    }


@pytest.mark.parametrize("f", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("x", [0.1, 0.5, 0.9])
def test_the_closing_runs_divergence_is_that_of_two_coins(f: float, x: float) -> None:
    assert _kl(f, x) == pytest.approx(entropy([f, 1 - f], [x, 1 - x]), abs=1e-14)


def test_what_cannot_happen_is_infinitely_far() -> None:
    assert _kl(0.5, 0.0) == _kl(0.5, 1.0) == _kl(1e-6, 1e-13) == math.inf
    assert _kl(0.0, 0.0) == _kl(1.0, 1.0) == 0


@pytest.mark.parametrize("grid", [FRACTION_53, half_grid("float16"), half_grid("bfloat16")])
def test_a_grid_value_inside_a_cell_is_on_its_side_of_every_cut(grid: Any) -> None:
    """The cell of ``u < cut`` holds values below the cut, the rest holds values at or above it."""
    for cut in (Fraction(1, 10), Fraction(1, 3), HALF, Fraction(9, 10)):
        edge = grid.below(cut, False)
        assert abs(edge - cut) < Fraction(1, 250)
        assert grid.inside(Fraction(0), edge) < cut <= grid.inside(edge, Fraction(1))
        near = Fraction(1, 4096)
        assert grid.inside(edge - near, edge) < cut <= grid.inside(edge, edge + near)

"""Coins, grids and races against independent arithmetic."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from resispec_core.audit.replay.coin import Symbol, Unit, evaluate
from resispec_core.audit.replay.draws import answering
from resispec_core.audit.replay.grid import Grid, half_grid
from resispec_core.audit.replay.race import ranking
from resispec_core.audit.replay.trail import Budget, RefusalError, Trail, explore


def law(run):
    """Outcome → exact probability of ``run(trail)``."""
    found = {}

    def inside(trail):
        with answering(trail):
            return run(trail)

    for outcome, trail in explore(inside, Budget()):
        found[outcome] = found.get(outcome, 0) + trail.weight
    return found


def coin(trail):
    return Symbol(trail, Unit(trail))


FORMS = {
    "affine": lambda u: 3 * u - 1,
    "negative": lambda u: 2 - u / 4,
    "power": lambda u: u**3,
    "reciprocal": lambda u: 1 / u,
    "exponential": lambda u: -u.log(),
    "exponential of 1 - u": lambda u: -(1 - u).log(),
    "gumbel": lambda u: -(-u.log()).log(),
    "gumbel of 1 - u": lambda u: -(-(1 - u).log()).log(),
    "inverse exponential": lambda u: 2 / (-u.log()),
    "exp of log": lambda u: (3 * u.log()).exp(),
    "sqrt": lambda u: u.sqrt(),
    "log2": lambda u: u.log2(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("at", [0.123, 0.5, 0.87])
def test_thresholds_invert_every_form(form, at):
    """P(f(u) < f(c)) is c for rising f and 1 − c for falling f."""
    probe = FORMS[form](coin(Trail()))
    value = evaluate(probe, at)
    found = law(lambda trail: bool(FORMS[form](coin(trail)) < value))
    rising = evaluate(probe, 0.9) > evaluate(probe, 0.1)
    assert float(found[True]) == pytest.approx(at if rising else 1 - at, abs=1e-12)


def test_a_coin_remembers_its_interval():
    def run(trail):
        u = coin(trail)
        first = u < Fraction(1, 2)
        return first, u < Fraction(1, 4)

    assert law(run) == {
        (True, True): Fraction(1, 4),
        (True, False): Fraction(1, 4),
        (False, False): Fraction(1, 2),
    }


def test_floor_gives_every_integer_its_share():
    assert law(lambda trail: int(coin(trail) * 5)) == {k: Fraction(1, 5) for k in range(5)}
    assert law(lambda trail: math.floor(coin(trail) * 3 - 1)) == {k: Fraction(1, 3) for k in (-1, 0, 1)}


def test_equality_has_probability_zero():
    assert law(lambda trail: bool(coin(trail) == Fraction(1, 2))) == {False: 1}


def test_infinities_and_nan_absorb():
    u = coin(Trail())
    assert u + math.inf == math.inf
    assert math.isnan(u * math.nan)
    assert 0 * u == 0
    assert not u < math.nan
    assert u < math.inf


@pytest.mark.parametrize("operation", ["__add__", "__mul__", "__truediv__", "__lt__"])
def test_what_cannot_be_followed_is_refused(operation):
    trail = Trail()
    with pytest.raises(RefusalError):
        getattr(coin(trail), operation)(coin(trail) + 1)


@pytest.mark.parametrize("bits", [1, 3])
def test_grid_counts_by_brute_force(bits):
    grid, values = Grid(bits), [Fraction(k, 2**bits) for k in range(2**bits)]
    for cut in [Fraction(k, 16) for k in range(-2, 20)]:
        assert grid.below(cut, False) == Fraction(sum(v < cut for v in values), len(values))
        assert grid.below(cut, True) == Fraction(sum(v <= cut for v in values), len(values))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_grids_are_torch_rounding(name):
    """Every one of the 2^24 integers, rounded by torch, with 1.0 mapped to 0."""
    values = (torch.arange(2**24, dtype=torch.float64) / 2**24).to(torch.float32).to(getattr(torch, name))
    values = torch.where(values == 1, torch.zeros_like(values), values).double()
    kinds, counts = torch.unique(values, return_counts=True)
    ends = torch.cumsum(counts, 0)
    grid = half_grid(name)
    assert [float(value) for value in grid._values] == kinds.tolist()
    assert grid._ends == ends.tolist()


def test_real_half_precision_generator_lies_on_the_grid():
    torch.manual_seed(0)
    for name in ("float16", "bfloat16"):
        known = {float(value) for value in half_grid(name)._values}
        assert set(torch.rand(4096, dtype=getattr(torch, name)).double().tolist()) <= known


WEIGHTS = [Fraction(1, 10), Fraction(2, 5), Fraction(3, 10), Fraction(1, 5)]


def exponentials(trail, weights):
    return [(-coin(trail).log()) / weight for weight in weights]


def plackett_luce(order):
    left, total = Fraction(1), sum(WEIGHTS)
    for index in order:
        left *= WEIGHTS[index] / total
        total -= WEIGHTS[index]
    return left


@pytest.mark.parametrize("count", [1, 2, 4])
def test_ranking_is_plackett_luce(count):
    found = law(lambda trail: tuple(ranking(exponentials(trail, WEIGHTS), count, largest=False)))
    for order in itertools.permutations(range(4), count):
        assert found[order] == plackett_luce(order)


def test_pairwise_comparisons_agree_with_the_race():
    def run(trail):
        keys = exponentials(trail, WEIGHTS)
        best = 0
        for index in range(1, 4):
            if keys[index] < keys[best]:
                best = index
        return best

    assert law(run) == dict(enumerate(WEIGHTS))


def test_a_full_sort_by_comparisons():
    def run(trail):
        keys = exponentials(trail, WEIGHTS[:3])
        order = []
        left = [0, 1, 2]
        while left:
            best = left[0]
            for index in left[1:]:
                if keys[index] < keys[best]:
                    best = index
            order.append(best)
            left.remove(best)
        return tuple(order)

    found = law(run)
    total = sum(WEIGHTS[:3])
    for a, b, c in itertools.permutations(range(3)):
        assert found[(a, b, c)] == WEIGHTS[a] / total * WEIGHTS[b] / (total - WEIGHTS[a])


@pytest.mark.parametrize("second", [[1, 1, 1, 1], [0, 1, 2, 3], [5, 0, 0, 1]])
def test_two_races_over_the_same_noise(second):
    """Against a sample of 200,000 joint races; each of 16 cells is off by 7 standard errors with chance below 1e-9."""
    second = [Fraction(weight) for weight in second]

    def run(trail):
        noise = [-coin(trail).log() for _ in WEIGHTS]
        first = ranking([e / w for e, w in zip(noise, WEIGHTS, strict=True)], 1, largest=False)
        keys = [w * e.reciprocal() if w else 0.0 for e, w in zip(noise, second, strict=True)]
        return first[0], ranking(keys, 1, largest=True)[0]

    found = law(run)
    assert sum(found.values()) == 1
    rng = np.random.default_rng(1)
    noise = rng.exponential(size=(200_000, 4))
    a = np.argmin(noise / [float(w) for w in WEIGHTS], axis=1)
    b = np.argmax([float(w) for w in second] / noise, axis=1)
    for cell in itertools.product(range(4), repeat=2):
        share = float(np.mean((a == cell[0]) & (b == cell[1])))
        exact = float(found.get(cell, 0))
        assert abs(share - exact) <= 7 * math.sqrt(exact * (1 - exact) / 200_000) + 1e-12, cell


def test_a_third_race_is_refused():
    def run(trail):
        noise = [-coin(trail).log() for _ in range(3)]
        for weights in ([1, 2, 3], [3, 2, 1], [1, 1, 5]):
            ranking([e / Fraction(w) for e, w in zip(noise, weights, strict=True)], 1, largest=False)

    with pytest.raises(RefusalError):
        law(run)


def test_the_last_arrival_is_refused():
    with pytest.raises(RefusalError, match="last arrival"):
        law(lambda trail: ranking(exponentials(trail, WEIGHTS), 1, largest=True)[0])

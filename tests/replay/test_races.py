"""Races against integrals: reused noise, numbers beside coins, and concrete values in the order the races left."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from scipy.integrate import quad
from test_replay_coins import coin, exponentials, law

from resispec_core.audit.replay.draws import answering
from resispec_core.audit.replay.race import arrange, ranking
from resispec_core.audit.replay.tables import HARD_PAIRS, Markov, fractions, hard_pair
from resispec_core.audit.replay.trail import Budget, RefusalError, explore
from resispec_core.errors import InputError

FIRST = [Fraction(k, 10) for k in (1, 4, 3, 2)]


def joint(w: list[float], r: list[float], x: int, y: int) -> float:
    """P(x wins with rates w and y with rates r over the same noise), the ratio e_y/e_x integrated numerically."""
    others = [j for j in range(len(w)) if j not in (x, y)]
    if x == y:
        return 1 / (1 + sum(max(w[j] / w[x], r[j] / r[x]) for j in range(len(w)) if j != x)) if r[x] else 0.0
    if r[y] == 0:
        return 0.0
    low, high = w[y] / w[x], r[y] / r[x] if r[x] else math.inf
    cuts = sorted(w[j] * r[y] / (w[x] * r[j]) for j in others if r[j])
    edges = [low, *(cut for cut in cuts if low < cut < high), high]

    def density(ratio: float) -> float:
        return (1 + ratio + sum(max(w[j] / w[x], ratio * r[j] / r[y]) for j in others)) ** -2

    if high <= low:
        return 0.0
    return sum(quad(density, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in itertools.pairwise(edges))


@pytest.mark.parametrize(
    "second", [(1, 1, 1, 1), (4, 3, 2, 1), (0, 1, 2, 3), (5, 0, 0, 1), (1, 4, 3, 2), (2, 7, 1, 1)]
)
def test_two_races_over_one_noise_are_the_integral(second: tuple[int, ...]) -> None:
    weights = [Fraction(weight) for weight in second]

    def run(trail: Any) -> tuple[int, int]:
        noise = [-coin(trail).log() for _ in FIRST]
        one = ranking([e / w for e, w in zip(noise, FIRST, strict=True)], 1, largest=False)[0]
        two = [w * e.reciprocal() if w else 0.0 for e, w in zip(noise, weights, strict=True)]
        return one, ranking(two, 1, largest=True)[0]

    found = law(run)
    for x, y in itertools.product(range(4), repeat=2):
        exact = joint([float(w) for w in FIRST], [float(w) for w in weights], x, y)
        assert float(found.get((x, y), 0)) == pytest.approx(exact, abs=1e-10)


def test_the_same_race_again_has_the_same_winner() -> None:
    def run(trail: Any) -> bool:
        keys = exponentials(trail, FIRST)
        return ranking(keys, 1, largest=False) == ranking(keys, 1, largest=False)

    assert law(run) == {True: 1}


def ranked(numbers: list[Any], count: int, largest: bool, form: Any) -> Any:
    def run(trail: Any) -> tuple[int, ...]:
        return tuple(ranking([form(coin(trail)), *numbers, form(coin(trail))], count, largest=largest))

    return law(run)


def reciprocal(u: Any) -> Any:
    return 1 / -u.log()


def exponential(u: Any) -> Any:
    return -u.log()


def gumbel(u: Any) -> Any:
    return -(-u.log()).log()


SURE: dict[str, tuple[list[Any], bool, Any]] = {
    "reciprocals above 0": ([0.0], True, reciprocal),
    "reciprocals above -1": ([-1.0], True, reciprocal),
    "exponentials below inf": ([math.inf], False, exponential),
    "Gumbels above -inf": ([-math.inf], True, gumbel),
    "powers above 0": ([0.0], True, lambda u: u**2),
}


@pytest.mark.parametrize("name", SURE)
def test_a_sure_loser_comes_last(name: str) -> None:
    numbers, largest, form = SURE[name]
    half = Fraction(1, 2)
    assert ranked(numbers, 1, largest, form) == {(0,): half, (2,): half}
    assert ranked(numbers, 3, largest, form) == {(0, 2, 1): half, (2, 0, 1): half}


def test_several_sure_losers_come_in_their_own_order() -> None:
    half = Fraction(1, 2)
    assert ranked([-2.0, -1.0], 4, True, reciprocal) == {(0, 3, 2, 1): half, (3, 0, 2, 1): half}


def test_nan_wins_every_race_as_in_torch() -> None:
    assert ranked([math.nan], 1, True, reciprocal) == {(1,): 1}
    half = Fraction(1, 2)
    assert ranked([math.nan], 2, True, reciprocal) == {(1, 0): half, (1, 2): half}


@pytest.mark.parametrize(
    ("number", "largest", "form"),
    [
        (0.5, True, reciprocal), (math.inf, True, reciprocal), (0.0, True, gumbel), (math.inf, True, gumbel),
        (1.0, False, exponential), (-math.inf, False, exponential), (0.5, True, lambda u: u**2),
    ],
)  # fmt: skip
def test_a_number_that_could_win_is_refused(number: float, largest: bool, form: Any) -> None:
    with pytest.raises(RefusalError, match="only a sure loser may"):
        ranked([number], 1, largest, form)


MIXED: dict[str, Any] = {
    "a threshold, then a race": lambda a, b: (a < 0.5, ranking([-a.log(), -b.log()], 1, largest=False)),
    "a race, then a threshold": lambda a, b: (ranking([-a.log(), -b.log()], 1, largest=False), a < 0.5),
    "two forms": lambda a, b: ranking([-a.log(), 1 / -b.log()], 1, largest=False),
    "two shifts": lambda a, b: ranking([-a.log() + 1, -b.log()], 1, largest=False),
    "two directions": lambda a, b: ranking([-a.log(), b.log()], 1, largest=False),
    "reused pairwise": lambda a, b: (-a.log() < -b.log(), -a.log() < -2 * b.log()),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_is_no_race_is_refused(name: str) -> None:
    with pytest.raises(RefusalError):
        law(lambda trail: MIXED[name](coin(trail), coin(trail)))


def test_a_scaled_gumbel_race_is_a_softmax_at_that_temperature() -> None:
    shifts, scale = [0.0, 0.5, -1.0], 2.0

    def run(trail: Any) -> int:
        return ranking([scale * gumbel(coin(trail)) + shift for shift in shifts], 1, largest=True)[0]

    weights = [math.exp(shift / scale) for shift in shifts]
    found = law(run)
    for token, weight in enumerate(weights):
        assert float(found[token]) == pytest.approx(weight / sum(weights), abs=1e-14)


@pytest.mark.parametrize("form", ["e", "f"])
def test_concrete_values_are_in_the_order_of_the_race(form: str) -> None:
    units: list[Any] = []

    def run(trail: Any) -> tuple[int, ...]:
        coins = [coin(trail) for _ in FIRST]
        units[:] = [u.unit for u in coins]
        keys = [-(u if form == "e" else 1 - u).log() / w for u, w in zip(coins, FIRST, strict=True)]
        with answering(trail):
            return tuple(ranking(keys, 4, largest=False))

    paths = 0
    for order, _ in explore(run, Budget()):
        values = arrange(units)
        assert values is not None
        noise = [-math.log(values[u] if form == "e" else 1 - values[u]) for u in units]
        keys = [e / float(w) for e, w in zip(noise, FIRST, strict=True)]
        assert sorted(range(4), key=lambda index: keys[index]) == list(order)
        assert all(0 < values[u] < 1 for u in units)
        paths += 1
    assert paths == 24


def test_hard_pairs_are_what_they_say() -> None:
    """Opposite tendencies, rows that differ, one masked token each, no row equal to its counterpart."""
    for size in (2, 3, 4, 8):
        target, draft = hard_pair(size)
        assert target.size == draft.size == size
        assert target(()).tolist() == fractions(*range(1, size + 1))
        assert draft(()).tolist() == fractions(*range(size, 0, -1))
        rows = [target((token,)).tolist() for token in range(size)]
        assert all(rows[token] != draft((token,)).tolist() for token in range(size))
        assert len({tuple(row) for row in rows}) > 1
        if size > 2:
            assert rows[-1].count(0) == 1
            assert rows[-1][1] == 0
            assert draft((0,)).tolist().count(0) == 1
            assert draft((0,))[size - 1] == 0
    with pytest.raises(InputError, match="size is 1"):
        hard_pair(1)
    for p, q in HARD_PAIRS:
        assert len(p) == len(q)


def test_a_table_reads_the_last_token_and_gives_fresh_rows() -> None:
    table = Markov([0.5, 0.5], {0: [1.0, 0.0], 1: [0.25, 0.75]})
    assert table((0, 1)).tolist() == table([1]).tolist() == [0.25, 0.75]
    table((1,))[:] = 0
    assert table((1,)).tolist() == [0.25, 0.75]

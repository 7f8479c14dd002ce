"""Every draw that NumPy's generators and torch's are answered with, against the law that the libraries document."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from test_replay_coins import coin, law
from test_torch_operations import torch_law

from resispec_core.audit.replay import draws
from resispec_core.audit.replay.numpy_source import CoinArray, ForkGenerator, ForkRandomState, check_weights
from resispec_core.audit.replay.trail import RefusalError, Trail

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
EVEN = {True: HALF, False: HALF}
ROW = [0.5, 0.25, 0.25]
PAIRS = {(0, 1): QUARTER, (0, 2): QUARTER, (1, 0): Fraction(1, 6), (2, 0): Fraction(1, 6)} | {
    (1, 2): Fraction(1, 12),
    (2, 1): Fraction(1, 12),
}
"""Two draws from ROW without replacement."""
ORDERS = dict.fromkeys(itertools.permutations((5, 6, 7)), Fraction(1, 6))


def shuffled(rng: Any, pool: Any) -> tuple[int, ...]:
    rng.shuffle(pool)
    return tuple(int(entry) for entry in pool)


BOTH: dict[str, tuple[Callable[[Any], Any], dict[Any, Fraction]]] = {
    "random": (lambda rng: bool(rng.random() < 0.25), {True: QUARTER, False: 3 * QUARTER}),
    "random, two": (lambda rng: tuple((rng.random(2) < 0.5).tolist()), dict.fromkeys(
        itertools.product((True, False), repeat=2), QUARTER)),
    "random, shape": (lambda rng: rng.random((2, 3)).shape, {(2, 3): Fraction(1)}),
    "uniform": (lambda rng: bool(rng.uniform(1, 3) < 1.5), {True: QUARTER, False: 3 * QUARTER}),
    "uniform, default": (lambda rng: bool(rng.uniform() < 0.5), EVEN),
    "uniform, size": (lambda rng: tuple((rng.uniform(-1, 1, 2) < 0).tolist()), dict.fromkeys(
        itertools.product((True, False), repeat=2), QUARTER)),
    "exponential": (lambda rng: bool((-rng.exponential(2.0) / 2).exp() < 0.25), {True: QUARTER, False: 3 * QUARTER}),
    "exponential, default": (lambda rng: bool((-rng.exponential()).exp() < 0.25),
                             {True: QUARTER, False: 3 * QUARTER}),
    "exponential, size": (lambda rng: int(np.argmin(rng.exponential(size=2) / np.array([0.75, 0.25]))),
                          {0: 3 * QUARTER, 1: QUARTER}),
    "standard exponential": (lambda rng: int(np.argmin(rng.standard_exponential(2) / np.array([0.75, 0.25]))),
                             {0: 3 * QUARTER, 1: QUARTER}),
    "choice": (lambda rng: int(rng.choice(3, p=ROW)), {0: HALF, 1: QUARTER, 2: QUARTER}),
    "choice of a pool": (lambda rng: int(rng.choice([7, 9])), {7: HALF, 9: HALF}),
    "choice, two": (lambda rng: tuple(rng.choice([7, 9], 2).tolist()), dict.fromkeys(
        itertools.product((7, 9), repeat=2), QUARTER)),
    "choice, shape": (lambda rng: rng.choice(2, (1, 2)).shape, {(1, 2): Fraction(1)}),
    "choice without replacement": (lambda rng: tuple(rng.choice(3, 2, False, ROW).tolist()), PAIRS),
    "choice of everything": (lambda rng: tuple(rng.choice([5, 6, 7], 3, replace=False).tolist()), ORDERS),
    "binomial": (lambda rng: int(rng.binomial(1, 0.25)), {1: QUARTER, 0: 3 * QUARTER}),
    "binomial, two": (lambda rng: tuple(rng.binomial(1, 0.5, 2).tolist()), dict.fromkeys(
        itertools.product((0, 1), repeat=2), QUARTER)),
    "multinomial": (lambda rng: tuple(rng.multinomial(1, ROW).tolist()),
                    {(1, 0, 0): HALF, (0, 1, 0): QUARTER, (0, 0, 1): QUARTER}),
    "permutation": (lambda rng: tuple(rng.permutation([5, 6, 7]).tolist()), ORDERS),
    "permutation of a number": (lambda rng: tuple(rng.permutation(2).tolist()), {(0, 1): HALF, (1, 0): HALF}),
    "shuffle": (lambda rng: shuffled(rng, [5, 6, 7]), ORDERS),
    "shuffle of an array": (lambda rng: shuffled(rng, np.array([5, 6, 7])), ORDERS),
    "gumbel": (lambda rng: int(np.argmax(rng.gumbel(size=2) + np.log([0.75, 0.25]))), {0: 3 * QUARTER, 1: QUARTER}),
}  # fmt: skip


@pytest.mark.parametrize("kind", [ForkGenerator, ForkRandomState])
@pytest.mark.parametrize("name", BOTH)
def test_every_source_has_its_documented_law(name: str, kind: Any) -> None:
    sample, shares = BOTH[name]
    found = law(lambda _: sample(kind(0)))
    assert found.keys() == shares.keys()
    for outcome, share in shares.items():
        assert float(found[outcome]) == pytest.approx(float(share), abs=1e-12)


@pytest.mark.parametrize("kind", [ForkGenerator, ForkRandomState])
def test_gumbel_noise_has_its_place_and_scale(kind: Any) -> None:
    """P(G < loc + scale·g) = exp(−exp(−g)), the documented law."""
    for loc, scale, g in ((0.0, 1.0, 0.3), (2.0, 1.0, -0.5), (-1.0, 3.0, 1.0)):
        cut = loc + scale * g
        found = law(lambda _, loc=loc, scale=scale, cut=cut: bool(kind(0).gumbel(loc, scale) < cut))
        assert float(found[True]) == pytest.approx(math.exp(-math.exp(-g)), abs=1e-12)
    found = law(lambda _: bool(kind(0).gumbel() < 0.25))
    assert float(found[True]) == pytest.approx(math.exp(-math.exp(-0.25)), abs=1e-12)


def test_integers_end_where_numpy_says() -> None:
    new, old = ForkGenerator(0), ForkRandomState(0)
    assert law(lambda _: int(new.integers(2))) == {0: HALF, 1: HALF}
    assert law(lambda _: int(new.integers(3, 5))) == {3: HALF, 4: HALF}
    assert law(lambda _: int(new.integers(3, 4, endpoint=True))) == {3: HALF, 4: HALF}
    assert law(lambda _: tuple(new.integers(0, 2, (1, 2)).ravel().tolist())) == dict.fromkeys(
        itertools.product((0, 1), repeat=2), QUARTER
    )
    assert law(lambda _: int(old.randint(2))) == {0: HALF, 1: HALF}
    assert law(lambda _: int(old.randint(3, 5, 1)[0])) == {3: HALF, 4: HALF}
    assert law(lambda _: new.integers(0, 4096) >= 0) == {True: 1}
    with pytest.raises(RefusalError, match="4097 values"):
        law(lambda _: new.integers(0, 4097))


def test_the_old_names_of_random() -> None:
    old = ForkRandomState(3)
    for sample in (lambda: old.random_sample(), lambda: old.rand(), lambda: old.rand(1)[0]):
        assert law(lambda _, sample=sample: bool(sample() < 0.5)) == EVEN
    assert law(lambda _: old.rand(2, 3).shape) == {(2, 3): 1}


BAD: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "p of another length": (lambda rng: rng.choice(2, p=[0.5, 0.25, 0.25]), ValueError),
    "p of two dimensions": (lambda rng: rng.choice(2, p=[[0.5, 0.5]]), ValueError),
    "p with NaN": (lambda rng: rng.choice(2, p=[math.nan, 1.0]), ValueError),
    "p below 0": (lambda rng: rng.choice(2, p=[-0.5, 1.5]), ValueError),
    "p that sums to 1.1": (lambda rng: rng.choice(2, p=[0.6, 0.5]), ValueError),
    "p that sums to 1 + 1e-6": (lambda rng: rng.choice(2, p=[0.5, 0.500001]), ValueError),
    "nothing to choose from": (lambda rng: rng.choice(0), ValueError),
    "more than there are": (lambda rng: rng.choice(2, 3, replace=False), ValueError),
    "more than have mass": (lambda rng: rng.choice(3, 2, replace=False, p=[1.0, 0.0, 0.0]), ValueError),
    "multinomial above 1": (lambda rng: rng.multinomial(1, [0.75, 0.5, 0.1]), ValueError),
    "multinomial below 0": (lambda rng: rng.multinomial(1, [-0.5, 0.5, 1.0]), ValueError),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_fail_as_in_numpy(name: str) -> None:
    call, error = BAD[name]
    for rng in (np.random.default_rng(0), np.random.RandomState(0)):
        with pytest.raises(error):
            call(rng)
    for kind in (ForkGenerator, ForkRandomState):
        with pytest.raises(error):
            law(lambda _, kind=kind: call(kind(0)))


def test_good_weights_are_accepted_as_in_numpy() -> None:
    for weights in ([0.5, 0.5 + 1e-9], [0.0, 1.0]):
        np.random.default_rng(0).choice(2, p=weights)
        assert check_weights(weights, 2) == weights
    single = np.array([0.1, 0.9], dtype=np.float32) + np.float32(1e-4)
    np.random.default_rng(0).choice(2, p=single)
    assert check_weights(single, 2) == single.tolist()


NOT_FOLLOWED: dict[str, Callable[[Any], Any]] = {
    "binomial(2)": lambda rng: rng.binomial(2, 0.5),
    "binomial of a row": lambda rng: rng.binomial(1, [0.5, 0.5]),
    "multinomial(2)": lambda rng: rng.multinomial(2, [0.5, 0.5]),
    "multinomial, size": lambda rng: rng.multinomial(1, [0.5, 0.5], 2),
    "random(out)": lambda rng: rng.random(out=np.empty(2)),
    "choice(axis)": lambda rng: rng.choice([[1, 2]], axis=1),
    "choice(shuffle)": lambda rng: rng.choice(3, 2, replace=False, shuffle=False),
}


@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_what_is_not_followed_is_refused(name: str) -> None:
    with pytest.raises(RefusalError):
        law(lambda _: NOT_FOLLOWED[name](ForkGenerator(0)))


WEIGHTS = np.array([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]])


def keys() -> CoinArray:
    return ForkGenerator(0).exponential(size=(2, 3)) / WEIGHTS


RACES: dict[str, Callable[[], Any]] = {
    "argmin": lambda: keys().argmin(axis=1),
    "argmin, last": lambda: np.argmin(keys(), axis=-1),
    "argmin, first": lambda: keys().T.argmin(axis=0),
    "argmax": lambda: (1 / keys()).argmax(axis=1),
    "argsort": lambda: keys().argsort(axis=1)[:, 0],
    "argsort, first": lambda: keys().T.argsort(axis=0)[0],
    "argsort of reciprocals": lambda: (1 / keys()).argsort(axis=1)[:, -1],
    "argsort of reciprocals, first": lambda: (1 / keys()).T.argsort(axis=0)[-1],
}


@pytest.mark.parametrize("name", RACES)
def test_every_row_is_a_race_of_its_own(name: str) -> None:
    found = law(lambda _: tuple(int(place) for place in RACES[name]()))
    for first, second in itertools.product(range(3), repeat=2):
        share = WEIGHTS[0, first] * WEIGHTS[1, second]
        assert float(found[first, second]) == pytest.approx(share, abs=1e-12)


def test_a_race_without_an_axis_is_one_of_all() -> None:
    found = law(lambda _: int(keys().argmin()))
    for place, share in enumerate((WEIGHTS / 2).ravel()):
        assert float(found[place]) == pytest.approx(share, abs=1e-12)


def test_a_full_argsort_is_plackett_luce() -> None:
    w = ROW
    for rank in (lambda k: k.argsort(), lambda k: (1 / k).argsort()[::-1]):
        found = law(
            lambda _, rank=rank: tuple(
                int(i) for i in rank(ForkGenerator(0).exponential(size=3) / np.array(w))
            )
        )
        for a, b, c in itertools.permutations(range(3)):
            assert float(found[a, b, c]) == pytest.approx(w[a] * w[b] / (1 - w[a]), abs=1e-12)


def test_an_array_without_coins_sorts_as_numpy_does() -> None:
    plain = np.array([[3.0, 1.0, 2.0], [1.0, 5.0, 4.0]])
    array = plain.astype(object).view(CoinArray)
    for axis in (0, 1, -1, None):
        assert array.argmax(axis=axis).tolist() == plain.argmax(axis=axis).tolist()
        assert array.argmin(axis=axis).tolist() == plain.argmin(axis=axis).tolist()
        assert array.argsort(axis=axis).tolist() == plain.argsort(axis=axis).tolist()
    assert array[0].astype(np.float64).dtype == np.float64


TORCH: dict[str, tuple[Callable[[], Any], dict[Any, Fraction]]] = {
    "rand": (lambda: bool(torch.rand(1) < 0.25), {True: QUARTER, False: 3 * QUARTER}),
    "rand_like": (lambda: tuple((torch.rand_like(torch.zeros(2)) < 0.5).tolist()), dict.fromkeys(
        itertools.product((True, False), repeat=2), QUARTER)),
    "uniform_": (lambda: bool(torch.empty(1).uniform_(1, 3) < 1.5), {True: QUARTER, False: 3 * QUARTER}),
    "uniform_, default": (lambda: bool(torch.empty(1).uniform_() < 0.5), EVEN),
    "exponential_": (lambda: bool((-torch.empty(1).exponential_()).exp() < 0.25), {True: QUARTER, False: 3 * QUARTER}),
    "exponential_, rate": (lambda: bool((-2 * torch.empty(1).exponential_(2.0)).exp() < 0.25),
                           {True: QUARTER, False: 3 * QUARTER}),
    "bernoulli": (lambda: tuple(torch.bernoulli(torch.tensor([0.5, 0.25])).tolist()),
                  {(1.0, 1.0): HALF / 4, (1.0, 0.0): 3 * HALF / 4, (0.0, 1.0): HALF / 4, (0.0, 0.0): 3 * HALF / 4}),
    "bernoulli_": (lambda: int(torch.empty(1).bernoulli_(0.25)), {1: QUARTER, 0: 3 * QUARTER}),
    "bernoulli_, default": (lambda: int(torch.empty(1).bernoulli_()), {1: HALF, 0: HALF}),
    "multinomial": (lambda: int(torch.multinomial(torch.tensor(ROW), 1)), {0: HALF, 1: QUARTER, 2: QUARTER}),
    "multinomial, rows": (lambda: tuple(torch.multinomial(torch.tensor([[1.0, 3.0], [2.0, 2.0]]), 1)[:, 0].tolist()),
                          {(0, 0): HALF / 4, (0, 1): HALF / 4, (1, 0): 3 * HALF / 4, (1, 1): 3 * HALF / 4}),
    "multinomial, two": (lambda: tuple(torch.multinomial(torch.tensor(ROW), 2).tolist()), PAIRS),
    "multinomial, replaced": (lambda: tuple(torch.multinomial(torch.tensor([1.0, 1.0]), 2, replacement=True).tolist()),
                              dict.fromkeys(itertools.product((0, 1), repeat=2), QUARTER)),
    "randint": (lambda: int(torch.randint(2, (1,))), {0: HALF, 1: HALF}),
    "randint, low": (lambda: int(torch.randint(3, 5, (1,))), {3: HALF, 4: HALF}),
    "randint_like": (lambda: int(torch.randint_like(torch.zeros(1), 2)), {0: HALF, 1: HALF}),
    "randperm": (lambda: tuple(torch.randperm(2).tolist()), {(0, 1): HALF, (1, 0): HALF}),
}  # fmt: skip


@pytest.mark.parametrize("name", TORCH)
def test_every_torch_source_has_its_documented_law(name: str) -> None:
    sample, shares = TORCH[name]
    found = torch_law(sample)
    assert found.keys() == shares.keys()
    for outcome, share in shares.items():
        assert float(found[outcome]) == pytest.approx(float(share), abs=1e-12)


TORCH_BAD: dict[str, Callable[[], Any]] = {
    "bernoulli above 1": lambda: torch.bernoulli(torch.tensor([1.5])),
    "bernoulli below 0": lambda: torch.empty(1).bernoulli_(-0.5),
    "three dimensions": lambda: torch.multinomial(torch.ones(1, 1, 2), 1),
    "whole numbers": lambda: torch.multinomial(torch.tensor([1, 1]), 1),
    "no draws": lambda: torch.multinomial(torch.ones(2), 0),
    "more than there are": lambda: torch.multinomial(torch.ones(2), 3),
    "infinite weight": lambda: torch.multinomial(torch.tensor([1.0, math.inf]), 1),
    "negative weight": lambda: torch.multinomial(torch.tensor([1.0, -1.0]), 1),
    "no weight": lambda: torch.multinomial(torch.zeros(2), 1),
}


@pytest.mark.parametrize("name", TORCH_BAD)
def test_bad_arguments_fail_as_in_torch(name: str) -> None:
    with pytest.raises(RuntimeError):
        TORCH_BAD[name]()
    with pytest.raises(RuntimeError):
        torch_law(TORCH_BAD[name])


def test_a_draw_of_an_adapter_is_enumerated_inside_and_sampled_outside() -> None:
    assert law(lambda _: draws.draw([1, 3])) == {0: QUARTER, 1: 3 * QUARTER}
    random.seed(1)
    assert {draws.draw([1, 0, 1]) for _ in range(64)} == {0, 2}  # one is missed with chance 2^-63


def test_a_race_whose_weights_are_given_by_powers() -> None:
    """u^(1/w) is largest for token i with probability w_i / Σ w (Efraimidis and Spirakis 2006)."""
    weights = [Fraction(1, 2), QUARTER, QUARTER]

    def run(trail: Trail) -> int:
        entries = np.array([coin(trail) ** (1 / weight) for weight in weights], dtype=object).view(CoinArray)
        return int(entries.argmax())

    assert law(run) == dict(enumerate(weights))


SHAPED: dict[str, Callable[[], torch.Tensor]] = {
    "rand": lambda: torch.rand(2, 3),
    "rand, dtype": lambda: torch.rand(2, dtype=torch.float64),
    "rand_like": lambda: torch.rand_like(torch.zeros(2, 1, dtype=torch.float64)),
    "rand_like, dtype": lambda: torch.rand_like(torch.zeros(2), dtype=torch.float16),
    "bernoulli": lambda: torch.bernoulli(torch.full((1, 2), 0.5, dtype=torch.float64)),
    "multinomial": lambda: torch.multinomial(torch.ones(2, 3), 1),
    "multinomial, one row": lambda: torch.multinomial(torch.ones(3), 2),
    "randint": lambda: torch.randint(2, (1, 2)),
    "randint, dtype": lambda: torch.randint(0, 2, (2,), dtype=torch.int32),
    "randint_like": lambda: torch.randint_like(torch.zeros(1, 2, dtype=torch.int64), 2),
    "randperm": lambda: torch.randperm(3),
    "randperm, dtype": lambda: torch.randperm(2, dtype=torch.int32),
}


@pytest.mark.parametrize("name", SHAPED)
def test_torch_sources_have_the_shape_and_dtype_of_torch(name: str) -> None:
    def described() -> tuple[tuple[int, ...], torch.dtype]:
        found = SHAPED[name]()
        return tuple(found.shape), found.dtype

    assert torch_law(described) == {described(): 1}


NUMPY_SHAPED: dict[str, Callable[[Any], Any]] = {
    "integers": lambda rng: rng.integers(0, 2, (1, 2)),
    "integers, dtype": lambda rng: rng.integers(0, 2, 2, dtype=np.int32),
    "binomial": lambda rng: rng.binomial(1, 0.5, (1, 2)),
    "multinomial": lambda rng: rng.multinomial(1, [0.5, 0.5]),
    "choice": lambda rng: rng.choice([0.5, 1.5], (2, 1)),
    "permutation": lambda rng: rng.permutation(np.arange(4.0).reshape(2, 2)),
    "permutation, axis": lambda rng: rng.permutation(np.arange(6).reshape(3, 2), axis=1),
}


@pytest.mark.parametrize("name", NUMPY_SHAPED)
def test_numpy_sources_have_the_shape_and_dtype_of_numpy(name: str) -> None:
    def described(rng: Any) -> tuple[tuple[int, ...], Any]:
        found = NUMPY_SHAPED[name](rng)
        return found.shape, found.dtype

    assert law(lambda _: described(ForkGenerator(0))) == {described(np.random.default_rng(0)): 1}

"""torch operations on coins, against real torch on plain numbers: what moved where, who won which row.

The oracle for a copying operation is the same call on a tensor of labels, and for a race the Plackett-Luce law of each
row; both hold for tensors of any number of dimensions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import torch
from test_replay_coins import law

from resispec_core.audit.replay.draws import answering
from resispec_core.audit.replay.torch_shadow import Shadows
from resispec_core.audit.replay.torch_source import Dispatch, Function
from resispec_core.audit.replay.trail import Budget, explore


def torch_law(run: Callable[[], Any]) -> dict[Any, Fraction]:
    def inside(trail: Any) -> Any:
        shadows = Shadows()
        with Function(shadows), Dispatch(shadows):
            return run()

    return law(inside)


def plain(shape: tuple[int, ...], first: int) -> torch.Tensor:
    return (torch.arange(math.prod(shape)) + first).reshape(shape).double()


def coins(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, dtype=torch.float64)


def _filled(x: torch.Tensor) -> torch.Tensor:
    x[:, 0].fill_(0.4)
    return x


MOVES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "clone": lambda x, _: x.clone(),
    "fill_ with a coin": lambda x, y: x.fill_(y[0, 0]),
    "fill_ with a number": lambda x, _: _filled(x),
    "cat": lambda x, y: torch.cat([x[:, :1], y[:, 1:]], dim=1),
    "stack": lambda x, y: torch.stack([x[0], y[1]], dim=1),
    "index": lambda x, _: x[torch.tensor([1, 0])],
    "gather": lambda x, _: x.gather(1, torch.tensor([[1, 1], [0, 1]])),
    "index_select": lambda x, _: x.index_select(1, torch.tensor([1, 0])),
    "masked_select": lambda x, _: x.masked_select(torch.tensor([[True, False], [True, True]])),
    "flip": lambda x, _: x.flip(0),
    "roll": lambda x, _: x.roll(1, 1),
    "where": lambda x, y: torch.where(torch.tensor([[True, False], [False, True]]), x, y),
    "copy_": lambda x, y: x.t().copy_(y),
    "masked_fill": lambda x, _: x.masked_fill(torch.tensor([[True, False], [False, True]]), 0.4),
    "index_put_": lambda x, y: x.index_put_((torch.tensor([1]),), y[:1]),
    "zero_": lambda x, y: torch.cat([x[0].zero_(), y[1]]),
    "pad": lambda x, _: torch.nn.functional.pad(x[:1], (1, 1), value=0.4),
    "scatter": lambda x, y: x.scatter(1, torch.tensor([[1], [0]]), y),
    "take": lambda x, _: x.take(torch.tensor([3, 0])),
    "to float64": lambda x, _: x.to(torch.float64, copy=True),
    "repeat": lambda x, _: x[:1].repeat(2, 1),
}


def expected_patterns(labels: list[float], cuts: list[float]) -> dict[tuple[bool, ...], float]:
    """Law of ``entry < cut`` at every place: an entry of 10 or more is the coin of that label, another a number."""
    kinds = sorted({label for label in labels if label >= 10})
    edges = [0.0, *sorted(cuts), 1.0]
    found: dict[tuple[bool, ...], float] = {}
    for cells in itertools.product(itertools.pairwise(edges), repeat=len(kinds)):
        inside = {kind: (low + high) / 2 for kind, (low, high) in zip(kinds, cells, strict=True)}
        pattern = tuple(inside.get(label, label) < cut for label, cut in zip(labels, cuts, strict=True))
        found[pattern] = found.get(pattern, 0.0) + math.prod(high - low for low, high in cells)
    return found


@pytest.mark.parametrize("name", MOVES)
def test_every_element_is_where_torch_puts_it(name: str) -> None:
    move = MOVES[name]
    labels = move(plain((2, 2), 10), plain((2, 2), 20)).reshape(-1).tolist()
    cuts = [(place + 1) / (len(labels) + 1) for place in range(len(labels))]

    def run() -> tuple[bool, ...]:
        moved = move(coins(2, 2), coins(2, 2)).reshape(-1)
        return tuple(bool(entry < cut) for entry, cut in zip(moved, cuts, strict=True))

    found, expected = torch_law(run), expected_patterns(labels, cuts)
    assert found.keys() == expected.keys()
    for pattern, mass in expected.items():
        assert float(found[pattern]) == pytest.approx(mass, abs=1e-12)


MONOTONE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "add": lambda u: u + 2,
    "add with alpha": lambda u: torch.add(torch.ones(1, dtype=torch.float64), u, alpha=-3),
    "sub": lambda u: u - torch.tensor([0.25]),
    "rsub": lambda u: 1 - u,
    "mul": lambda u: u * -0.75,
    "div": lambda u: u / 3,
    "neg": lambda u: -u,
    "log": lambda u: u.log(),
    "log2": lambda u: u.log2(),
    "log10": lambda u: u.log10(),
    "log1p": lambda u: (-u).log1p(),
    "exp": lambda u: (2 * u.log()).exp(),
    "expm1": lambda u: u.log().expm1(),
    "sqrt": lambda u: u.sqrt(),
    "reciprocal": lambda u: u.reciprocal(),
    "pow": lambda u: u**2,
    "abs": lambda u: abs(u),
    "in place": lambda u: u.clone().mul_(0.5).add_(1),
}


@pytest.mark.parametrize("name", MONOTONE)
@pytest.mark.parametrize("at", [0.2, 0.7])
def test_every_function_has_the_value_that_torch_gives(name: str, at: float) -> None:
    """``P(f(u) < f(c))`` is c or 1 − c, f(c) computed by torch on a number."""
    function = MONOTONE[name]
    value, above = (function(torch.tensor([x], dtype=torch.float64)).item() for x in (at, at + 0.1))
    found = torch_law(lambda: bool(function(coins(1)) < value))
    assert float(found[True]) == pytest.approx(at if above > value else 1 - at, abs=1e-12)


TRUTHS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], float]] = {
    "lt": (lambda u: u < 0.3, 0.3),
    "le": (lambda u: u <= 0.3, 0.3),
    "gt": (lambda u: u > 0.3, 0.7),
    "ge": (lambda u: u >= 0.3, 0.7),
    "eq": (lambda u: u == 0.3, 0.0),
    "ne": (lambda u: u != 0.3, 1.0),
    "isnan": (lambda u: u.isnan(), 0.0),
    "isinf": (lambda u: u.isinf(), 0.0),
    "clamp to its low end": (lambda u: u.clamp(0.25, 0.625) <= 0.25, 0.25),
    "clamp to its high end": (lambda u: u.clamp(0.25, 0.625) >= 0.625, 0.375),
    "clamp between": (lambda u: u.clamp(min=0.25, max=0.625) < 0.5, 0.5),
    "clamp_min": (lambda u: u.clamp_min(0.25) <= 0.25, 0.25),
    "clamp_max": (lambda u: u.clamp_max(0.625) >= 0.625, 0.375),
    "minimum": (lambda u: torch.minimum(u, torch.tensor(0.25, dtype=torch.float64)) >= 0.25, 0.75),
    "maximum": (lambda u: torch.maximum(u, torch.tensor(0.25, dtype=torch.float64)) <= 0.25, 0.25),
    "floor": (lambda u: (u * 4).floor() == 3, 0.25),
}


@pytest.mark.parametrize("name", TRUTHS)
def test_every_comparison_is_as_likely_as_it_should_be(name: str) -> None:
    function, share = TRUTHS[name]
    found = torch_law(lambda: bool(function(coins(1))))
    assert float(found.get(True, 0)) == pytest.approx(share, abs=1e-12)


WEIGHTS = torch.tensor([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]], dtype=torch.float64)


def keys() -> torch.Tensor:
    """Two races of three: row i is won by the smallest key, with probabilities WEIGHTS[i]."""
    return -coins(2, 3).log() / WEIGHTS


RACES: dict[str, Callable[[], torch.Tensor]] = {
    "argmin": lambda: keys().argmin(1),
    "argmin, last dimension": lambda: keys().argmin(dim=-1),
    "argmin, kept": lambda: keys().argmin(1, keepdim=True)[:, 0],
    "argmin, moved": lambda: keys().t().contiguous().argmin(0),
    "argmin, moved and kept": lambda: keys().t().argmin(0, keepdim=True)[0],
    "argmax": lambda: keys().reciprocal().argmax(1),
    "topk": lambda: keys().reciprocal().topk(1, 1).indices[:, 0],
    "topk, smallest": lambda: keys().topk(1, -1, largest=False).indices[:, 0],
    "topk, moved": lambda: keys().reciprocal().t().topk(1, 0).indices[0],
    "sort": lambda: keys().sort(1).indices[:, 0],
    "sort, moved": lambda: keys().t().sort(0).indices[0],
    "sort, falling": lambda: keys().reciprocal().sort(1, descending=True).indices[:, 0],
    "sort, stable": lambda: keys().sort(stable=True, dim=1).indices[:, 0],
    "min": lambda: keys().min(1).indices,
    "min, kept": lambda: keys().min(1, keepdim=True).indices[:, 0],
    "min, moved": lambda: keys().t().min(0).indices,
    "max": lambda: keys().reciprocal().max(1).indices,
}


@pytest.mark.parametrize("name", RACES)
def test_every_row_is_a_race_of_its_own(name: str) -> None:
    found = torch_law(lambda: tuple(RACES[name]().tolist()))
    for first, second in itertools.product(range(3), repeat=2):
        share = float(WEIGHTS[0, first] * WEIGHTS[1, second])
        assert float(found[first, second]) == pytest.approx(share, abs=1e-12)


def test_argmin_without_a_dimension_is_one_race_of_all() -> None:
    found = torch_law(lambda: int(keys().argmin()))
    for place, share in enumerate((WEIGHTS / 2).reshape(-1).tolist()):
        assert float(found[place]) == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize("order", ["topk", "sort"])
def test_the_first_two_of_each_row_are_plackett_luce(order: str) -> None:
    def run() -> tuple[int, ...]:
        rows = keys()
        ranked = rows.topk(2, 1, largest=False) if order == "topk" else rows.sort(1)
        return tuple(ranked.indices[:, :2].reshape(-1).tolist())

    found = torch_law(run)

    def share(row: int, a: int, b: int) -> float:
        w = WEIGHTS[row].tolist()
        return w[a] * w[b] / (1 - w[a])

    for (a, b), (c, d) in itertools.product(itertools.permutations(range(3), 2), repeat=2):
        assert float(found[a, b, c, d]) == pytest.approx(share(0, a, b) * share(1, c, d), abs=1e-12)


def test_values_of_an_order_are_the_coins_that_won() -> None:
    """The winner's value is not later than any key of its row."""

    def run() -> bool:
        rows = keys()
        best = rows.min(1)
        return all(
            bool(best.values[row] <= rows[row, place])
            for row in range(2)
            for place in range(3)
            if place != best.indices[row]
        )

    assert torch_law(run) == {True: 1}


EDGES = torch.tensor([[0.25, 0.5, 1.0], [0.125, 0.75, 1.0]], dtype=torch.float64)


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted_in_rows(right: bool) -> None:
    found = torch_law(lambda: tuple(torch.searchsorted(EDGES, coins(2, 1), right=right).reshape(-1).tolist()))
    shares = [[0.25, 0.25, 0.5], [0.125, 0.625, 0.25]]
    for a, b in itertools.product(range(3), repeat=2):
        assert float(found[a, b]) == pytest.approx(shares[0][a] * shares[1][b], abs=1e-12)


def test_searchsorted_of_several_coins_in_each_row() -> None:
    found = torch_law(lambda: tuple(torch.searchsorted(EDGES[:, :2], coins(2, 2)).reshape(-1).tolist()))
    shares = [[0.25, 0.25, 0.5], [0.125, 0.625, 0.25]]
    for a, b, c, d in itertools.product(range(3), repeat=4):
        share = shares[0][a] * shares[0][b] * shares[1][c] * shares[1][d]
        assert float(found[a, b, c, d]) == pytest.approx(share, abs=1e-12)


def test_bucketize() -> None:
    found = torch_law(lambda: tuple(torch.bucketize(coins(2), EDGES[0]).tolist()))
    for a, b in itertools.product(range(3), repeat=2):
        assert float(found[a, b]) == pytest.approx([0.25, 0.25, 0.5][a] * [0.25, 0.25, 0.5][b], abs=1e-12)


ATOM = Fraction(1, 2**24)
HALF = torch.tensor([0.5])
ON_THE_GRID: dict[str, tuple[Callable[[torch.Tensor], Any], Fraction]] = {
    "lt": (lambda u: u < 0.5, Fraction(1, 2)),
    "le": (lambda u: u <= 0.5, Fraction(1, 2) + ATOM),
    "gt": (lambda u: u > 0.5, Fraction(1, 2) - ATOM),
    "ge": (lambda u: u >= 0.5, Fraction(1, 2)),
    "eq": (lambda u: u == 0.5, ATOM),
    "ne": (lambda u: u != 0.5, 1 - ATOM),
    "searchsorted": (lambda u: torch.searchsorted(HALF, u) == 0, Fraction(1, 2) + ATOM),
    "searchsorted, right": (lambda u: torch.searchsorted(HALF, u, right=True) == 0, Fraction(1, 2)),
    "searchsorted, side": (lambda u: torch.searchsorted(HALF, u, side="right") == 0, Fraction(1, 2)),
    "searchsorted, left side": (
        lambda u: torch.searchsorted(HALF, u, side="left") == 0,
        Fraction(1, 2) + ATOM,
    ),
    "bucketize": (lambda u: torch.bucketize(u, HALF) == 0, Fraction(1, 2) + ATOM),
    "bucketize, right": (lambda u: torch.bucketize(u, HALF, right=True) == 0, Fraction(1, 2)),
    "truth": (lambda u: u.item() != 0, 1 - ATOM),
}


@pytest.mark.parametrize("name", ON_THE_GRID)
def test_equality_has_one_value_of_the_real_grid(name: str) -> None:
    """float32 coins are multiples of 2^-24, so < and <= differ by one of them."""
    function, share = ON_THE_GRID[name]

    def inside(trail: Any) -> bool:
        shadows = Shadows()
        with answering(trail), Function(shadows), Dispatch(shadows):
            return bool(function(torch.rand(1)))

    paths = explore(inside, Budget(), grid=True)
    assert sum((trail.weight for holds, trail in paths if holds), Fraction(0)) == share

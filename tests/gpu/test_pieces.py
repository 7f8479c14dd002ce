"""The pieces of GetProxy, the eager baseline and the numbers they stand on."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
import torch

from resispec_core import rules
from resispec_core.gpu import eager
from resispec_core.gpu.numerics import UNIT, exponential, scaled_coin
from resispec_core.gpu.pieces import get_proxy
from resispec_core.gpu.rows import half_table


@pytest.mark.parametrize("budget", ["local", "eq13"])
@pytest.mark.parametrize("how", ["proportional", "waterfill", "uniform"])
def test_pieces_match_the_reference_and_keep_its_invariants(how: str, budget: str) -> None:
    """Tolerance: the solver stops within V units, relative to nothing smaller than one law's mass: 64·V·2^-55."""
    rng = np.random.default_rng(5)
    rule = rules.rule("resispec", redistribution=how, budget=budget)
    size = 23
    p, q = rng.dirichlet(np.full(size, 0.4), 200), rng.dirichlet(np.full(size, 0.4), 200)
    q[::3, :9] = 0
    q /= q.sum(axis=1, keepdims=True)
    token = (p - q).argmin(axis=1)
    mine = get_proxy(p, q, token, how, budget)
    strict = get_proxy(*(array_api_strict.asarray(a) for a in (p, q, token)), how, budget)
    tolerance = 64 * size * UNIT
    for node in range(200):
        told = rule.shape(p[node], q[node], np.array(token[node]))
        for field in ("budget", "projected", "deficit", "residual_mass", "proxy"):
            assert np.abs(getattr(mine, field)[node] - getattr(told, field)).max() <= tolerance, (field, node)
    for a, b in zip(mine, strict, strict=True):
        assert (np.asarray(b) == a).all()
    if budget == "local":
        assert np.abs(mine.proxy.sum(axis=1) - 1).max() <= tolerance
        assert (mine.proxy >= -tolerance).all()


def test_the_eager_baseline_computes_the_same_rules() -> None:
    """float32 against float64: of 200 nodes at most one may fall within float32 rounding of a threshold."""
    rng = np.random.default_rng(6)
    p, q = (rng.dirichlet(np.ones(7), 200).astype(np.float32) for _ in range(2))
    tokens, coins = rng.integers(0, 7, (200, 2)), rng.random((200, 3))
    for name, options in (("specinfer", {}), ("resispec", {"redistribution": "proportional"})):
        accepted, chosen = eager.verify(name, *(torch.from_numpy(a) for a in (p, q, tokens, coins)))
        rule = rules.rule(name, **options)
        apart = sum(
            (chosen[n], accepted[n]) != tuple(rule.verify(p[n], q[n], tokens[n].tolist(), coins[n].tolist()))
            for n in range(200)
        )
        assert apart <= 1


def test_exponential_is_within_its_ulps() -> None:
    """Against long double (64-bit significand): 1.5 ulp allowed, about 1.12 seen."""
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("long double is no wider than double here")
    rng = np.random.default_rng(7)
    x = np.concatenate([-rng.random(200_000) * 700, -rng.random(200_000), [0.0, -0.0, 1.0, -708.0]])
    exact = np.exp(x.astype(np.longdouble))
    ulps = np.abs(exponential(np, x) - exact) / np.spacing(exact.astype(np.float64))
    assert ulps.max() < 1.5
    assert exponential(np, np.array([-709.0, -np.inf, 1.5])).tolist() == [0.0, 0.0, 2.0]


def test_scaled_coins_never_leave_the_mass() -> None:
    rng = np.random.default_rng(8)
    mass = np.concatenate([rng.integers(1, 2**62, 1000), [1, 2, 2**62]])
    for coin in (0.0, 0.5, 1 - 2.0**-53, 2.0**-53):
        got = scaled_coin(np, np.full(mass.shape, coin), mass)
        assert got.tolist() == [int(coin * 2**53) * int(m) >> 53 for m in mass]
        assert (got < mass).all()


def test_half_tables_are_exact() -> None:
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    order = np.arange(-(2**15), 2**15).astype(np.int16).view(np.uint16)
    for name, dtype in (("bfloat16", torch.bfloat16), ("float16", torch.float16)):
        told = bits.view(dtype).double().numpy()
        assert np.array_equal(half_table(name)[order], told, equal_nan=True)

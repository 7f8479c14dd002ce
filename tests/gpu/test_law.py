"""The law of the kernels, audited: parity alone would copy a bug of the reference.

The marginal is integrated over all randomness. For every candidate tuple each acceptance threshold and each edge of
the resampling CDF is found by bisecting that one coin through the compiled kernel (53 calls, every cell of every
tuple in one batch). Coins are multiples of 2^-53 and the rows are multiples of 2^-24 with unit mass, so the law is
exact up to the fixed-point sums: the tolerance is candidates × outcomes × V·2^-50.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from resispec_core.gpu.config import kernel_config
from tests.gpu.cases import LARGEST_COIN
from tests.gpu.test_pairs import launch
from tests.shim import build

pytestmark = pytest.mark.skipif(build.unavailable() is not None, reason=str(build.unavailable()))


def grid_law(rng: np.random.Generator, size: int) -> np.ndarray:
    """A float32 law of exact unit mass: multiples of 2^-20."""
    counts = np.floor(rng.dirichlet(np.ones(size)) * 2**20)
    counts[int(np.argmax(counts))] += 2**20 - counts.sum()
    return (counts / 2**20).astype(np.float32)


def kernel_law(
    rule, p, q, candidates, redistribution="", budget="local", norms=None, top_k=False
) -> np.ndarray:
    """The marginal of the compiled kernel, by bisection of its coins."""
    size = p.size
    weights = q.astype(np.float64) / q.astype(np.float64).sum()
    if top_k:
        tuples = [tuple(np.argsort(-weights, kind="stable")[:candidates])]
        chance = np.ones(1)
    else:
        tuples = list(itertools.product(np.flatnonzero(weights).tolist(), repeat=candidates))
        chance = np.array([weights[list(t)].prod() for t in tuples])
    config = kernel_config(
        rule, candidates, redistribution, budget, "float32", logits=False, resident=True, cluster=0
    )

    def run(tokens: np.ndarray, coins: np.ndarray):
        count = len(tokens)
        given = [np.full(count, n) for n in norms] if norms else [None, None]
        rows = [np.ascontiguousarray(np.broadcast_to(row, (count, size))) for row in (p, q)]
        return build.run(config, build.Case(*rows, tokens, coins, *given), launch(size, 1, 0, 32))

    cells = [(t, coin) for t in range(len(tuples)) for coin in range(candidates)]
    cells += [(t, candidates + edge) for t in range(len(tuples)) for edge in range(size - 1)]
    tokens = np.array([tuples[t] for t, _ in cells], dtype=np.int64)
    place = np.array([min(coin, candidates) for _, coin in cells])
    edge = np.array([coin - candidates for _, coin in cells])
    low, high = np.zeros(len(cells), np.int64), np.full(len(cells), 2**53, np.int64)
    for _ in range(54):
        middle = np.minimum((low + high) // 2, 2**53 - 1)
        coins = np.full((len(cells), candidates + 1), LARGEST_COIN)
        coins[np.arange(len(cells)), place] = middle * 2.0**-53
        answer = run(tokens, coins)
        assert (answer.status <= 1).all()
        below = np.where(
            place < candidates, answer.accepted == place, (answer.accepted >= 0) | (answer.token <= edge)
        )
        open_ = low < high
        low, high = np.where(open_ & below, middle + 1, low), np.where(open_ & ~below, middle, high)
    assert (low == high).all()
    found = dict(zip(cells, low * 2.0**-53, strict=True))
    law = np.zeros(size)
    for t, tuple_ in enumerate(tuples):
        reach = chance[t]
        for coin in range(candidates):
            law[tuple_[coin]] += reach * found[t, coin]
            reach *= 1 - found[t, coin]
        if reach > 0:
            edges = [0.0, *(found[t, candidates + e] for e in range(size - 1)), 1.0]
            law += reach * np.diff(edges)
    return law


def total_variation(a, b) -> float:
    return float(np.abs(a - b).sum() / 2)


@pytest.mark.parametrize("candidates", [1, 2, 3])
@pytest.mark.parametrize("rule", ["specinfer", "shaped", "deterministic"])
def test_exact_rules_keep_the_target_law(rule: str, candidates: int) -> None:
    rng = np.random.default_rng(candidates)
    for size in (3, 4):
        p, q = grid_law(rng, size), grid_law(rng, size)
        law = kernel_law(rule, p, q, candidates, top_k=rule == "deterministic")
        tolerance = candidates * size ** (candidates + 1) * 2.0**-50
        assert total_variation(law, p.astype(np.float64)) <= tolerance


@pytest.mark.parametrize(
    ("redistribution", "candidates", "expected"),
    [
        ("proportional", 1, (107 / 282, 46 / 105, 1801 / 9870)),
        ("proportional", 2, (691 / 1786, 16 / 35, 9749 / 62510)),
        ("waterfill", 1, (7 / 18, 7 / 15, 13 / 90)),
        ("waterfill", 2, (7 / 18, 7 / 15, 13 / 90)),
        ("waterfill", 3, (7 / 18, 7 / 15, 13 / 90)),
    ],
)
def test_the_published_rule_has_its_known_biased_law(redistribution, candidates, expected) -> None:
    """p = (1/3, 1/3, 1/3), q = (1/2, 2/5, 1/10) as counts with their sums: the rational laws of docs/findings.md."""
    p, q = np.array([1, 1, 1], np.float32), np.array([5, 4, 1], np.float32)
    law = kernel_law("resispec", p, q, candidates, redistribution, norms=(3.0, 10.0))
    assert total_variation(law, np.array(expected)) <= 1e-12
    assert total_variation(law, np.full(3, 1 / 3)) > 0.1


def test_the_audit_sees_a_wrong_law() -> None:
    """Planted fault: the published rule, in the place of an exact one, is far off."""
    p, q = np.array([0.25, 0.25, 0.5], np.float32), np.array([0.5, 0.25, 0.25], np.float32)
    wrong = kernel_law("resispec", p, q, 1, "uniform")
    assert total_variation(wrong, p) > 0.01

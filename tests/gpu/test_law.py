"""The law of the kernels, audited: parity alone would copy a bug of the reference (``gpu.law``).

The rows are multiples of 2^-20 with unit mass and the coins multiples of 2^-53, so the law is exact up to the
fixed-point sums: the tolerance is candidates × outcomes × V·2^-50.
"""

from __future__ import annotations

import numpy as np
import pytest

from resispec_core.drafts import draw_mode
from resispec_core.gpu.config import kernel_config
from resispec_core.gpu.law import measured_law
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
    config = kernel_config(
        rule, candidates, redistribution, budget, "float32", logits=False, resident=True, cluster=0
    )

    def run(tokens: np.ndarray, coins: np.ndarray):
        count = len(tokens)
        given = [np.full(count, n) for n in norms] if norms else [None, None]
        rows = [np.ascontiguousarray(np.broadcast_to(row, (count, p.size))) for row in (p, q)]
        return build.run(config, build.Case(*rows, tokens, coins, *given), launch(p.size, 1, 0, 32))

    weights = q.astype(np.float64) / q.astype(np.float64).sum()
    mode = draw_mode("top-k" if top_k else "iid")
    found = measured_law(run, list(mode.tuples(weights, candidates)), p.size)
    assert (found.bad, found.missed) == (0, 0)
    return found.law


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

"""Theorem 2 of the paper: how the distance between the residual r / Z and q depends on the budget Z.

r is any residual the method may build: min(Z q, cap) <= r <= cap, sum r = Z, where cap is p with 0 at the
rejected token.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import z3

from .finding import Finding, Stopwatch, decide, decide_all, witness_of
from .laws import Weights, law, magnitude, real, smaller


def distance(cap: Weights, q: Weights) -> tuple[z3.ArithRef, list[z3.BoolRef]]:
    """|| r - q ||_1 for an arbitrary admissible r of sum one (``cap`` and r are divided by Z)."""
    r = [real("r") for _ in cap]
    box = [z3.And(smaller(b, c) <= x, x <= c) for x, b, c in zip(r, q, cap, strict=True)]
    return z3.Sum([magnitude(x - b) for x, b in zip(r, q, strict=True)]), [z3.Sum(r) == 1, *box]


def _setting(size: int) -> tuple[Weights, Weights, Weights, list[z3.ArithRef], list[z3.BoolRef]]:
    """Two budgets Z1 < Z2, seen through cap / Z1 and cap / Z2, and the distances at both."""
    low = [z3.Real(f"cap{i}/Z1") for i in range(size)]
    shrink = z3.Real("Z1/Z2")
    high = [shrink * c for c in low]
    q, q_law = law("q", size)
    d_low, f_low = distance(low, q)
    d_high, f_high = distance(high, q)
    facts = [*(c >= 0 for c in low), shrink > 0, shrink < 1, *q_law, *f_low, *f_high]
    return low, high, q, [d_low, d_high], facts


def _splits(low: Weights, high: Weights, q: Weights) -> Iterator[list[z3.BoolRef]]:
    """Which tokens are bottlenecks (cap / Z < q) at neither budget, at the larger one, at both."""
    places = [[b <= h, z3.And(h < b, b <= c), c < b] for c, h, b in zip(low, high, q, strict=True)]
    yield from (list(case) for case in itertools.product(*places))


def non_strict() -> Finding:
    """A larger budget never brings the residual closer to q (V = 2, 3)."""
    watch = Stopwatch()
    found = "holds"
    for size in (2, 3):
        low, high, q, (d_low, d_high), facts = _setting(size)
        answer, _ = decide_all(([*facts, *split], d_low > d_high) for split in _splits(low, high, q))
        found = answer if answer != "holds" else found
    _, _, _, (d_low, d_high), facts = _setting(2)
    planted, _ = decide(facts, d_low < d_high)
    return Finding(
        "theorem2-monotone",
        "D(Z) does not decrease in Z",
        "holds",
        found,
        "claim that D(Z) does not increase",
        planted,
        None,
        watch.seconds,
    )


def strict_as_stated() -> Finding:
    """The paper's strict monotonicity has a counterexample with D > 0 (V = 2)."""
    watch = Stopwatch()
    low, high, q, (d_low, d_high), facts = _setting(2)
    found, model = decide(facts, z3.And(d_low >= d_high, d_low > 0))
    # The note's own witness, as a fixed point of the same encoding: D = 1 at both budgets.
    point = [low[0] >= 1, low[1] == 0, q[0] == z3.Q(1, 2)]
    agrees, _ = decide([*facts, *point], z3.Or(d_low != 1, d_high != 1))
    planted, _ = decide([*facts, *point], d_low == d_high)
    return Finding(
        "theorem2-strict",
        "D(Z) increases strictly wherever D > 0, as the paper states",
        "fails",
        found if agrees == "holds" else "unknown",
        "claim that D differs at p = (1, 0), q = (1/2, 1/2)",
        planted,
        witness_of(model, **{"p/Z1": low, "p/Z2": high, "q": q, "D": [d_low, d_high]}),
        watch.seconds,
    )


def strict_with_bottleneck() -> Finding:
    """Strict monotonicity holds given a token with 0 < cap < Z2 q, and only then (V = 2, 3)."""
    watch = Stopwatch()
    found = "holds"
    for size in (2, 3):
        low, high, q, (d_low, d_high), facts = _setting(size)
        bottleneck = z3.Or([z3.And(c > 0, c < b) for c, b in zip(high, q, strict=True)])
        for premise, violation in (
            (bottleneck, d_low >= d_high),
            (z3.Not(bottleneck), d_low != d_high),
        ):
            cases = (([*facts, *split, premise], violation) for split in _splits(low, high, q))
            answer, _ = decide_all(cases)
            found = answer if answer != "holds" else found
    _, high, q, (d_low, d_high), facts = _setting(2)
    any_token = z3.Or([c < b for c, b in zip(high, q, strict=True)])
    planted, _ = decide([*facts, any_token], d_low >= d_high)
    return Finding(
        "theorem2-strict-bottleneck",
        "D(Z1) < D(Z2) if and only if some token has 0 < p < Z2 q",
        "holds",
        found,
        "a bottleneck token with p = 0 is enough",
        planted,
        None,
        watch.seconds,
    )

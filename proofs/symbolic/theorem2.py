"""Theorem 2 of the paper: how the distance between the residual r / Z and q depends on the budget Z.

r is any residual the method may build: min(Z q, cap) <= r <= cap, sum r = Z, where cap is p with 0 at the rejected token.
"""

from __future__ import annotations

import z3

from .finding import Finding, Stopwatch, decide, witness_of
from .laws import Weights, law, magnitude, quotient, real, smaller


def distance(cap: Weights, q: Weights, budget: z3.ArithRef) -> tuple[z3.ArithRef, list[z3.BoolRef]]:
    """|| r / Z - q ||_1 for an arbitrary admissible residual r."""
    r = [real("r") for _ in cap]
    facts = [z3.Sum(r) == budget]
    gaps = []
    for mass, c, b in zip(r, cap, q, strict=True):
        share, fact = quotient(mass, budget)
        facts += [fact, smaller(budget * b, c) <= mass, mass <= c]
        gaps.append(magnitude(share - b))
    return z3.Sum(gaps), facts


def _setting(size: int) -> tuple[Weights, Weights, list[z3.ArithRef], list[z3.ArithRef], list[z3.BoolRef]]:
    cap = [z3.Real(f"cap{i}") for i in range(size)]
    q, q_law = law("q", size)
    low, high = z3.Reals("Z1 Z2")
    d_low, f_low = distance(cap, q, low)
    d_high, f_high = distance(cap, q, high)
    facts = [*(c >= 0 for c in cap), z3.Sum(cap) <= 1, *q_law, low > 0, low < high, *f_low, *f_high]
    return cap, q, [low, high], [d_low, d_high], facts


def non_strict() -> Finding:
    """A larger budget never brings the residual closer to q (V = 2, 3)."""
    watch = Stopwatch()
    found = "holds"
    for size in (2, 3):
        _, _, _, (d_low, d_high), facts = _setting(size)
        answer, _ = decide(facts, d_low > d_high)
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
    cap, q, budgets, (d_low, d_high), facts = _setting(2)
    found, model = decide(facts, z3.And(d_low >= d_high, d_low > 0))
    # The note's own witness, as a fixed point of the same encoding: D = 1 at both budgets.
    point = [cap[0] == 1, cap[1] == 0, q[0] == z3.Q(1, 2)]
    agrees, _ = decide([*facts, *point], z3.Or(d_low != 1, d_high != 1))
    planted, _ = decide([*facts, *point], d_low == d_high)
    return Finding(
        "theorem2-strict",
        "D(Z) increases strictly wherever D > 0, as the paper states",
        "fails",
        found if agrees == "holds" else "unknown",
        "claim that D differs at p = (1, 0), q = (1/2, 1/2)",
        planted,
        witness_of(model, cap=cap, q=q, Z=budgets, D=[d_low, d_high]),
        watch.seconds,
    )


def strict_with_bottleneck() -> Finding:
    """Strict monotonicity holds given a token with 0 < cap < Z2 q, and only then (V = 2, 3)."""
    watch = Stopwatch()
    found = "holds"
    for size in (2, 3):
        cap, q, (_, high), (d_low, d_high), facts = _setting(size)
        bottleneck = z3.Or([z3.And(c > 0, c < high * b) for c, b in zip(cap, q, strict=True)])
        for premise, violation in (
            (bottleneck, d_low >= d_high),
            (z3.Not(bottleneck), d_low != d_high),
        ):
            answer, _ = decide([*facts, premise], violation)
            found = answer if answer != "holds" else found
    cap, q, (_, high), (d_low, d_high), facts = _setting(2)
    any_token = z3.Or([c < high * b for c, b in zip(cap, q, strict=True)])
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

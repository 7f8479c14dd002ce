"""The rule as published, one candidate: the counterexample with the smallest common denominator.

The solver looks for laws p, q on three tokens whose weights are multiples of 1/d, for d = 1, 2, ..., until
the output law differs from p. `published_law` computes the same law in rationals by another route; every
witness is replayed there, and enumeration confirms that no smaller d has one.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import z3

from .finding import Finding, Stopwatch, Witness, decide, value
from .laws import Weights, differs, law, positive_part, real, smaller

REDISTRIBUTIONS = ("proportional", "water-filling", "uniform")
LARGEST_DENOMINATOR = 6


def residual_after(p: Weights, q: Weights, x: int, how: str) -> tuple[Weights, list[z3.BoolRef]]:
    """The residual mass r after rejecting x, of sum Z = q(x) - p(x); the facts hold where q(x) > p(x)."""
    budget = q[x] - p[x]
    others = [y for y in range(len(p)) if y != x]
    floor = {y: smaller(budget * q[y], p[y]) for y in others}
    r = [z3.RealVal(0) if y == x else real(f"r{x}_{y}") for y in range(len(p))]
    level = real("level")
    facts = [level >= 0, z3.Sum(r) == budget]
    if how == "proportional":
        facts += [r[y] == floor[y] + level * (p[y] - floor[y]) for y in others]
    elif how == "uniform":
        facts += [r[y] == smaller(floor[y] + level, p[y]) for y in others]
    else:  # water-filling: min(c q, p); once every drafted token is full, the others in proportion to p
        full = z3.Sum([z3.If(q[y] > 0, p[y], z3.RealVal(0)) for y in others])
        facts += [
            r[y] == z3.If(full >= budget, smaller(level * q[y], p[y]), z3.If(q[y] > 0, p[y], level * p[y]))
            for y in others
        ]
    return r, facts


def output_of(p: Weights, q: Weights, how: str) -> tuple[Weights, list[z3.BoolRef]]:
    """The output law with one candidate: min(p, q) is accepted, then r / Z for each way of being rejected."""
    out = [smaller(a, b) for a, b in zip(p, q, strict=True)]
    facts = []
    for x in range(len(p)):
        r, holds = residual_after(p, q, x, how)
        facts.append(z3.Implies(q[x] > p[x], z3.And(holds)))
        out = [o + z3.If(q[x] > p[x], m, z3.RealVal(0)) for o, m in zip(out, r, strict=True)]
    return out, facts


def published_law(p: list[Fraction], q: list[Fraction], how: str) -> list[Fraction]:
    """The same output law by direct computation in rationals (water levels by walking the break points)."""
    size = range(len(p))
    out = [min(a, b) for a, b in zip(p, q, strict=True)]
    for x in (x for x in size if q[x] > p[x]):
        budget = q[x] - p[x]
        others = [y for y in size if y != x]
        floor = {y: min(budget * q[y], p[y]) for y in others}
        if how == "proportional":
            room = sum(p[y] - floor[y] for y in others)
            t = (budget - sum(floor.values())) / room if room else Fraction(0)
            r = {y: floor[y] + t * (p[y] - floor[y]) for y in others}
        elif how == "uniform":
            r = _fill({y: (floor[y], p[y], Fraction(1)) for y in others}, budget)
        else:
            drafted = [y for y in others if q[y] > 0]
            wet = min(budget, sum((p[y] for y in drafted), Fraction(0)))
            dry = {y: p[y] for y in others if q[y] == 0}
            r = _fill({y: (Fraction(0), p[y], q[y]) for y in drafted}, wet)
            spread = sum(dry.values())
            r |= {y: (budget - wet) * m / spread if spread else Fraction(0) for y, m in dry.items()}
        for y in others:
            out[y] += r[y]
    return out


def _fill(tubs: dict[int, tuple[Fraction, Fraction, Fraction]], total: Fraction) -> dict[int, Fraction]:
    """min(floor + level * speed, brim) for each tub, with the level at which they hold ``total`` together."""

    def held(level: Fraction) -> dict[int, Fraction]:
        return {y: min(floor + level * speed, brim) for y, (floor, brim, speed) in tubs.items()}

    stops = sorted({Fraction(0), *((brim - floor) / speed for floor, brim, speed in tubs.values())})
    for low, high in itertools.pairwise(stops):
        at_low, at_high = sum(held(low).values()), sum(held(high).values())
        if at_low <= total <= at_high:
            level = low if at_low == at_high else low + (high - low) * (total - at_low) / (at_high - at_low)
            return held(level)
    return held(stops[-1])


def search(
    how: str, size: int, positive: bool, broken: bool = True
) -> tuple[int, list[str], list[str]] | None:
    """The smallest d with biased laws of weights k/d, and such a pair; None up to LARGEST_DENOMINATOR.

    ``positive`` asks for weights above zero. ``broken=False`` replaces the rule by speculative sampling.
    """
    (p, p_law), (q, q_law) = law("p", size), law("q", size)
    if broken:
        out, facts = output_of(p, q, how)
    else:
        out, facts = [smaller(a, b) + positive_part(a - b) for a, b in zip(p, q, strict=True)], []
    for d in range(1, LARGEST_DENOMINATOR + 1):
        grid = [z3.Or([w == z3.Q(k, d) for k in range(1 if positive else 0, d + 1)]) for w in (*p, *q)]
        answer, model = decide([*p_law, *q_law, *facts, *grid], differs(out, p))
        if answer == "unknown":
            raise RuntimeError(f"the solver gave up at denominator {d} for {how} redistribution")
        if model is not None:
            return d, [value(model, w) for w in p], [value(model, w) for w in q]
    return None


def brute_force(how: str, size: int, d: int, positive: bool) -> int:
    """How many pairs of laws with weights k/d are biased, by enumeration in rationals."""
    start = 1 if positive else 0
    grid = [w for w in itertools.product(range(start, d + 1), repeat=size) if sum(w) == d]
    laws = [[Fraction(k, d) for k in w] for w in grid]
    return sum(published_law(p, q, how) != p for p in laws for q in laws)


def smallest_counterexample(how: str, positive: bool) -> Finding:
    """The published rule is exact at n = 1, V = 3: refuted with the smallest common denominator."""
    watch = Stopwatch()
    got = search(how, 3, positive)
    witness: Witness | None = None
    found = "holds"
    if got is not None:
        d, p, q = got
        out = published_law([Fraction(x) for x in p], [Fraction(x) for x in q], how)
        replayed = [str(x) for x in out] != p
        smaller_ones = sum(brute_force(how, 3, k, positive) for k in range(1, d))
        found = "fails" if replayed and smaller_ones == 0 else "unknown"
        witness = {"p": p, "q": q, "output": [str(x) for x in out], "denominator": str(d)}
    # The planted variant: the search must not call an exact rule biased.
    honest = search(how, 3, positive, broken=False)
    kind = "positive weights" if positive else "any weights"
    return Finding(
        f"published-{how}-{'positive' if positive else 'any'}",
        f"the published rule, {how} redistribution, is exact at n = 1, V = 3 ({kind})",
        "fails",
        found,
        "claim that speculative sampling is biased too",
        "fails" if honest is None else "holds",
        witness,
        watch.seconds,
    )


def two_tokens() -> Finding:
    """With two tokens the published rule is exact at n = 1 under every redistribution."""
    watch = Stopwatch()
    (p, p_law), (q, q_law) = law("p", 2), law("q", 2)
    found = "holds"
    for how in REDISTRIBUTIONS:
        out, facts = output_of(p, q, how)
        answer, _ = decide([*p_law, *q_law, *facts], differs(out, p))
        found = answer if answer != "holds" else found
    # Planted: leave the deficit where the projection left it.
    out = [smaller(a, b) for a, b in zip(p, q, strict=True)]
    for x, y in ((0, 1), (1, 0)):
        spent = z3.If(q[x] > p[x], smaller((q[x] - p[x]) * q[y], p[y]), z3.RealVal(0))
        out[y] = out[y] + spent
    planted, _ = decide([*p_law, *q_law], differs(out, p))
    return Finding(
        "published-two-tokens",
        "the published rule is exact at n = 1, V = 2, under every redistribution",
        "holds",
        found,
        "no redistribution at all",
        planted,
        None,
        watch.seconds,
    )

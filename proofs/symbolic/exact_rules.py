"""The exact rules are exact: no law p, q on at most three tokens makes their output differ from p.

Every rule is written as the procedure it is (draw, coin, next residual), not as the identity that proves it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import z3

from .finding import Finding, Stopwatch, Witness, decide, decide_all, witness_of
from .laws import (
    Weights,
    differs,
    larger,
    law,
    normalised,
    over_drafted,
    positive_part,
    quotient,
    smaller,
)

Encoding = tuple[Weights, list[z3.BoolRef]]
Cases = Iterator[tuple[list[z3.BoolRef], z3.BoolRef]]


def coin(target: Weights, draft: Weights) -> Encoding:
    """The acceptance probabilities min(1, target / draft); free at a token that is never drafted."""
    accept, facts = [], []
    for t, d in zip(target, draft, strict=True):
        ratio, fact = quotient(t, d)
        facts.append(fact)
        accept.append(z3.If(ratio <= 1, ratio, z3.RealVal(1)))
        facts.append(ratio >= 0)
    return accept, facts


def finish(draft: Weights, accept: Weights, rest: Weights) -> Weights:
    """The output law of one stage: accepted mass, and the rest where the candidate is rejected."""
    rejected = z3.Sum([d * (1 - a) for d, a in zip(draft, accept, strict=True)])
    return [d * a + rejected * r for d, a, r in zip(draft, accept, rest, strict=True)]


def recursive_rejection(p: Weights, q: Weights, n: int, half: bool = False) -> Encoding:
    """SpecInfer with n independent candidates; ``half`` plants the residual (p - q/2)+."""
    if n == 0:
        return p, []
    accept, facts = coin(p, q)
    taken = [b / 2 if half else b for b in q]
    residual, more = normalised([positive_part(a - b) for a, b in zip(p, taken, strict=True)])
    rest, deeper = recursive_rejection(residual, q, n - 1, half)
    return finish(q, accept, rest), facts + more + deeper


def shaped_pair(p: Weights, q: Weights, lower: bool = True) -> Encoding:
    """`shaped` with two candidates; ``lower=False`` plants the residual min(Z q, p)."""
    z = z3.Real("Z")
    box = [positive_part(a - b) if lower else z3.RealVal(0) for a, b in zip(p, q, strict=True)]
    second = [larger(low, smaller(z * b, a)) for low, a, b in zip(box, p, q, strict=True)]
    third = [positive_part(a - (1 + z) * b) for a, b in zip(p, q, strict=True)]
    facts = [z >= 0, z <= 1, z == z3.Sum(second)]
    accepts = []
    for before, after, mass in ((p, second, z3.RealVal(1)), (second, third, z)):
        accept = []
        for b, a, d in zip(before, after, q, strict=True):
            ratio, fact = quotient(b - a, mass * d)
            # A coin has a probability between 0 and 1, whatever the formula says.
            accept.append(smaller(z3.RealVal(1), larger(z3.RealVal(0), ratio)))
            facts.append(fact)
        accepts.append(accept)
    last, more = normalised(third)
    return finish(q, accepts[0], finish(q, accepts[1], last)), facts + more


def shaped_splits(p: Weights, q: Weights) -> Iterator[list[z3.BoolRef]]:
    """Where each token lies between the break points of `shaped`; the cases cover everything (Z <= 1)."""
    z = z3.Real("Z")
    places = [
        [
            a >= (1 + z) * b,
            z3.And(b <= a, a < (1 + z) * b),
            z3.And(z * b <= a, a < b),
            z3.And(a < z * b, a < b),
        ]
        for a, b in zip(p, q, strict=True)
    ]
    yield from (list(case) for case in itertools.product(*places))


def target_match(p: Weights, q: Weights, n: int, redraw: bool = False) -> Encoding:
    """Draw y ~ p, accept where it is a candidate, output it anyway; ``redraw`` plants a second draw."""
    size = len(p)
    out = [z3.RealVal(0)] * size
    for drafted in itertools.product(range(size), repeat=n):
        weight = z3.Product([q[x] for x in drafted])
        missed = z3.Sum([z3.RealVal(0), *(p[y] for y in range(size) if y not in drafted)])
        for y in range(size):
            kept = p[y] if y in drafted or not redraw else z3.RealVal(0)
            out[y] = out[y] + weight * (kept + (missed * p[y] if redraw else 0))
    return out, []


def siblings(p: Weights, tokens: tuple[int, ...], drop: bool = True) -> Encoding:
    """Deterministic candidates, accepted with R(x), then R(x) := 0; ``drop=False`` plants keeping R."""
    if not tokens:
        return p, []
    x = tokens[0]
    left = [z3.RealVal(0) if drop and y == x else a for y, a in enumerate(p)]
    residual, facts = normalised(left)
    rest, more = siblings(residual, tokens[1:], drop)
    return [(p[x] if y == x else 0) + (1 - p[x]) * r for y, r in enumerate(rest)], facts + more


Splits = Callable[[Weights, Weights], Iterator[list[z3.BoolRef]]]


def _iid_cases(
    rule: Callable[[Weights, Weights], Encoding], size: int, splits: Splits
) -> tuple[Weights, Weights, Cases]:
    """The statement "output = p" by cases. One token stands for all: no rule knows the tokens' names."""
    (p, p_law), (q, q_law) = law("p", size), law("q", size)
    out, facts = rule(p, q)
    cases = (([*p_law, *q_law, *facts, *split], out[0] != p[0]) for split in splits(p, q))
    return p, q, cases


def _exact(
    name: str,
    statement: str,
    rule: Callable[[Weights, Weights], Encoding],
    wrong: Callable[[Weights, Weights], Encoding],
    planted_variant: str,
    splits: Splits = over_drafted,
) -> Finding:
    watch = Stopwatch()
    found, witness = "holds", None
    for size in (2, 3):
        p, q, cases = _iid_cases(rule, size, splits)
        found, model = decide_all(cases)
        witness = witness_of(model, p=p, q=q)
        if found != "holds":
            break
    _, _, cases = _iid_cases(wrong, 2, splits)
    planted, _ = decide_all(cases)
    return Finding(name, statement, "holds", found, planted_variant, planted, witness, watch.seconds)


def single_draft() -> Finding:
    """Ordinary speculative sampling is exact (V = 2, 3)."""
    return _exact(
        "single-draft",
        "speculative sampling with one candidate is exact",
        lambda p, q: recursive_rejection(p, q, 1),
        lambda p, q: recursive_rejection(p, q, 1, half=True),
        "residual (p - q/2)+",
    )


def specinfer() -> Finding:
    """SpecInfer with two candidates is exact (V = 2, 3)."""
    return _exact(
        "specinfer",
        "SpecInfer with two candidates is exact",
        lambda p, q: recursive_rejection(p, q, 2),
        lambda p, q: recursive_rejection(p, q, 2, half=True),
        "residual (p - q/2)+",
    )


def shaped() -> Finding:
    """`shaped` with two candidates is exact for every root Z (V = 2, 3)."""
    return _exact(
        "shaped",
        "residual shaping with two candidates is exact",
        shaped_pair,
        lambda p, q: shaped_pair(p, q, lower=False),
        "residual min(Z q, p), without the bound (p - q)+",
        shaped_splits,
    )


def target_matching() -> Finding:
    """Target-match with one and two candidates is exact (V = 2, 3)."""
    return _exact(
        "target-match",
        "target-match with two candidates is exact",
        lambda p, q: target_match(p, q, 2),
        lambda p, q: target_match(p, q, 2, redraw=True),
        "draw again from p where the drawn token is no candidate",
    )


def deterministic() -> Finding:
    """Deterministic siblings are exact for every list of one or two tokens, repeats included (V = 2, 3)."""
    watch = Stopwatch()

    def verdict(drop: bool, sizes: tuple[int, ...]) -> tuple[str, Witness | None]:
        for size in sizes:
            p, p_law = law("p", size)
            lists = [list(itertools.product(range(size), repeat=n)) for n in (1, 2)]
            for tokens in itertools.chain(*lists):
                out, facts = siblings(p, tokens, drop)
                found, model = decide([*p_law, *facts], differs(out, p))
                if found != "holds":
                    return found, witness_of(model, p=p)
        return "holds", None

    found, witness = verdict(True, (2, 3))
    planted, _ = verdict(False, (2,))
    return Finding(
        "deterministic",
        "deterministic siblings, up to two of them, are exact",
        "holds",
        found,
        "R(x) kept after its rejection",
        planted,
        witness,
        watch.seconds,
    )

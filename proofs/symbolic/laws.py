"""Laws and verification stages in real arithmetic, with every case split written out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import z3

Weights = list[z3.ArithRef]
_fresh = itertools.count()


def real(name: str) -> z3.ArithRef:
    """A new real unknown."""
    return z3.Real(f"{name}!{next(_fresh)}")


def law(name: str, size: int) -> tuple[Weights, list[z3.BoolRef]]:
    """An unknown probability law on ``size`` tokens: non-negative weights that sum to one."""
    w = [z3.Real(f"{name}{i}") for i in range(size)]
    return w, [*(x >= 0 for x in w), z3.Sum(w) == 1]


def smaller(a: z3.ArithRef, b: z3.ArithRef) -> z3.ArithRef:
    return z3.If(a <= b, a, b)


def larger(a: z3.ArithRef, b: z3.ArithRef) -> z3.ArithRef:
    return z3.If(a >= b, a, b)


def positive_part(a: z3.ArithRef) -> z3.ArithRef:
    return z3.If(a >= 0, a, z3.RealVal(0))


def magnitude(a: z3.ArithRef) -> z3.ArithRef:
    return z3.If(a >= 0, a, -a)


def quotient(top: z3.ArithRef, bottom: z3.ArithRef) -> tuple[z3.ArithRef, z3.BoolRef]:
    """An unknown equal to ``top / bottom``, free where ``bottom`` is zero: there the rule may do anything."""
    ratio = real("ratio")
    return ratio, z3.Or(bottom == 0, ratio * bottom == top)


def normalised(w: Weights) -> tuple[Weights, list[z3.BoolRef]]:
    """``w`` divided by its sum; free where the sum is zero."""
    pairs = [quotient(x, z3.Sum(w)) for x in w]
    return [r for r, _ in pairs], [c for _, c in pairs]


def over_drafted(p: Weights, q: Weights) -> Iterator[list[z3.BoolRef]]:
    """The case split of every residual rule: which tokens have q > p. Together the cases cover everything."""
    for signs in itertools.product((True, False), repeat=len(p)):
        yield [b > a if s else b <= a for a, b, s in zip(p, q, signs, strict=True)]


def differs(a: Weights, b: Weights) -> z3.BoolRef:
    """Some weight is not the same."""
    return z3.Or([x != y for x, y in zip(a, b, strict=True)])

"""The definitions of ``proofs/formal``, transcribed line by line into rationals.

Nothing here is shared with ``resispec_core``: the names, the argument order and the conventions (stages from 0,
a / 0 = 0) are those of the ``.v`` files, so that each function can be read beside its original. A law is a tuple of
``Fraction``; a token is its index. The file named above each group is where the definitions are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

Law = tuple[Fraction, ...]
ZERO, ONE = Fraction(0), Fraction(1)


def over(a: Fraction, b: Fraction) -> Fraction:
    """a / b in a field of MathComp, where a / 0 = 0."""
    return a / b if b else ZERO


# laws.v


def pos(a: Fraction) -> Fraction:
    return max(a, ZERO)


def norm(w: Sequence[Fraction]) -> Law:
    total = sum(w, ZERO)
    return tuple(over(a, total) for a in w)


# procedure.v


class Procedure(NamedTuple):
    """In state s the next candidate is x with weight ``draw(s)[x]``, and is accepted with ``acc(s)[x]``."""

    draw: Callable[[Any], Law]
    acc: Callable[[Any], Law]
    next: Callable[[Any, int], Any]
    fin: Callable[[Any], Law]


def run(m: Procedure, s: Any, xs: tuple[int, ...], y: int) -> Fraction:
    if not xs:
        return m.fin(s)[y]
    x, rest = xs[0], xs[1:]
    a = m.acc(s)[x]
    # The recursion is left out where its factor is zero.
    return a * (x == y) + ((1 - a) * run(m, m.next(s, x), rest, y) if a != 1 else ZERO)


def hit(m: Procedure, s: Any, xs: tuple[int, ...]) -> Fraction:
    if not xs:
        return ZERO
    a = m.acc(s)[xs[0]]
    return a + ((1 - a) * hit(m, m.next(s, xs[0]), xs[1:]) if a != 1 else ZERO)


def weight(m: Procedure, s: Any, xs: tuple[int, ...]) -> Fraction:
    if not xs:
        return ONE
    d = m.draw(s)[xs[0]]
    return d * weight(m, m.next(s, xs[0]), xs[1:]) if d else ZERO


def output(m: Procedure, n: int, s: Any) -> Law:
    size = len(m.draw(s))
    weights = {t: w for t in product(range(size), repeat=n) if (w := weight(m, s, t))}
    return tuple(sum((w * run(m, s, t, y) for t, w in weights.items()), ZERO) for y in range(size))


def acceptance(m: Procedure, n: int, s: Any) -> Fraction:
    tuples = product(range(len(m.draw(s))), repeat=n)
    return sum((w * hit(m, s, t) for t in tuples if (w := weight(m, s, t))), ZERO)


# chain.v

Chain = Callable[[int], Law]


def memoryless(q: Law, a: Callable[[int], Law], f: Callable[[int], Law]) -> Procedure:
    return Procedure(lambda i: q, a, lambda i, x: i + 1, f)


def left_mass(r: Chain, i: int) -> Fraction:
    return sum(r(i), ZERO)


def valid_chain(p: Law, q: Law, n: int, r: Chain) -> bool:
    steps = all(
        0 <= now - then <= left_mass(r, i) * b
        for i in range(n)
        for now, then, b in zip(r(i), r(i + 1), q, strict=True)
    )
    return r(0) == p and steps and all(a >= 0 for a in r(n))


def chain(q: Law, r: Chain) -> Procedure:
    def a(i: int) -> Law:
        s = left_mass(r, i)
        return tuple(over(now - then, s * b) for now, then, b in zip(r(i), r(i + 1), q, strict=True))

    return memoryless(q, lru_cache(a), lru_cache(lambda i: norm(r(i))))


def specinfer_residual(p: Law, q: Law) -> Chain:
    @lru_cache
    def r(i: int) -> Law:
        if i == 0:
            return p
        before = r(i - 1)
        s = sum(before, ZERO)
        return tuple(pos(a - s * b) for a, b in zip(before, q, strict=True))

    return r


def kseq_load(p: Law, q: Law, g: Fraction, n: int) -> Fraction:
    beta = sum(common(p, q, g), ZERO)
    return sum(((1 - beta) ** i for i in range(n)), ZERO)


def common(p: Law, q: Law, g: Fraction) -> Law:
    return tuple(min(b, a / g) for a, b in zip(p, q, strict=True))


def kseq(p: Law, q: Law, g: Fraction, n: int) -> Procedure:
    accepts = tuple(min(ONE, over(a, g * b)) for a, b in zip(p, q, strict=True))
    load = kseq_load(p, q, g, n)
    rest = norm([a - load * c for a, c in zip(p, common(p, q, g), strict=True)])
    return memoryless(q, lambda i: accepts, lambda i: rest)


# shaped.v


class Shaping:
    """clip, tau and the residuals for one T."""

    def __init__(self, p: Law, q: Law, total: Fraction) -> None:
        self.p, self.q, self.total = p, q, total
        self.tau = lru_cache(self._tau)
        self.residual = lru_cache(self._residual)

    def clip(self, t: Fraction) -> Law:
        return tuple(
            max(a - (self.total - t) * b, min(a, t * b)) for a, b in zip(self.p, self.q, strict=True)
        )

    def _tau(self, i: int) -> Fraction:
        return self.tau(i - 1) - sum(self.clip(self.tau(i - 1)), ZERO) if i else self.total

    def _residual(self, i: int) -> Law:
        return self.clip(self.tau(i))


# sequential.v


def ratio(w: Law, d: Law) -> Law:
    return tuple(min(ONE, over(a, b)) for a, b in zip(w, d, strict=True))


def residue(w: Law, d: Law) -> Law:
    return norm([pos(a - b) for a, b in zip(w, d, strict=True)])


def drop(d: Law, x: int) -> Law:
    return tuple(ZERO if y == x else a for y, a in enumerate(d))


def specinfer(q: Law) -> Procedure:
    """State: the residual w."""
    return Procedure(
        lambda w: q, lru_cache(lambda w: ratio(w, q)), lru_cache(lambda w, x: residue(w, q)), lambda w: w
    )


def without_replacement() -> Procedure:
    """State: (residual, draft law)."""
    return Procedure(
        lambda s: s[1],
        lru_cache(lambda s: ratio(s[0], s[1])),
        lru_cache(lambda s, x: (residue(s[0], s[1]), norm(drop(s[1], x)))),
        lambda s: s[0],
    )


def recursive(conditional: Callable[[tuple[int, ...]], Law]) -> Procedure:
    """State: (residual, candidates so far), here in the order they were drawn."""
    return Procedure(
        lambda s: conditional(s[1]),
        lru_cache(lambda s: ratio(s[0], conditional(s[1]))),
        lru_cache(lambda s, x: (residue(s[0], conditional(s[1])), (*s[1], x))),
        lambda s: s[0],
    )


def siblings(d: Law) -> Procedure:
    """State: the residual w. The theorems hold for every list of candidates, so ``d`` is any law."""
    return Procedure(lambda w: d, lambda w: w, lru_cache(lambda w, x: norm(drop(w, x))), lambda w: w)


# ceiling.v


def ceiling_of(p: Law, q: Law, n: int, h: Sequence[int]) -> Fraction:
    return 1 + sum((p[x] for x in h), ZERO) - sum((q[x] for x in h), ZERO) ** n


def target_match_acceptance(p: Law, q: Law, n: int) -> Fraction:
    return sum((a * (1 - (1 - b) ** n) for a, b in zip(p, q, strict=True)), ZERO)


Selection = dict[tuple[int, ...], Law]


def selected(q: Law, sel: Selection) -> Law:
    """Law of the selected candidate: sum over tuples of their weight times ``sel``."""
    tokens = range(len(q))
    return tuple(sum((math.prod(q[z] for z in t) * s[x] for t, s in sel.items()), ZERO) for x in tokens)


def optimal_parts(p: Law, k: Law) -> tuple[Law, Law]:
    """a and f: how the selected candidate is accepted, and what replaces it."""
    return ratio(p, k), residue(p, k)


def optimal_output(p: Law, q: Law, sel: Selection) -> Law:
    k = selected(q, sel)
    a, f = optimal_parts(p, k)
    tokens = range(len(p))
    return tuple(
        sum(
            (
                math.prod(q[z] for z in t) * s[x] * (a[x] * (x == y) + (1 - a[x]) * f[y])
                for t, s in sel.items()
                for x in tokens
            ),
            ZERO,
        )
        for y in tokens
    )


# published.v

Shape = Callable[[Law, int], Law]


def published(q: Law, shape: Shape) -> Procedure:
    """State: the residual w. ``shape(w, x)`` is the mass built after rejecting x."""
    return Procedure(
        lambda w: q,
        lru_cache(lambda w: ratio(w, q)),
        lru_cache(lambda w, x: tuple(over(r, q[x] - w[x]) for r in shape(w, x))),
        lambda w: w,
    )


def projection(q: Law, w: Law, x: int) -> Law:
    z = q[x] - w[x]
    return tuple(ZERO if y == x else min(z * b, a) for y, (a, b) in enumerate(zip(w, q, strict=True)))


def proportional(q: Law) -> Shape:
    def shape(w: Law, x: int) -> Law:
        m = projection(q, w, x)
        room = [a - b for a, b in zip(drop(w, x), m, strict=True)]
        t = over(q[x] - w[x] - sum(m, ZERO), sum(room, ZERO))
        return tuple(a + t * b for a, b in zip(m, room, strict=True))

    return shape


def is_waterfilling(q: Law, w: Law, x: int, r: Law) -> bool:
    """Whether some c has r = min(c q, w) off x and 0 at x, with sum q(x) - w(x)."""
    others = [y for y in range(len(q)) if y != x]
    # A token below its brim fixes c; without one any large c will do, if it reaches every brim.
    levels = {over(r[y], q[y]) for y in others if r[y] < w[y] and q[y]}
    levels = levels or {max((over(w[y], q[y]) for y in others), default=ZERO)}
    fits = any(all(r[y] == min(c * q[y], w[y]) for y in others) for c in levels)
    return fits and r[x] == 0 and sum(r, ZERO) == q[x] - w[x]


def capped(speeds: Sequence[Fraction], brims: Sequence[Fraction], amount: Fraction) -> Law | None:
    """min(c speed, brim) with sum ``amount``, by trying every set of full tokens; None if they hold less."""
    tokens = range(len(brims))
    for full in product((False, True), repeat=len(brims)):
        speed = sum((speeds[y] for y in tokens if not full[y]), ZERO)
        c = over(amount - sum((brims[y] for y in tokens if full[y]), ZERO), speed)
        filled = tuple(brims[y] if full[y] else min(c * speeds[y], brims[y]) for y in tokens)
        if sum(filled, ZERO) == amount and all(c * speeds[y] >= brims[y] for y in tokens if full[y]):
            return filled
    return None


def waterfilling(q: Law) -> Shape:
    """The r of ``is_waterfilling``. Where drafted tokens hold less than Z no r meets that definition.

    Then, as the rule's docstring says, they are filled and the rest goes to the tokens with q = 0, in proportion
    to w.
    """

    def shape(w: Law, x: int) -> Law:
        z, room = q[x] - w[x], drop(w, x)
        r = capped(drop(q, x), room, z)
        if r is not None:
            return r
        held = tuple(a if b else ZERO for a, b in zip(room, q, strict=True))
        share = over(z - sum(held, ZERO), sum(room, ZERO) - sum(held, ZERO))
        return tuple(a if b else a * share for a, b in zip(room, q, strict=True))

    return shape


def uniform(q: Law) -> Shape:
    """The projection, and the same amount more for every token until it is full. (Not in published.v by name:
    its theorems are about any shape above the projection.)"""

    def shape(w: Law, x: int) -> Law:
        m = projection(q, w, x)
        room = [a - b for a, b in zip(drop(w, x), m, strict=True)]
        more = capped([ONE] * len(w), room, q[x] - w[x] - sum(m, ZERO))
        # None only in states that no rejection leads to: Z fits under w off x whenever w is a law.
        return m if more is None else tuple(a + b for a, b in zip(m, more, strict=True))

    return shape


# telescoping.v


def appendix_b(p: Law, proxies: Sequence[Law]) -> Law:
    """sum over i of prod(1 - beta_j) min(k_i, p_i), plus the last residual's part."""
    total, reach, left = [ZERO] * len(p), ONE, p
    for k in proxies:
        taken = [min(a, b) for a, b in zip(k, left, strict=True)]
        beta = sum(taken, ZERO)
        total = [a + reach * b for a, b in zip(total, taken, strict=True)]
        left = tuple(over(a - b, 1 - beta) for a, b in zip(left, taken, strict=True))
        reach *= 1 - beta
    return tuple(a + reach * b for a, b in zip(total, left, strict=True))


# monotone.v


def drift(cap: Law, q: Law, z: Fraction) -> Fraction:
    return sum((2 * pos(b - over(a, z)) for a, b in zip(cap, q, strict=True)), ZERO)

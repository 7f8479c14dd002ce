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


def independent(q: Law, n: int) -> dict[tuple[int, ...], Fraction]:
    """The weight of every tuple of n independent candidates."""
    tuples = product([x for x in range(len(q)) if q[x]], repeat=n)
    return {t: math.prod((q[z] for z in t), start=ONE) for t in tuples}


def selected(weights: dict[tuple[int, ...], Fraction], sel: Selection) -> Law:
    """Law of the selected candidate: sum over tuples of their weight times ``sel``."""
    size = len(next(iter(sel.values())))
    return tuple(sum((w * sel[t][x] for t, w in weights.items()), ZERO) for x in range(size))


def optimal_parts(p: Law, k: Law) -> tuple[Law, Law]:
    """a and f: how the selected candidate is accepted, and what replaces it."""
    return ratio(p, k), residue(p, k)


def optimal_output(p: Law, weights: dict[tuple[int, ...], Fraction], sel: Selection) -> Law:
    k = selected(weights, sel)
    a, f = optimal_parts(p, k)
    tokens = range(len(p))
    return tuple(
        sum(
            (
                w * sel[t][x] * (a[x] * (x == y) + (1 - a[x]) * f[y])
                for t, w in weights.items()
                for x in tokens
            ),
            ZERO,
        )
        for y in tokens
    )


# priorities.v and proxy.v


def upto(f: Sequence[Fraction], j: int) -> Fraction:
    return sum(f[:j], ZERO)


def height(n: int, a: Fraction, b: Fraction) -> Fraction:
    return sum((b ** (n - 1 - i) * a**i for i in range(n)), ZERO)


def window(n: int, q: Law, i: int) -> Fraction:
    return height(n, upto(q, i), upto(q, i + 1))


def overlap(a: Fraction, b: Fraction, c: Fraction, d: Fraction) -> Fraction:
    return max(min(b, d) - max(a, c), ZERO)


Masses = list[list[Fraction]]
"""[g][w]: what group g has of window w."""


def matched(q: Law, u: Law, v: Law) -> Masses:
    groups = range(len(q))
    short = [max(q[g] * (v[g] - u[g]), ZERO) for g in groups]
    over = [max(q[g] * (u[g] - v[g]), ZERO) for g in groups]
    return [
        [overlap(upto(short, i), upto(short, i + 1), upto(over, j), upto(over, j + 1)) for j in groups]
        for i in groups
    ]


def exchanged(q: Law, u: Law, f: Masses) -> Masses:
    groups = range(len(q))
    swapped = [[f[i][j] / (u[j] - u[i]) if u[i] != u[j] else ZERO for j in groups] for i in groups]
    given = [sum(swapped[g], ZERO) + sum((swapped[i][g] for i in groups), ZERO) for g in groups]
    return [
        [(q[g] - given[g] if w == g else ZERO) + swapped[g][w] + swapped[w][g] for w in groups]
        for g in groups
    ]


def priority_sets(n: int, q: Law, k: Law, sets: Masses) -> bool:
    groups = range(len(q))
    return (
        all(mass >= 0 for row in sets for mass in row)
        and all(sum(sets[g]) == q[g] for g in groups)
        and all(sum(sets[g][w] for g in groups) == q[w] for w in groups)
        and all(sum(sets[g][w] * window(n, q, w) for w in groups) == k[g] for g in groups)
    )


def least_prefix(n: int, h: int, p: Law, q: Law) -> bool:
    """``p`` and ``q`` in the order of p/q, q positive."""
    ratios = [a / b for a, b in zip(p, q, strict=True)]
    bounds = [upto(p, j) - upto(q, j) ** n for j in range(len(q) + 1)]
    return sum(q) == 1 and ratios == sorted(ratios) and bounds[h] == min(bounds)


def proxy(h: int, p: Law, q: Law, c1: Fraction, c2: Fraction) -> Law:
    return tuple(max(p[i], c1 * q[i]) if i < h else min(p[i], c2 * q[i]) for i in range(len(q)))


# published.v

Shape = Callable[[Law, Law, int], Law]
"""(draft law, w, x) -> the mass built after rejecting x from the residual w."""


def published(q: Law, shape: Shape) -> Procedure:
    """State: the residual w."""
    return Procedure(
        lambda w: q,
        lru_cache(lambda w: ratio(w, q)),
        lru_cache(lambda w, x: tuple(over(r, q[x] - w[x]) for r in shape(q, w, x))),
        lambda w: w,
    )


def published_after(conditional: Callable[[tuple[int, ...]], Law], shape: Shape) -> Procedure:
    """State: (residual, candidates so far), here in the order they were drawn."""

    def next_state(s: Any, x: int) -> Any:
        w, drawn = s
        d = conditional(drawn)
        return tuple(over(r, d[x] - w[x]) for r in shape(d, w, x)), (*drawn, x)

    return Procedure(
        lambda s: conditional(s[1]),
        lru_cache(lambda s: ratio(s[0], conditional(s[1]))),
        lru_cache(next_state),
        lambda s: s[0],
    )


def published_eq13(q: Law, fill: Callable[[Law, Law, int, Fraction], Law]) -> Procedure:
    """The published rule with the budget of Eq. 13, Z = max(min p/q, |q(x) - p(x)|).

    Not in published.v: the paper's r = Z after norm is not the mass of a proxy there. The rule normalises what the
    redistribution ``fill`` makes of Z, or of all that is left off x where Z is more than that.
    """

    def next_state(w: Law, x: int) -> Law:
        lowest = min(a / b for a, b in zip(w, q, strict=True) if b)
        return norm(fill(q, w, x, max(lowest, abs(q[x] - w[x]))))

    return Procedure(lambda w: q, lru_cache(lambda w: ratio(w, q)), lru_cache(next_state), lambda w: w)


def projection(q: Law, w: Law, x: int, z: Fraction | None = None) -> Law:
    z = q[x] - w[x] if z is None else z
    return tuple(ZERO if y == x else min(z * b, a) for y, (a, b) in enumerate(zip(w, q, strict=True)))


def proportional(q: Law, w: Law, x: int, z: Fraction | None = None) -> Law:
    m = projection(q, w, x, z)
    room = [a - b for a, b in zip(drop(w, x), m, strict=True)]
    wanted = min(q[x] - w[x] if z is None else z, sum(drop(w, x), ZERO))
    t = over(pos(wanted - sum(m, ZERO)), sum(room, ZERO))
    return tuple(a + t * b for a, b in zip(m, room, strict=True))


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


def waterfilling(q: Law, w: Law, x: int, z: Fraction | None = None) -> Law:
    """The r of ``is_waterfilling``. Where drafted tokens hold less than Z no r meets that definition.

    Then, as the rule's docstring says, they are filled and the rest goes to the tokens with q = 0, in proportion
    to w.
    """
    room = drop(w, x)
    z = min(q[x] - w[x] if z is None else z, sum(room, ZERO))
    r = capped(drop(q, x), room, z)
    if r is not None:
        return r
    held = tuple(a if b else ZERO for a, b in zip(room, q, strict=True))
    share = over(z - sum(held, ZERO), sum(room, ZERO) - sum(held, ZERO))
    return tuple(a if b else a * share for a, b in zip(room, q, strict=True))


def uniform(q: Law, w: Law, x: int, z: Fraction | None = None) -> Law:
    """The projection, and the same amount more for every token until it is full. (Not in published.v by name:
    its theorems are about any shape above the projection.)"""
    m = projection(q, w, x, z)
    room = [a - b for a, b in zip(drop(w, x), m, strict=True)]
    wanted = min(q[x] - w[x] if z is None else z, sum(drop(w, x), ZERO))
    more = capped([ONE] * len(w), room, pos(wanted - sum(m, ZERO)))
    # None only in states that no rejection leads to: Z fits under w off x whenever w is a law.
    return m if more is None else tuple(a + b for a, b in zip(m, more, strict=True))


# without.v

Plan = Callable[[Law, Law], Law]
"""(w, d) -> a number for every token."""


def second(m: Law, d: Law) -> Law:
    rest = [norm(drop(d, x)) for x in range(len(d))]
    return tuple(sum((m[x] * rest[x][y] for x in range(len(d))), ZERO) for y in range(len(d)))


def left_over(m: Law, b: Law, w: Law, d: Law) -> Law:
    return tuple(w[y] - d[y] + m[y] - b[y] * drawn for y, drawn in enumerate(second(m, d)))


def handed_on(m: Law, b: Law, w: Law, d: Law, x: int) -> Law:
    rest, f = norm(drop(d, x)), norm(left_over(m, b, w, d))
    taken = sum((c * a for c, a in zip(b, rest, strict=True)), ZERO)
    return tuple(c * a + (1 - taken) * e for c, a, e in zip(b, rest, f, strict=True))


def look_ahead(m: Plan, b: Plan) -> Procedure:
    """State: (candidates to come, (residual, law of the next candidate))."""

    def acc(s: Any) -> Law:
        k, (w, d) = s
        return tuple(over(a - c, a) for a, c in zip(d, m(w, d), strict=True)) if k > 1 else ratio(w, d)

    def next_state(s: Any, x: int) -> Any:
        k, (w, d) = s
        residual = handed_on(m(w, d), b(w, d), w, d, x) if k > 1 else residue(w, d)
        return k - 1, (residual, norm(drop(d, x)))

    return Procedure(lambda s: s[1][1], lru_cache(acc), lru_cache(next_state), lambda s: s[1][0])


def refused(load: Fraction, w: Law, d: Law) -> Law:
    return tuple(min(b, max(pos(b - a), (b * (1 + load) - a) * (1 - b))) for a, b in zip(w, d, strict=True))


def accepts_second(load: Fraction, w: Law, d: Law) -> Law:
    m = refused(load, w, d)
    return tuple(
        min(ONE, over(a - b + c, drawn)) for a, b, c, drawn in zip(w, d, m, second(m, d), strict=True)
    )


def load_of(m: Law, d: Law) -> Fraction:
    """The load that a plan m makes; ``shaped_without_best`` asks that it be the one m was made from."""
    return sum((over(c, 1 - b) for c, b in zip(m, d, strict=True)), ZERO)


# ranked.v


def inclusion(weights: dict[tuple[int, ...], Fraction], h: Sequence[int]) -> Fraction:
    return sum((w for t, w in weights.items() if all(z in h for z in t)), ZERO)


def ranked_law(weights: dict[tuple[int, ...], Fraction], rank: Sequence[int]) -> Law:
    """inclusion(tokens up to x) - inclusion(tokens below x), for every x."""
    tokens = range(len(rank))
    return tuple(
        inclusion(weights, [z for z in tokens if rank[z] <= rank[x]])
        - inclusion(weights, [z for z in tokens if rank[z] < rank[x]])
        for x in tokens
    )


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

"""Priority sets: a draft of token x draws its priority from I_x, and the largest of n priorities is selected.

The law of the selected token is ``∫ n t^(n−1) dμ_x`` for the measure μ_x of x (mass q(x), all together Lebesgue on
[0, 1]). Any such measures give an exactly known selection law; here they are placed to give a wanted one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from resispec_core.arrays import Array, divide, is_rational, zeros
from resispec_core.errors import InputError
from resispec_core.laws import inverse_cdf

BISECTIONS = 60
NEGLIGIBLE = 2.0**-300
"""A float draft mass below this gets no set of its own: its tokens always rank last, at an error below V·n times it."""
FINENESS = (30, 60, 120)
"""Rational windows are found to this many bits; the next entry is tried where one is too coarse."""


class Piece(NamedTuple):
    """The stretch [start, end] of [0, 1], covered with a constant density in (0, 1]."""

    start: Any
    end: Any
    density: Any


RANKED_LAST = Piece(0.0, NEGLIGIBLE, 1.0)
"""For tokens without a set of their own (floats only): ``selection_law`` gives them 0."""


@dataclass(frozen=True)
class Priorities:
    """Pieces by group of tokens; the tokens of a group share its pieces in proportion to q."""

    draft: Array
    candidates: int
    group: Array
    """Group of each token, −1 where q is 0 or negligible."""
    pieces: list[list[Piece]]

    def selection_law(self) -> Array:
        """The law of the selected candidate, integrated over the pieces: shape (V,)."""
        n = self.candidates
        like = self.draft
        value, mass = zeros(len(self.pieces), like), zeros(len(self.pieces), like)
        for place_, pieces in enumerate(self.pieces):
            value[place_] = sum(d * (b**n - a**n) for a, b, d in pieces)
            mass[place_] = sum(d * (b - a) for a, b, d in pieces)
        per_unit = np.concatenate([divide(value, mass), zeros(1, like)])
        return self.draft * per_unit[self.group]

    def priority(self, token: int, coin: Any) -> Any:
        """The priority that the uniform ``coin`` gives a draft of ``token``."""
        pieces = self._pieces(token)
        masses = np.array([d * (b - a) for a, b, d in pieces])
        found = inverse_cdf(masses / masses.sum(), coin)
        before = sum(masses[:found], 0 * coin)
        start, end, density = pieces[found]
        return min(start + (coin * masses.sum() - before) / density, end)

    def selection(self, tokens: Sequence[int]) -> Array:
        """Probability that each of the drafted ``tokens`` has the largest priority: shape (n,).

        Exact: on every stretch between piece ends the distribution functions are linear, so the integral of
        one density times the other functions is that of a polynomial.
        """
        pieces = [self._pieces(token) for token in tokens]
        ends = sorted({end for own in pieces for piece in own for end in piece[:2]})
        below = [0 * self.draft[0]] * len(tokens)
        won = zeros(len(tokens), like=self.draft)
        masses = [sum(d * (b - a) for a, b, d in own) for own in pieces]
        for low, high in pairwise(ends):
            # Over the width of the stretch, so that every factor is a share in [0, 1]: the density of a token of
            # tiny mass is so large that the product of a few overflows.
            shares = [
                sum(d * (high - low) for a, b, d in own if a <= low and high <= b) / mass
                for own, mass in zip(pieces, masses, strict=True)
            ]
            for index, share in enumerate(shares):
                if share == 0:
                    continue
                polynomial = [share]
                for other in range(len(tokens)):
                    if other != index:
                        polynomial = _times_linear(polynomial, below[other], shares[other])
                won[index] = won[index] + sum(factor / (power + 1) for power, factor in enumerate(polynomial))
            below = [value + share for value, share in zip(below, shares, strict=True)]
        return won

    def _pieces(self, token: int) -> list[Piece]:
        if self.draft[token] == 0:
            raise InputError(f"token {token} has draft probability 0, so it cannot have been drafted")
        own = self.pieces[self.group[token]] if self.group[token] >= 0 else []
        # A stretch shorter than the spacing of floats at its place is empty: its tokens weigh less than one rounding.
        return own if any(end > start for start, end, _ in own) else [RANKED_LAST]


def place(proxy: Array, draft: Array, candidates: int, inside: Array) -> Priorities:
    """Priority sets that select token x with probability ``proxy[x]`` (rational), or nearly that (float).

    ``proxy`` must be majorised by the cake n t^(n−1), with the tokens ``inside`` owning [0, q(inside)] exactly.
    Tokens of equal proxy/q share one set.
    """
    group, members = _groups(proxy, draft, inside)
    q = np.array([draft[own].sum() for own in members], dtype=draft.dtype)
    k = np.array([proxy[own].sum() for own in members], dtype=draft.dtype)
    build = _rational_pieces if is_rational(draft) else _float_pieces
    split = sum(bool(inside[own[0]]) for own in members)
    pieces = build(q[:split], k[:split], candidates, 0 * q.sum())
    pieces += build(q[split:], k[split:], candidates, q[:split].sum())
    return Priorities(draft, candidates, group, pieces)


def has_own_set(draft: Array) -> Array:
    """Mask of the tokens that are drafted with more than a negligible probability."""
    return draft > (0 if is_rational(draft) else NEGLIGIBLE)


def _groups(proxy: Array, draft: Array, inside: Array) -> tuple[Array, list[Array]]:
    """Drafted tokens of equal proxy/q together, those inside H first, then by that ratio ascending."""
    tokens = np.flatnonzero(has_own_set(draft))
    ratio = divide(proxy[tokens], draft[tokens])
    order = (
        np.lexsort([ratio, ~inside[tokens]])
        if not is_rational(draft)
        else np.array(sorted(range(tokens.size), key=lambda i: (not inside[tokens[i]], ratio[i])), dtype=int)
    )
    tokens, ratio = tokens[order], ratio[order]
    # Plateaus of a float proxy were rounded after a product: the same ratio to a few units in the last place.
    slack = 0 if is_rational(draft) else 4 * np.finfo(np.float64).eps
    starts = np.concatenate(
        [[True], (ratio[1:] - ratio[:-1] > slack * ratio[1:]) | (inside[tokens][1:] != inside[tokens][:-1])]
    )
    number = np.cumsum(starts) - 1
    group = np.full(draft.size, -1)
    group[tokens] = number
    return group, np.split(tokens, np.flatnonzero(starts)[1:])


def _times_linear(polynomial: list[Any], constant: Any, slope: Any) -> list[Any]:
    product = [factor * constant for factor in polynomial] + [0 * constant]
    for power, factor in enumerate(polynomial):
        product[power + 1] = product[power + 1] + factor * slope
    return product


def _float_pieces(q: Array, k: Array, n: int, start: Any) -> list[list[Piece]]:
    """Nested windows: after the first j groups the removed set is one interval [L_j, R_j].

    Taken in order of k/q, each group extends the hole to both sides, so R − L = Σq and R^n − L^n = Σk fix it: all
    are solved at once by bisection on L. A jump in k/q can leave a gap beside the hole; then the groups are
    placed one by one.
    """
    if q.size == 0:
        return []
    length, value = np.cumsum(q), np.cumsum(k)
    end = start + length[-1]
    low, high = np.full(q.size, float(start)), np.maximum(end - length, start)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        enough = _stretch(middle, length, n) >= value
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    left = np.minimum.accumulate(high)
    # The hole's left end is known to about V·eps; a larger step back is a real gap.
    if (high - left).max() > 8 * q.size * np.finfo(np.float64).eps:
        return _one_by_one(q.tolist(), k.tolist(), n, float(start), float(end))
    left[-1], right = start, left + length
    right[-1] = end
    result = []
    before = after = left[0]
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        result.append([Piece(x, y, 1.0) for x, y in ((a, before), (after, b)) if y > x] or [Piece(a, b, 1.0)])
        before, after = a, b
    return result


def _one_by_one(q: list[float], k: list[float], n: int, start: float, end: float) -> list[list[Piece]]:
    """The same windows with gaps: ``free`` holds what is left below the newest window, ``right`` starts the rest."""
    free: list[tuple[float, float]] = []
    right = start
    result: list[list[Piece]] = []
    for mass, value in zip(q[:-1], k[:-1], strict=True):
        taken = 0.0
        pieces: list[Piece] = []
        if right + mass <= end and _stretch(right, mass, n) <= value:
            begin = _crossing(partial(_short_of, mass, value, n), right, end - mass)
            if begin > right:
                free.append((right, begin))
            result.append([Piece(begin, begin + mass, 1.0)])
            right = begin + mass
            continue
        while free and taken < mass:
            a, b = free.pop()
            rest, most = mass - taken, min(b - a, mass - taken)
            needed = min(max(0.0, right + rest - end), most)
            part = _crossing(partial(_above, b, right, rest, value, n), needed, most)
            pieces.append(Piece(b - part, b, 1.0))
            taken, value = taken + part, value - _stretch(b - part, part, n)
            if part < b - a:
                free.append((a, b - part))
                break
        reach = min(right + mass - taken, end)
        pieces.append(Piece(right, reach, 1.0))
        right = reach
        result.append([piece for piece in pieces if piece.end > piece.start] or pieces[:1])
    last = [Piece(a, b, 1.0) for a, b in [*free, (right, end)] if b > a]
    return [*result, last or [Piece(right, end, 1.0)]]


def _short_of(mass: float, value: float, n: int, start: float) -> float:
    """What a window of ``mass`` from ``start`` lacks of ``value``."""
    return value - _stretch(start, mass, n)


def _above(top: float, right: float, mass: float, value: float, n: int, part: float) -> float:
    """What ``part`` below ``top`` and the rest of ``mass`` above ``right`` are worth more than ``value``."""
    return _stretch(top - part, part, n) + _stretch(right, mass - part, n) - value


def _crossing(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where ``falling`` crosses zero in [low, high]; the nearer end where it does not."""
    from scipy.optimize import brentq  # half of the package's import time, and only large rows come here

    if low >= high or falling(low) <= 0:
        return low
    if falling(high) >= 0:
        return high
    return float(brentq(falling, low, high, xtol=1e-18, rtol=4 * np.finfo(np.float64).eps))


def _stretch(left: Any, length: Any, n: int) -> Any:
    """(left + length)^n − left^n without cancellation: length · Σ (left + length)^i left^(n−1−i)."""
    right, total, power = left + length, 1, 1
    for _ in range(n - 1):
        power = power * left
        total = total * right + power
    return length * total


def _rational_pieces(q: Array, k: Array, n: int, start: Any) -> list[list[Piece]]:
    """Windows of what is left, in order of k/q; each a mixture of two close rational windows.

    The window with exactly the wanted value has irrational ends, so two are mixed whose values enclose it. Runs
    that fill a stretch exactly (Σk = Σ of the cake) are placed on it by themselves.
    """
    result: list[list[Piece]] = []
    length, value, first, at = 0 * start, 0 * start, 0, start
    for index in range(q.size):
        length, value = length + q[index], value + k[index]
        if (at + length) ** n - at**n == value:
            result += _run(
                q[first : index + 1], k[first : index + 1], n, Piece(at, at + length, 1 + 0 * start)
            )
            at, first, length, value = at + length, index + 1, 0 * start, 0 * start
    if first != q.size:
        raise InputError("the proxy and the draft law do not fill the priorities: k and q of different total")
    return result


def _run(q: Array, k: Array, n: int, whole: Piece) -> list[list[Piece]]:
    for bits in FINENESS:
        try:
            return _windows(q, k, n, whole, bits)
        except _TooCoarseError:
            continue
    raise InputError(f"no priority sets found for k = {k.tolist()}, q = {q.tolist()} at {FINENESS[-1]} bits")


class _TooCoarseError(Exception):
    pass


def _windows(q: Array, k: Array, n: int, whole: Piece, bits: int) -> list[list[Piece]]:
    left, result = [whole], []
    for mass, value in zip(q[:-1], k[:-1], strict=True):
        room = sum(d * (b - a) for a, b, d in left) - mass
        low, high = 0 * room, room
        low_pieces, high_pieces = _window(left, low, mass), _window(left, high, mass)
        if not _value(low_pieces, n) <= value <= _value(high_pieces, n):
            raise _TooCoarseError
        for _ in range(bits):
            middle = (low + high) / 2
            pieces = _window(left, middle, mass)
            if _value(pieces, n) <= value:
                low, low_pieces = middle, pieces
            else:
                high, high_pieces = middle, pieces
        spread = _value(high_pieces, n) - _value(low_pieces, n)
        weight = (value - _value(low_pieces, n)) / spread if spread > 0 else 0 * value
        own = [Piece(a, b, d * (1 - weight)) for a, b, d in low_pieces if weight < 1]
        own += [Piece(a, b, d * weight) for a, b, d in high_pieces if weight > 0]
        result.append(own)
        left = _without(left, own)
    return [*result, left]


def _window(pieces: list[Piece], skip: Any, mass: Any) -> list[Piece]:
    """The stretch of ``pieces`` that holds ``mass`` after ``skip`` of it."""
    taken = []
    for a, b, d in pieces:
        from_, to = max(a, a + skip / d), min(b, a + (skip + mass) / d)
        if to > from_:
            taken.append(Piece(from_, to, d))
        skip = skip - d * (b - a)
    return taken


def _value(pieces: list[Piece], n: int) -> Any:
    return sum(d * (b**n - a**n) for a, b, d in pieces)


def _without(pieces: list[Piece], taken: list[Piece]) -> list[Piece]:
    ends = sorted({end for piece in [*pieces, *taken] for end in piece[:2]})
    result = []
    for a, b in pairwise(ends):
        density = sum(d for x, y, d in pieces if x <= a and b <= y) - sum(
            d for x, y, d in taken if x <= a and b <= y
        )
        if density > 0:
            result.append(Piece(a, b, density))
    return result

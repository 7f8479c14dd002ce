"""Priority sets: a draft of token x draws its priority from a measure μ_x, and the largest of n priorities is selected.

μ_x has mass q(x), and all of them together are uniform on [0, 1]. Then the largest of n priorities is at t with
density n·t^(n−1), and the law of the selected token is ``∫ n t^(n−1) dμ_x``: known exactly whatever the measures. Here
they are placed to give a wanted law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from resispec_core.arrays import Array, divide, is_rational, positive_part, sums_before, zeros
from resispec_core.errors import InputError
from resispec_core.laws import inverse_cdf

NEGLIGIBLE = 2.0**-300
"""A float draft mass below this gets no set of its own: its tokens always rank last, at an error below V·n times it."""


class Pieces(NamedTuple):
    """Stretches [start, end] of [0, 1], each covered with a constant density in (0, 1]: shape (pieces,) each."""

    start: Array
    end: Array
    density: Array

    @property
    def masses(self) -> Array:
        """What each piece holds."""
        return self.density * (self.end - self.start)


RANKED_LAST = Pieces(np.array([0.0]), np.array([NEGLIGIBLE]), np.array([1.0]))
"""For tokens without a set of their own (floats only): ``selection_law`` gives them 0."""


@dataclass(frozen=True)
class Priorities:
    """Pieces by group of tokens; the tokens of a group share its pieces in proportion to q."""

    draft: Array
    candidates: int
    group: Array
    """Group of each token, −1 where q is 0 or negligible."""
    pieces: Pieces
    """Those of a group are neighbours, and disjoint."""
    first: Array
    """(groups + 1,): where the pieces of each group begin; every group has one."""

    def selection_law(self) -> Array:
        """The law of the selected candidate, integrated over the pieces: shape (V,)."""
        mass = self.pieces.masses
        worth = mass * _height(self.pieces.start, self.pieces.end, self.candidates)
        value, whole = (np.add.reduceat(part, self.first[:-1]) for part in (worth, mass))
        per_unit = np.concatenate([divide(value, whole), zeros(1, like=self.draft)])
        return self.draft * per_unit.take(self.group, mode="wrap")  # −1 is the last: no set, no mass

    def priority(self, token: int, coin: Any) -> Any:
        """The priority that the uniform ``coin`` gives a draft of ``token``."""
        own = self.of(token)
        masses = own.masses
        whole = masses.sum()
        found = inverse_cdf(masses / whole, coin)
        inside = (coin * whole - masses[:found].sum()) / own.density[found]
        return min(own.start[found] + inside, own.end[found])

    def selection(self, tokens: Sequence[int]) -> Array:
        """Probability that each of the drafted ``tokens`` has the largest priority: shape (n,).

        Exact: on every stretch between piece ends the distribution functions are linear, so the integral of
        one density times the other functions is that of a polynomial.
        """
        own = [self.of(token) for token in tokens]
        ends = np.unique(np.concatenate([part for pieces in own for part in pieces[:2]]))
        below = [_distribution(pieces, ends) for pieces in own]
        # Over the width of the stretch, so that every factor is a share in [0, 1]: the density of a token of tiny
        # mass is so large that the product of a few overflows.
        shares = [part[1:] - part[:-1] for part in below]
        won = zeros(len(tokens), like=self.draft)
        for index, share in enumerate(shares):
            polynomial = [share]
            for other in range(len(tokens)):
                if other != index:
                    polynomial = _times_linear(polynomial, below[other][:-1], shares[other])
            won[index] = sum(factor.sum() / (power + 1) for power, factor in enumerate(polynomial))
        return won

    def of(self, token: int) -> Pieces:
        """The pieces that ``token`` draws its priority from, by start."""
        if self.draft[token] == 0:
            raise InputError(f"token {token} has draft probability 0, so it cannot have been drafted")
        group = self.group[token]
        if group < 0:
            return RANKED_LAST
        own = Pieces(*(part[self.first[group] : self.first[group + 1]] for part in self.pieces))
        # A stretch shorter than the spacing of floats at its place is empty: its tokens weigh less than one rounding.
        order = np.argsort(own.start, kind="stable")
        order = order[own.end[order] > own.start[order]]
        return Pieces(*(part[order] for part in own)) if order.size else RANKED_LAST


def place(draft: Array, candidates: int, order: Array, proxy: Array) -> Priorities:
    """Priority sets that select ``order[i]`` with probability ``proxy[i]``: exactly in rationals, else to rounding.

    ``order``: the tokens that have a set, proxy/q ascending; those of equal proxy/q share one. ``proxy`` must be
    majorised by the cake, Σ_{i ≤ j} proxy[i] ≥ (Σ_{i ≤ j} q)^n; else the law is another one (``selection_law`` says).
    proofs/formal: ``priority_sets_exist``.
    """
    q = draft.take(order)
    ratio = divide(proxy, q)
    # Plateaus of a float proxy were rounded after a product: the same ratio to a few units in the last place.
    slack = 0 if is_rational(draft) else 4 * np.finfo(np.float64).eps
    apart = ratio[1:] - ratio[:-1] > slack * ratio[1:]
    starts = np.concatenate([[0], np.flatnonzero(apart) + 1])
    group = np.full(draft.size, -1)
    group[order] = np.concatenate([[0], np.cumsum(apart)])
    pieces, first = _exchanged(np.add.reduceat(q, starts), np.add.reduceat(proxy, starts), candidates)
    return Priorities(draft, candidates, group, pieces, first)


def has_own_set(draft: Array) -> Array:
    """Mask of the tokens that are drafted with more than a negligible probability."""
    return draft > (0 if is_rational(draft) else NEGLIGIBLE)


def _exchanged(q: Array, wanted: Array, n: int) -> tuple[Pieces, Array]:
    """Neighbouring windows of lengths q, of which low ones swap mass with high ones until each has its value.

    Window j has the height u_j (its mean of n·t^(n−1)) and should have v_j = wanted/q; both ascend. What the low
    windows (v > u) are short of is matched with what the high ones (v < u) have too much, in order. By majorisation
    the partner of a low window i is a high window l > i, so u_i < v_i ≤ v_l < u_l: swapping the mass
    f/(u_l − u_i) moves the value f, and neither window has less than it gives away. This is the inverse transform
    martingale coupling (Jourdain and Margheriti, 1808.01390) of v with the cake. About three pieces a group.
    proofs/formal: ``exchange_places``, ``matched_flow``.
    """
    ends = sums_before(q)
    ends = ends / ends[-1]
    left, right = ends[:-1], ends[1:]
    length, height = right - left, _height(left, right, n)
    short_of = divide(wanted, q) - height
    flow, low, high = _matched(length * short_of)
    # By rounding a partner can be a wrong neighbour in floats: then less is swapped, or nothing.
    right_way = height[high] > height[low]
    flow, low, high = flow[right_way], low[right_way], high[right_way]
    gap = np.maximum(np.maximum(height[high] - height[low], short_of[low]), -short_of[high])
    swapped = flow / gap
    given = zeros(q.size, like=q)
    np.add.at(given, low, swapped)
    np.add.at(given, high, swapped)
    kept = positive_part(1 - divide(given, length))
    stays = np.flatnonzero(kept > 0)
    group = np.concatenate([stays, low, high])
    window = np.concatenate([stays, high, low])
    density = np.concatenate([kept[stays], swapped / length[high], swapped / length[low]])
    by_group = np.argsort(group, kind="stable")
    window = window[by_group]
    first = sums_before(np.bincount(group, minlength=q.size))
    return Pieces(left[window], right[window], density[by_group]), first


def _matched(change: Array) -> tuple[Array, Array, Array]:
    """Positive entries against negative ones, in order: amounts, and the two entries that each is between."""
    more, less = np.cumsum(positive_part(change)), np.cumsum(positive_part(-change))
    marks = np.unique(np.concatenate([more, less]))
    marks = marks[: np.searchsorted(marks, min(more[-1], less[-1]), side="right")]
    before = np.concatenate([zeros(1, like=change), marks])[:-1]
    flow = marks - before
    before, flow = before[flow > 0], flow[flow > 0]
    return flow, *(np.searchsorted(sums, before, side="right") for sums in (more, less))


def _height(left: Array, right: Array, n: int) -> Array:
    """The mean of n·t^(n−1) over [left, right], (right^n − left^n)/(right − left) without cancellation."""
    total, power = 1 + 0 * right, 1 + 0 * left
    for _ in range(n - 1):
        power = power * left
        total = total * right + power
    return total


def _distribution(pieces: Pieces, at: Array) -> Array:
    """The share of the ``pieces`` (disjoint, by start) below each point, of which every start and end is one."""
    masses = pieces.masses
    whole = masses.sum()
    done = sums_before(masses)
    place = np.searchsorted(pieces.start, at, side="right")
    inside = np.maximum(place - 1, 0)
    covered = np.minimum(at, pieces.end[inside]) - pieces.start[inside]
    return (done[inside] + pieces.density[inside] * positive_part(covered)) / whole


def _times_linear(polynomial: list[Array], constant: Array, slope: Array) -> list[Array]:
    product = [factor * constant for factor in polynomial] + [0 * constant]
    for power, factor in enumerate(polynomial):
        product[power + 1] = product[power + 1] + factor * slope
    return product

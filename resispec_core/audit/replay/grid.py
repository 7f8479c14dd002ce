"""The grid of values that a real generator's uniforms take.

Bias is measured with ideal, continuous coins. What the finite grid adds (a coin of exactly 0, mostly) is a separate
figure: the same replay with ``P(u < t)`` and ``P(u ≤ t)`` counted on the grid.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import cache


class Grid:
    """Multiples of 2^−bits in [0, 1), all equally likely."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.size = 1 << bits

    def below(self, cut: Fraction, inclusive: bool) -> Fraction:
        """``P(u < cut)``, or ``P(u ≤ cut)``."""
        scaled = cut * self.size
        count = math.floor(scaled) + 1 if inclusive else math.ceil(scaled)
        return Fraction(min(max(count, 0), self.size), self.size)

    def inside(self, low: Fraction, high: Fraction) -> Fraction:
        """A grid value whose probability cell lies in [low, high)."""
        first, last = int(low * self.size), int(high * self.size) - 1
        return Fraction((first + last) // 2, self.size)


class RoundedGrid(Grid):
    """A 24-bit uniform rounded to a type with few mantissa bits, with 1.0 mapped to 0 (torch, CPU).

    ``mantissa``: bits after the leading one (10 for float16, 7 for bfloat16); ``smallest``: exponent of the least
    subnormal.
    """

    def __init__(self, mantissa: int, smallest: int) -> None:
        super().__init__(24)
        self._values, self._ends = _atoms(mantissa, smallest)

    def below(self, cut: Fraction, inclusive: bool) -> Fraction:
        place = bisect_right(self._values, cut) if inclusive else bisect_left(self._values, cut)
        return Fraction(self._ends[place - 1] if place else 0, self.size)

    def inside(self, low: Fraction, high: Fraction) -> Fraction:
        middle = (low + high) / 2 * self.size
        return self._values[bisect_right(self._ends, middle)]


@cache
def _atoms(mantissa: int, smallest: int) -> tuple[list[Fraction], list[int]]:
    """Values in ascending order and, for each, the number of 24-bit integers at or below it."""
    size = 1 << 24
    counts: dict[Fraction, int] = {}
    start = 0
    while start < size:
        value, stop = _round_half_even(start, mantissa, smallest)
        key = Fraction(0) if value == 1 else value
        counts[key] = counts.get(key, 0) + min(stop, size) - start
        start = stop
    values = sorted(counts)
    ends, total = [], 0
    for value in values:
        total += counts[value]
        ends.append(total)
    return values, ends


def _round_half_even(integer: int, mantissa: int, smallest: int) -> tuple[Fraction, int]:
    """The rounded value of integer/2^24, and an integer up to which all round to it."""
    if integer == 0:
        return Fraction(0), 1
    exponent = max(integer.bit_length() - 1 - mantissa, smallest + 24, 0)
    unit = 1 << exponent
    if unit == 1:
        return Fraction(integer, 1 << 24), integer + 1
    whole, rest = divmod(integer, unit)
    half = unit // 2
    up = rest > half or (rest == half and whole % 2 == 1)
    kept = whole + up
    last = kept * unit + half - (0 if kept % 2 == 0 else 1)
    # Where the spacing doubles, integers after ``last`` may round to the same value; the caller adds them up.
    return Fraction(kept * unit, 1 << 24), max(last, integer) + 1


FRACTION_53 = Grid(53)
FRACTION_24 = Grid(24)


@cache
def half_grid(name: str) -> RoundedGrid:
    """The grid of torch's CPU ``rand`` in float16 or bfloat16."""
    return RoundedGrid(10, -24) if name == "float16" else RoundedGrid(7, -133)

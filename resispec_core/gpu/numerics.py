"""Arithmetic that gives the same bits under NumPy, under CuPy and inside the kernels.

Only +, −, ×, ÷, min, max, floor and comparisons of float64 are used, one rounding each and never fused, and
every sum over a row is a sum of 64-bit integers. So no result depends on the order of a reduction, hence
not on block size, cluster size, batch, or library. Functions take the array namespace ``xp`` first and keep
to the array API standard.

Fixed point: a term t ≥ 0 counts floor(t·2^55) units, and at least one unit where t > 0, so a sum is zero
only if every term is. Each term is off by at most one unit, a row sum by at most V·2^-55 (4.2e-12 at
V = 152,064). Terms up to 1.001 and V ≤ 2^18 stay far below 2^63 for rows of total mass up to 128.
"""

from __future__ import annotations

import math
from typing import Any

UNIT_BITS = 55
UNIT = 2.0**-UNIT_BITS
MAX_VOCAB = 2**18
MAX_ENTRY = 1.001
"""Largest probability accepted in a row; the same margin as ``MASS_MARGIN``."""
MASS_MARGIN = 1e-3

LOG2_E = float.fromhex("0x1.71547652b82fep+0")
LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
"""ln 2 to 32 bits: k·LN2_HIGH is exact for the |k| ≤ 1022 that occur."""
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
EXP_FLOOR = -708.0
"""Below it exp would be subnormal; the result is zero and the token counts as impossible."""


def namespace(array: Any) -> Any:
    """The array namespace of ``array`` (NumPy, CuPy or any standard-conforming one)."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    name = type(array).__module__.split(".")[0]
    if name not in ("numpy", "cupy"):
        raise TypeError(f"{type(array).__name__} belongs to no known array namespace")
    return __import__(name)


def cast(xp: Any, array: Any, dtype: Any) -> Any:
    """``array`` as ``dtype`` (truncating towards zero for integers)."""
    return xp.astype(array, dtype) if hasattr(xp, "astype") else array.astype(dtype)


def running_sum(xp: Any, array: Any) -> Any:
    """Inclusive prefix sums along the last axis."""
    if hasattr(xp, "cumulative_sum"):
        return xp.cumulative_sum(array, axis=-1)
    return xp.cumsum(array, axis=-1)


def column(array: Any) -> Any:
    """Shape (N,) as (N, 1), to stand beside rows."""
    return array[:, None]


def gather(xp: Any, rows: Any, tokens: Any) -> Any:
    """``rows[n, tokens[n, i]]`` for every n and i: shape of ``tokens``."""
    return xp.take_along_axis(rows, tokens, axis=-1)


def units(xp: Any, terms: Any, bits: int = UNIT_BITS) -> Any:
    """Non-negative terms as integers of 2^-bits, at least one where the term is positive."""
    whole = cast(xp, terms * 2.0**bits, xp.int64)
    one = xp.ones_like(whole)
    return xp.where(terms > 0, xp.where(whole > one, whole, one), xp.zeros_like(whole))


def total(xp: Any, terms: Any, bits: int = UNIT_BITS) -> Any:
    """Row sums in units, shape (N,). Exact, so the order of summation cannot matter."""
    return xp.sum(units(xp, terms, bits), axis=-1, dtype=xp.int64)


def real(xp: Any, count: Any, bits: int = UNIT_BITS) -> Any:
    """Units back to float64 (one rounding)."""
    return cast(xp, count, xp.float64) * 2.0**-bits


def softmax_bits(vocabulary: int) -> int:
    """Fixed-point bits for a sum of ``vocabulary`` terms of at most one each: as many as fit in 62."""
    return 62 - max(vocabulary - 1, 0).bit_length()


def exponential(xp: Any, x: Any) -> Any:
    """``exp(x)`` for x ≤ 1, by argument reduction and a Taylor polynomial of degree 13, without fused operations.

    Within 1.5 ulp (tests/gpu/test_numerics.py measures it). Zero below ``EXP_FLOOR``; 2.0 above 1, which
    every caller rejects as too large for a probability.
    """
    usable = (x >= EXP_FLOOR) & (x <= 1.0)
    y = xp.where(usable, x, xp.zeros_like(x))
    k = xp.floor(y * LOG2_E + 0.5)
    r = (y - k * LN2_HIGH) - k * LN2_LOW
    value = xp.full_like(r, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        value = value * r + coefficient
    power = xp.take(_powers(xp, x), cast(xp, xp.reshape(k, (-1,)), xp.int64) + 1022)
    scaled = value * xp.reshape(power, x.shape)
    return xp.where(usable, scaled, xp.where(x > 1.0, xp.full_like(x, 2.0), xp.zeros_like(x)))


def scaled_coin(xp: Any, coin: Any, mass: Any) -> Any:
    """``floor(floor(u·2^53)·mass / 2^53)`` exactly: an integer in 0..mass − 1 for u in [0, 1), mass ≥ 1.

    128-bit product from 32-bit halves; the kernels use one ``mulhi``.
    """
    left = cast(xp, xp.floor(coin * 2.0**53), xp.uint64) * 2**11
    right = cast(xp, mass, xp.uint64)
    half = xp.asarray(32, dtype=xp.uint64)
    low = xp.asarray(2**32 - 1, dtype=xp.uint64)
    a, b = xp.bitwise_right_shift(left, half), xp.bitwise_and(left, low)
    c, d = xp.bitwise_right_shift(right, half), xp.bitwise_and(right, low)
    carry = xp.bitwise_right_shift(b * d, half) + xp.bitwise_and(a * d, low) + xp.bitwise_and(b * c, low)
    high = a * c + xp.bitwise_right_shift(a * d, half) + xp.bitwise_right_shift(b * c, half)
    return cast(xp, high + xp.bitwise_right_shift(carry, half), xp.int64)


def draw(xp: Any, weights: Any, coin: Any) -> tuple[Any, Any]:
    """One token per row by the inverse CDF in integers: (tokens of shape (N,), row mass in units).

    The first token whose prefix sum exceeds the scaled coin: never one of weight zero, never off the end.
    Rows without mass return token −1.
    """
    prefix = running_sum(xp, units(xp, weights))
    mass = prefix[:, -1]
    target = scaled_coin(xp, coin, mass)
    passed = cast(xp, prefix <= column(target), xp.int64)
    token = xp.sum(passed, axis=-1, dtype=xp.int64)
    return xp.where(mass > 0, token, xp.full_like(token, -1)), mass


def _powers(xp: Any, like: Any) -> Any:
    """2^-1022 .. 2^2 as a table: the standard has no ``ldexp``."""
    device = {"device": like.device} if hasattr(like, "device") and xp.__name__ != "cupy" else {}
    return xp.asarray([math.ldexp(1.0, k) for k in range(-1022, 3)], dtype=xp.float64, **device)


_TAYLOR = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))

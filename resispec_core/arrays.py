"""Array helpers that mean the same in float64 and in rationals.

Every rule is written once, with NumPy operations that also run on object arrays of
``fractions.Fraction``. The few places where the two number systems need care (division by zero, a sum
that must stay exact, an array of zeros of the right kind) live here.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


def is_rational(array: Array) -> bool:
    """True where arithmetic on ``array`` is exact (an object array of ``Fraction``)."""
    return array.dtype == object


def one(like: Array) -> Any:
    """The number 1 of the number system of ``like``."""
    return Fraction(1) if is_rational(like) else 1.0


def zeros(shape: int | tuple[int, ...], like: Array) -> Array:
    """Zeros of the number system of ``like``."""
    if is_rational(like):
        return np.full(shape, Fraction(0), dtype=object)
    return np.zeros(shape, dtype=like.dtype)


def positive_part(array: Array) -> Array:
    """``(x)+`` elementwise."""
    array = np.asarray(array)
    return np.maximum(array, 0 * array if is_rational(array) else 0.0)


def divide(numerator: Array, denominator: Array) -> Array:
    """``numerator / denominator``, and 0 wherever the denominator is 0. Never warns.

    In floats a quotient too large for float64 (a mass over a subnormal one) is infinite.
    """
    numerator, denominator = np.asarray(numerator), np.asarray(denominator)
    possible = denominator != 0
    with np.errstate(over="ignore"):
        if possible.all():  # a third of the time of the general case
            return np.asarray(np.divide(numerator, denominator))
        shape = np.broadcast_shapes(numerator.shape, denominator.shape)
        exact = is_rational(numerator) or is_rational(denominator)
        quotient = np.full(shape, Fraction(0), dtype=object) if exact else np.zeros(shape)
        return np.divide(numerator, denominator, out=quotient, where=possible)


def sum_of_others(values: Array) -> Array:
    """For each entry of a non-negative (V,) array the sum of all the others.

    Summed afresh for the largest: one token can hold all but the last bit of a float law, and a difference
    would lose the rest.
    """
    top = int(np.argmax(values))
    rest = values.sum() - values
    rest[top] = values[:top].sum() + values[top + 1 :].sum()
    return rest


def sums_before(values: Array) -> Array:
    """The sums before each entry of an array of shape (V,), and after the last: shape (V + 1,)."""
    return np.concatenate([zeros(1, like=values), np.cumsum(values)])


def sums_from(values: Array) -> Array:
    """The sums from each entry of an array of shape (V,) on, and 0: shape (V + 1,).

    Summed from the far end: each is then sharp to V·eps of itself, not of the sum over all entries.
    """
    return np.concatenate([np.cumsum(values[::-1])[::-1], zeros(1, like=values)])


def running_sums(first: Array, second: Array) -> tuple[Array, Array]:
    """``sums_before`` of two arrays of equal length.

    Floats go through one pass of complex numbers. A running sum waits for every addition, so the second one is free.
    """
    if is_rational(first):
        return sums_before(first), sums_before(second)
    both = np.zeros(first.size + 1, dtype=np.complex128)
    both.real[1:], both.imag[1:] = first, second
    np.cumsum(both, out=both)
    return both.real.copy(), both.imag.copy()


def lifted(weights: Array) -> Array:
    """``weights`` times 2^100 (no rounding), where only their proportions count.

    A mass divided by the smallest subnormal weight is then still finite: 2^(1074 − 100) < 2^1024.
    """
    return weights if is_rational(weights) else weights * 2.0**100


def normalise(mass: Array, fallback: Array) -> Array:
    """``mass`` divided by its sum along the last axis; rows without mass become ``fallback``.

    The fallback is reached with probability zero by an exact rule. In floats a rejection can be produced
    by rounding alone (p = q to the last bit); then the last non-empty law is what is still owed.
    """
    total = mass.sum(axis=-1, keepdims=True)
    if (total > 0).all():
        return np.asarray(mass / total)
    return np.where(total == 0, fallback, divide(mass, total))


def one_hot(tokens: Array, size: int, like: Array) -> Array:
    """Point masses: shape ``tokens.shape + (size,)`` in the number system of ``like``."""
    result = zeros((*np.shape(tokens), size), like=like)
    np.put_along_axis(result, column(tokens), one(like), axis=-1)
    return result


def column(values: Array) -> Array:
    """``values`` of shape (...) as (..., 1), to meet rows of shape (..., V); also for a lone ``Fraction``."""
    return np.asarray(values)[..., None]


def at(rows: Array, tokens: Array) -> Array:
    """``rows[..., tokens]`` taken per row: shape of ``tokens``; ``rows`` may be one row shared by all."""
    tokens = np.asarray(tokens)
    rows = np.broadcast_to(rows, (*tokens.shape, rows.shape[-1]))
    return np.take_along_axis(rows, tokens[..., None], axis=-1)[..., 0]


def without(rows: Array, tokens: Array) -> Array:
    """A copy of ``rows`` with the entry at each row's token set to zero."""
    tokens = np.asarray(tokens)
    result = np.array(np.broadcast_to(rows, (*tokens.shape, rows.shape[-1])))
    np.put_along_axis(result, column(tokens), 0 * one(rows), axis=-1)
    return result


def as_float(array: Array) -> Array:
    """The nearest float64 values, entry by entry."""
    return array.astype(np.float64)

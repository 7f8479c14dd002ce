"""Probability laws: what a row must satisfy, and how logits become one.

A *law* is a one-dimensional array over the vocabulary with non-negative entries of total mass one: either
float64, or an object array of ``fractions.Fraction`` for exact work. Every rule and every audit takes laws
made here, so that there is one place that refuses a bad row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from resispec_core.arrays import Array, is_rational
from resispec_core.errors import InputError

FLOAT_KINDS = (np.float64, np.float32, np.float16)


def law(row: Any, *, name: str = "law") -> Array:
    """A validated probability row.

    ``row``: one-dimensional, length V ≥ 1. Integers, ``Fraction`` and strings such as ``"1/3"`` make a
    rational law (object array of ``Fraction``; the sum must be exactly 1). float64 is kept bit for bit;
    float32 and float16 are widened to float64 and divided by their sum.

    A float row may miss the sum 1 by ``(8 + 2 log2 V)·eps + V·tiny``, with ``eps`` and ``tiny`` (the
    smallest subnormal) of its dtype: the rounding of a softmax with pairwise summation in that dtype. A
    float64 row that was divided by a running sum may miss it by ``V·eps``; past the first figure it is
    divided by its sum again, since a missing 1e-13 would otherwise read as bias.

    Raises ``InputError`` naming the entry for NaN, infinity, a negative entry, a wrong shape, an empty or
    massless row, or a sum that is off (and by how much). Cost: O(V).
    """
    array = _as_array(row, name)
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{name}: expected one row of at least one probability, got shape {array.shape}")
    if is_rational(array):
        _refuse_negative(array, name)
        total = sum(array, Fraction(0))
        if total != 1:
            raise InputError(
                f"{name}: probabilities sum to {total}, off by {total - 1}; "
                "a rational law must sum to exactly 1 (decimals are read exactly: write 1/3, not 0.333)"
            )
        return array
    info = np.finfo(array.dtype)
    wide = array.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(wide.sum())
        plain = math.isfinite(total) and wide.min() >= 0  # NaN and infinities reach the sum
    if not plain:
        _refuse_nonfinite(array, name)
        _refuse_negative(array, name)
    if total == 0:
        raise InputError(f"{name}: all {array.size} entries are zero; no token can be drawn from it")
    size = array.size
    tolerance = (8 + 2 * math.log2(size)) * float(info.eps) + size * float(info.smallest_subnormal)
    allowed = max(tolerance, size * float(info.eps) if array.dtype == np.float64 else 0.0)
    if abs(total - 1) > allowed:
        raise InputError(
            f"{name}: probabilities sum to {total!r}, off by {total - 1:+.3g} (allowed for {array.dtype} "
            f"and V = {size}: {allowed:.3g}); divide the row by its sum, or pass logits to law_from_logits"
        )
    return wide if array.dtype == np.float64 and abs(total - 1) <= tolerance else wide / total


def law_from_logits(
    logits: Any,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    name: str = "logits",
) -> Array:
    """The float64 law that sampling from ``logits`` follows after the usual filters.

    ``logits``: one-dimensional float64, float32 or float16; −inf marks a masked token. Filters act in the
    order transformers applies them: temperature, top-k, top-p, min-p; all arithmetic is float64.

    Ties: top-k keeps every token that ties with the k-th largest logit. top-p removes tokens in ascending
    order of logit while their cumulative mass is ≤ 1 − top_p, and among equal logits the lower token id
    goes first; the most likely token always stays. min-p keeps tokens with probability ≥ min_p × the
    largest. ``temperature=0`` is greedy decoding: a point mass on the first largest logit.

    Raises ``InputError`` for NaN, +inf, a row with every token masked, or a parameter out of range.
    Cost: O(V), with top-p O(V log V).
    """
    array = np.asarray(logits)
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{name}: expected one row of at least one logit, got shape {array.shape}")
    if array.dtype not in FLOAT_KINDS:
        raise InputError(
            f"{name}: dtype {array.dtype} is not a logit dtype; convert to float16, float32 or float64"
        )
    scores = array.astype(np.float64)
    bad = np.isnan(scores) | (scores == np.inf)
    if bad.any():
        token = int(np.argmax(bad))
        raise InputError(
            f"{name}: token {token} has logit {scores[token]} ({int(bad.sum())} such entries); "
            "logits must be finite, or -inf for a masked token"
        )
    if np.isneginf(scores).all():
        raise InputError(f"{name}: all {scores.size} tokens are masked (-inf); no token can be drawn")
    _check_filters(temperature, top_k, top_p, min_p)
    if temperature == 0:
        greedy = np.zeros(scores.size)
        greedy[int(np.argmax(scores))] = 1.0
        return greedy
    with np.errstate(over="ignore"):  # a quotient below float64 is -inf, and exp(-inf) = 0 is its law
        # In halves, because the largest minus the smallest float64 is beyond float64.
        scores = 2 * ((scores / 2 - scores.max() / 2) / temperature)
    if top_k is not None and top_k < scores.size:
        scores = np.where(scores < np.partition(scores, -top_k)[-top_k], -np.inf, scores)
    if top_p is not None and top_p < 1:
        ascending = np.argsort(scores, kind="stable")
        removed = np.cumsum(_softmax(scores[ascending])) <= 1 - top_p
        removed[-1] = False
        scores[ascending[removed]] = -np.inf
    if min_p is not None:
        weights = _softmax(scores)
        scores = np.where(weights < min_p * weights.max(), -np.inf, scores)
    return _softmax(scores)


def parse_law(text: str, *, name: str = "law") -> Array:
    """A rational law from ``'1/3,1/3,1/3'`` or ``'0.5,0.3,0.2'`` (decimals are read exactly)."""
    return law(parse_rationals(text, name=name, wanted="a rational such as 1/3 or a decimal"), name=name)


def parse_rationals(text: str, *, name: str, wanted: str) -> list[Fraction]:
    """The entries of a comma-separated list, read exactly; ``wanted`` says in the error what an entry should be."""
    entries = []
    for place, entry in enumerate(text.split(",")):
        try:
            entries.append(Fraction(entry.strip()))
        except (ValueError, ZeroDivisionError):
            raise InputError(
                f"{name}: entry {place} is {entry.strip()!r}, not {wanted}; separate the entries with commas"
            ) from None
    return entries


def same_vocabulary(target: Array, draft: Array) -> None:
    """Refuse a pair whose laws are over vocabularies of different size or in different number systems."""
    if target.shape[-1] != draft.shape[-1]:
        raise InputError(
            f"target has {target.shape[-1]} tokens and draft has {draft.shape[-1]}: a verifier needs both "
            "rows over the same vocabulary; map or pad the draft's ids first"
        )
    if is_rational(target) != is_rational(draft):
        raise InputError(
            "target and draft must both be rational or both be float; "
            "use as_rational(...) on the float one for an exact audit"
        )


def as_rational(row: Array) -> Array:
    """The exact rational values of a law's entries, renormalised exactly so that they sum to 1."""
    exact = np.array([Fraction(entry) for entry in row.tolist()], dtype=object)
    return exact / exact.sum()


def inverse_cdf(row: Array, coin: Any) -> int:
    """The token a uniform ``coin`` in [0, 1) selects: the first whose cumulative mass exceeds it.

    In floats the last cumulative sum may round below the coin; then the last token with positive mass is
    returned, never index V − 1 for its own sake and never a token of probability zero.
    """
    cumulative = np.cumsum(row)
    index = int(np.argmax(cumulative > coin)) if cumulative[-1] > coin else row.size
    if index == row.size:
        index = int(np.flatnonzero(row > 0)[-1])
    return index


def _softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max())
    result: Array = weights / weights.sum()
    return result


def _as_array(row: Any, name: str) -> Array:
    if isinstance(row, np.ndarray) and row.dtype in FLOAT_KINDS:
        return row
    if isinstance(row, str) or not isinstance(row, Iterable):
        raise InputError(f"{name}: expected a sequence of probabilities, got {row!r}; see parse_law for text")
    entries = list(row)
    if any(isinstance(entry, float) for entry in entries):
        try:
            return np.array(entries, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{name}: expected one row of numbers, got {entries!r:.80}") from None
    exact = np.empty(len(entries), dtype=object)
    for place, entry in enumerate(entries):
        try:
            exact[place] = Fraction(entry)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            raise InputError(
                f"{name}: entry {place} is {entry!r}; expected a float, an integer, a Fraction or text "
                "such as '1/3' (arrays of another dtype: convert to float64 first)"
            ) from None
    return exact


def _refuse_nonfinite(array: Array, name: str) -> None:
    bad = ~np.isfinite(array)
    if bad.any():
        token = int(np.argmax(bad))
        raise InputError(
            f"{name}: token {token} has probability {array[token]} ({int(bad.sum())} such entries); "
            "probabilities must be finite (for logits use law_from_logits)"
        )


def _refuse_negative(array: Array, name: str) -> None:
    bad = array < 0
    if bad.any():
        token = int(np.argmax(bad))
        raise InputError(
            f"{name}: token {token} has probability {array[token]}; probabilities are never negative "
            "(for logits use law_from_logits)"
        )


def _check_filters(temperature: float, top_k: int | None, top_p: float | None, min_p: float | None) -> None:
    if not (math.isfinite(temperature) and temperature >= 0):
        raise InputError(f"temperature is {temperature}; it must be a finite number ≥ 0 (0 is greedy)")
    if top_k is not None and top_k < 1:
        raise InputError(f"top_k is {top_k}; it must be at least 1, or None to keep every token")
    if top_p is not None and not 0 < top_p <= 1:
        raise InputError(f"top_p is {top_p}; it must lie in (0, 1], or be None to keep every token")
    if min_p is not None and not 0 <= min_p <= 1:
        raise InputError(f"min_p is {min_p}; it must lie in [0, 1], or be None to keep every token")

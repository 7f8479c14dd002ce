"""The law of a twin, measured through its coins: parity alone would copy a bug of the reference.

For every candidate tuple each acceptance threshold and each edge of the resampling CDF is found by bisecting that
one coin; every cell of every tuple is in one batch, so a law costs 54 calls. Coins are multiples of 2^-53. Bisection
takes for granted that candidate i is accepted where its own coin is below a threshold, and that the token resampled
rises with the last coin; random coins, compared with what the thresholds say, tell where that is not so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from resispec_core.arrays import Array
from resispec_core.errors import BudgetExceededError
from resispec_core.gpu.array import Decisions
from resispec_core.gpu.numerics import UNIT
from resispec_core.gpu.status import ERRORS

RANDOM_CHECKS = 64
"""Random coins per candidate tuple; about a third of a batch on small vocabularies."""
LARGEST_COIN = 1 - 2.0**-53
MAX_ENTRIES = 2**24
"""Largest batch, in row entries: 64 MB of float32."""

Run = Callable[[Array, Array], Decisions]
"""(tokens of shape (N, n), coins of shape (N, n + 1)) to N decisions on one pair of rows, as NumPy arrays."""


class MeasuredLaw(NamedTuple):
    """``law``: (V,) float64, of the returned token. ``missed``: share of random coins at which the thresholds did not
    say what the twin did. ``nodes``: decisions asked for. ``bad``: share of those without a token."""

    law: Array
    missed: float
    nodes: int
    bad: float


def measured_law(
    run: Run, tuples: Sequence[tuple[tuple[int, ...], Any]], vocabulary: int, seed: int = 0
) -> MeasuredLaw:
    """The law of ``run`` over every candidate tuple with its weight (see ``drafts.DrawMode.tuples``).

    ``BudgetExceededError`` where one batch would hold more than ``MAX_ENTRIES`` row entries.
    """
    candidates = len(tuples[0][0])
    each = max(candidates + vocabulary - 1, RANDOM_CHECKS)
    if len(tuples) * each * vocabulary > MAX_ENTRIES:
        raise BudgetExceededError(
            f"{len(tuples)} candidate tuples over {vocabulary} tokens need batches of "
            f"{len(tuples) * each * vocabulary} entries (budget {MAX_ENTRIES}); use a smaller vocabulary or fewer "
            "candidates"
        )
    drawn = np.array([ids for ids, _ in tuples], dtype=np.int64)
    below, nodes, bad = _thresholds(run, drawn, vocabulary)
    accept, edges = below[:, :candidates], below[:, candidates:]
    law = np.zeros(vocabulary)
    for ids, (_, weight), thresholds, cuts in zip(drawn, tuples, accept, edges, strict=True):
        reach = float(weight)
        for token, threshold in zip(ids, thresholds, strict=True):
            law[token] += reach * threshold
            reach *= 1 - threshold
        if reach > 0:
            law += reach * np.diff([0.0, *cuts, 1.0])
    rng = np.random.default_rng(seed)
    which = np.repeat(np.arange(len(tuples)), RANDOM_CHECKS)
    coins = rng.integers(0, 2**53, size=(which.size, candidates + 1)) * 2.0**-53
    answer = run(drawn[which], coins)
    refused = coins[:, :candidates] >= accept[which]
    first = np.argmin(refused, axis=1)
    resampled = np.sum(coins[:, -1:] >= edges[which], axis=1)
    said = np.where(refused.all(axis=1), resampled, drawn[which, first])
    missed = float(np.mean(said != np.asarray(answer.token)))
    return MeasuredLaw(law, missed, nodes + which.size, bad)


def _thresholds(run: Run, drawn: Array, vocabulary: int) -> tuple[Array, int, float]:
    """For each tuple its n acceptance thresholds and V − 1 edges of the resampling CDF, and what finding them took."""
    count, candidates = drawn.shape
    width = candidates + vocabulary - 1
    tokens = np.repeat(drawn, width, axis=0)
    cell = np.tile(np.arange(width), count)
    place, edge = np.minimum(cell, candidates), cell - candidates
    low, high = np.zeros(cell.size, np.int64), np.full(cell.size, 2**53, np.int64)
    bad = 0
    for _ in range(54):
        middle = np.minimum((low + high) // 2, 2**53 - 1)
        coins = np.full((cell.size, candidates + 1), LARGEST_COIN)
        coins[np.arange(cell.size), place] = middle * 2.0**-53
        answer = run(tokens, coins)
        accepted, token = np.asarray(answer.accepted), np.asarray(answer.token)
        bad += int(np.count_nonzero(np.asarray(answer.status) & int(ERRORS)))
        below = np.where(place < candidates, accepted == place, (accepted >= 0) | (token <= edge))
        unsettled = low < high
        low = np.where(unsettled & below, middle + 1, low)
        high = np.where(unsettled & ~below, middle, high)
    return (low * 2.0**-53).reshape(count, width), 54 * cell.size, bad / (54 * cell.size)


def law_rounding(vocabulary: int, candidates: int) -> float:
    """Bound on the TV that the twin's arithmetic and the coins' grid add.

    Fixed-point sums and the reference's rows err by E = V·2^-55 + (32 + 4 log2 V)·2^-53 in L1. A rejection of mass m
    turns an error δ of the residual into at most 4(δ + E)/m and is reached with mass m, so n of them leave at most
    4^(n+1)·E of the law; each of the n thresholds and V − 1 edges is found to 2^-53.
    """
    error = vocabulary * UNIT + (32 + 4 * math.log2(max(vocabulary, 2))) * 2.0**-53
    return float(4.0 ** (candidates + 1) * error + (candidates + vocabulary) * 2.0**-53)

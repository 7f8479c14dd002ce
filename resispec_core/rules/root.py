"""The scalar that a chain rule solves for: a root in [1, n] of a function that changes its sign once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MAX_STEPS = 200


def root_of(
    at: Callable[[Any], tuple[Any, Any]], low: Any, high: Any, *, start: Any, noise: float | None
) -> tuple[Any, int]:
    """The root of a function that is negative below it and not above, and the evaluations it took.

    ``at``: value and slope; the slope may be rough. ``noise``: what rounding does to a value, None in rationals. In
    floats a value in [0, noise] is a root: on the safe side of it, and as close as can be told. Newton from
    ``start``, and bisection of [low, high] after a step that left it or did not halve the value; where rounding hides
    the root, or after MAX_STEPS, the end of the bracket above it.
    """
    aim = noise / 2 if noise else 0
    guess, steps, before = start, 0, None
    while steps < MAX_STEPS:
        value, slope = at(guess)
        steps += 1
        short = aim - value
        if abs(short) <= aim:
            return guess, steps
        low, high = (low, guess) if short < 0 else (guess, high)
        slow = before is not None and 2 * abs(short) > before
        newton = guess + short / slope if slope > 0 and not slow else low
        before = abs(short)
        guess = newton if low < newton < high else (low + high) / 2
        if noise and guess in (low, high):
            break
    return high, steps


def float_noise(candidates: int) -> float:
    """What sums of laws are good to over ``candidates`` stages: a few eps a stage."""
    return float(8 * candidates * np.finfo(np.float64).eps)

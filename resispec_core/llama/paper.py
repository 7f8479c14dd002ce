"""Figures of the ResiSpec paper (arXiv 2608.24411) that a table is held against, and what they imply."""

from __future__ import annotations

from typing import NamedTuple

from resispec_core.errors import InputError


class Reported(NamedTuple):
    """One reported accepted length."""

    place: str
    depth: int
    """Levels counting the root: no step yields more tokens."""
    accepted_length: float


REPORTED = (
    Reported("Table 1, ResiSpec, CNN, T = 1, d5b3", 5, 4.68),
    Reported("Table 1, SpecInfer, CNN, T = 1, d5b3", 5, 2.51),
    Reported("Table 1, ResiSpec, CNN, T = 0.6, d5b3", 5, 4.14),
    Reported("Table 1, SpecInfer, CNN, T = 0.6, d5b3", 5, 2.59),
    Reported("Table 6, ResiSpec, largest, d5b3", 5, 4.89),
    Reported("Table 6, ResiSpec, largest, d4b4", 4, 3.97),
    Reported("Table 6, SpecInfer, largest, d5b3", 5, 4.1),
    Reported("Table 6, SpecInfer, largest, d4b4", 4, 3.6),
)
TABLE_4 = (1e-10, 2e-9)
"""The range of KL that Table 4 reports, for both methods."""


def accepted_length(acceptance: float, depth: int) -> float:
    """``1 + a + a² + … + a^(depth−1)``: tokens a step at constant acceptance a a level (depth counts the root)."""
    return sum(acceptance**level for level in range(depth))


def implied_acceptance(length: float, depth: int) -> tuple[float, float]:
    """What an accepted length says about the acceptance at one node: (constant, least at the root).

    Constant: the a with ``accepted_length(a, depth) = length``. Least: a step yields more than one token with
    probability P₁, and P₁ ≥ P₂ ≥ …, so length = 1 + P₁ + … + P_{depth−1} ≤ 1 + (depth − 1)·P₁: whatever the levels do,
    the mean acceptance at the root is at least (length − 1)/(depth − 1). A mean acceptance above the mean ceiling of
    those rows needs a biased rule. Raises InputError for a length outside 1 … depth.
    """
    if depth < 2 or not 1 <= length <= depth:
        raise InputError(
            f"an accepted length at depth {depth} lies in 1 … {depth}, not {length}; depth is at least 2"
        )
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if accepted_length(middle, depth) < length else (low, middle)
    return (low + high) / 2, (length - 1) / (depth - 1)

"""Appendix B and the witness of the notes, as identities in a computer algebra system."""

from __future__ import annotations

import sympy

from .finding import Finding, Stopwatch


def _telescoped(stages: int, size: int, drop_factor: bool = False) -> bool:
    """Whether the sum of Appendix B equals p, with free symbols m_i(y) in the place of min(k_i, p_i)(y).

    The identity never uses that m_i is a minimum, so it is checked for arbitrary m_i.
    """
    left = [sympy.Symbol(f"p{y}") for y in range(size)]
    target = list(left)
    total = [sympy.Integer(0)] * size
    reach = sympy.Integer(1)
    for i in range(stages):
        m = [sympy.Symbol(f"m{i}_{y}") for y in range(size)]
        total = [t + reach * x for t, x in zip(total, m, strict=True)]
        stop = 1 - sum(m)
        left = [(a - x) / stop for a, x in zip(left, m, strict=True)]
        if not (drop_factor and i == 0):
            reach *= stop
    total = [t + reach * a for t, a in zip(total, left, strict=True)]
    return all(sympy.cancel(t - p) == 0 for t, p in zip(total, target, strict=True))


def appendix_b() -> Finding:
    """The sum of Appendix B is p for arbitrary proxies (V = 3, one to three stages)."""
    watch = Stopwatch()
    found = all(_telescoped(stages, 3) for stages in (1, 2, 3))
    planted = _telescoped(2, 3, drop_factor=True)
    return Finding(
        "appendix-b",
        "the sum of Appendix B equals p whatever the proxies are",
        "holds",
        "holds" if found else "fails",
        "one factor 1 - beta left out",
        "holds" if planted else "fails",
        None,
        watch.seconds,
    )

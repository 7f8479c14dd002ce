"""Exact residual shaping on batches: the horizon T and the chain it fixes (theory.md §5).

    r_i = clip(τ_i q, p − (T − τ_i) q, p),  S_i = Σ r_i,  τ_1 = T,  τ_{i+1} = τ_i − S_i

Any T with τ_{n+1} ≥ 0 is exact; the largest T with τ_{n+1} = 0 accepts most. τ_{n+1}(T) is non-decreasing
and piecewise linear, so a bracketed Newton iteration finds it; its slope comes with the same pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from resispec_core.gpu.numerics import UNIT, column, real, total

HORIZON_STEPS = 64
NEWTON_STEPS = 12
FLAT = 2.0**-20
"""A root met on a slope below this may not be the largest one; the search goes on to its right."""


class Chain(NamedTuple):
    """``left``: τ_1 .. τ_{n+1}; ``mass``: S_1 .. S_n; ``end``: τ_{n+1} before it was kept at ≥ 0; ``slope``."""

    left: list[Any]
    mass: list[Any]
    end: Any
    slope: Any


def clip_residual(xp: Any, p: Any, q: Any, horizon: Any, left: Any) -> Any:
    """``clip(τ q, p − (T − τ) q, p)``."""
    return xp.maximum(p - (horizon - left) * q, xp.minimum(p, left * q))


def shaped_chain(xp: Any, p: Any, q: Any, candidates: int, horizon: Any) -> Chain:
    """τ and S for a given T. S_1 is 1 by definition (r_1 = p is a law). Cost: n − 1 passes over the rows."""
    one = xp.ones_like(horizon)
    left, mass, slope = [horizon, horizon - one], [one], one
    end = left[1]
    wide = column(horizon)
    for _ in range(candidates - 1):
        tau = column(left[-1])
        floor, offered = p - (wide - tau) * q, tau * q
        residual = xp.maximum(floor, xp.minimum(p, offered))
        total_mass = real(xp, total(xp, residual))
        zero = xp.zeros_like(q)
        on_offer = real(xp, total(xp, xp.where((offered < p) & (offered > floor), q, zero)))
        on_floor = real(xp, total(xp, xp.where(floor >= offered, q, zero)))
        slope = slope * (1.0 - on_offer - on_floor) + on_floor
        end = end - total_mass
        mass.append(total_mass)
        left.append(xp.maximum(end, xp.zeros_like(end)))
    return Chain(left, mass, end, slope)


def shaped_horizon(xp: Any, p: Any, q: Any, candidates: int) -> Any:
    """T, at most 2·V·n units from the largest root or above it."""
    near = 2.0 * p.shape[-1] * candidates * UNIT
    horizon = xp.full_like(p[:, 0], float(candidates))
    low, high = xp.ones_like(horizon), horizon
    done = low > high
    for step in range(HORIZON_STEPS):
        chain = shaped_chain(xp, p, q, candidates, horizon)
        at_root = (chain.end <= near) & (chain.end >= -near)
        done = done | (at_root & ((chain.slope > FLAT) | (step == 0)))
        if bool(xp.all(done)):
            break
        low = xp.where(done | (chain.end > near), low, horizon)
        high = xp.where(done | (chain.end <= near), high, horizon)
        newton = horizon - chain.end / xp.where(chain.slope > 0, chain.slope, xp.ones_like(horizon))
        usable = (chain.slope > 0) & (newton > low) & (newton < high) & (step < NEWTON_STEPS)
        proposed = xp.where(usable, newton, 0.5 * (low + high))
        horizon = xp.where(done, horizon, proposed)
    return xp.where(done, horizon, high)

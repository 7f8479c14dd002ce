"""The steps of GetProxy one by one, on batches: what the paper's latency breakdown profiles.

The fused kernels never form these rows; the pieces exist to be timed and inspected. Arrays are float64 laws of shape
(N, V) of any namespace, ``token`` the rejected ids, (N,) int64. Names and order follow ``rules.resispec``'s
``ProxyShaping``; the arithmetic is the GPU path's (integer sums). Source: ResiSpec (2608.24411), Algorithm 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from resispec_core.gpu.config import check_rule
from resispec_core.gpu.levels import fill_level
from resispec_core.gpu.numerics import column, gather, namespace, real, total


class Shaping(NamedTuple):
    """One GetProxy call; rows (N, V), scalars (N,)."""

    budget: Any
    projected: Any
    deficit: Any
    residual_mass: Any
    proxy: Any


def budgeting(target: Any, draft: Any, token: Any, budget: str = "local") -> Any:
    """Z = q(x₀) − p(x₀), or Eq. 13's larger of it and min_{q>0} p/q. Cost: two entries, or one pass."""
    xp = namespace(target)
    local = _at(draft, token) - _at(target, token)
    if budget == "local":
        return local
    drafted, two = draft > 0, xp.full_like(draft, 2.0)
    ratio = xp.minimum(target, two * draft) / xp.where(drafted, draft, xp.ones_like(draft))
    return xp.maximum(xp.min(xp.where(drafted, ratio, two), axis=-1), xp.abs(local))


def projection(target: Any, draft: Any, token: Any, size: Any) -> Any:
    """min(Z·q, p), 0 at the rejected token."""
    xp = namespace(target)
    return _without(xp.minimum(column(size) * draft, target), token)


def redistribution(
    target: Any, draft: Any, token: Any, size: Any, projected: Any, how: str = "proportional"
) -> Any:
    """r: the deficit Z − Σ projected handed to the remaining capacity, never to the rejected token."""
    xp = namespace(target)
    check_rule("resispec", how, "local")
    capacity, weights = _without(target, token), _without(draft, token)
    attainable = xp.minimum(size, real(xp, total(xp, capacity)))
    missing = xp.maximum(attainable - real(xp, total(xp, projected)), xp.zeros_like(size))
    room = capacity - projected
    if how == "proportional":
        return projected + column(_ratio(missing, real(xp, total(xp, room)))) * room
    if how == "uniform":
        level = fill_level(xp, None, room, start=0.0, wanted=missing)
        return projected + xp.minimum(column(level.height), room)
    # Levels are sought at unit scale, where 2^-55 is fine enough whatever the budget.
    inverse = column(_ratio(xp.ones_like(size), attainable))
    level = fill_level(
        xp,
        weights,
        xp.minimum(capacity * inverse, xp.ones_like(capacity)),
        start=1.0,
        wanted=xp.ones_like(size),
    )
    filled = xp.where(
        weights > 0, xp.minimum(column(level.height * attainable) * weights, capacity), 0 * capacity
    )
    undrafted = xp.where(weights == 0, capacity, xp.zeros_like(capacity))
    share = _ratio(level.unmet * attainable, real(xp, total(xp, undrafted)))
    return filled + column(share) * undrafted


def proxy_formulation(target: Any, draft: Any, token: Any, residual_mass: Any) -> Any:
    """k = p − r, and q(x₀) at the rejected token."""
    xp = namespace(target)
    ids = xp.arange(target.shape[-1], dtype=token.dtype)[None, :]
    return xp.where(ids == column(token), column(_at(draft, token)) + 0 * target, target - residual_mass)


def get_proxy(
    target: Any, draft: Any, token: Any, how: str = "proportional", budget: str = "local"
) -> Shaping:
    """All four steps."""
    xp = namespace(target)
    size = budgeting(target, draft, token, budget)
    projected = projection(target, draft, token, size)
    mass = redistribution(target, draft, token, size, projected, how)
    proxy = proxy_formulation(target, draft, token, mass)
    return Shaping(size, projected, size - real(xp, total(xp, projected)), mass, proxy)


def _at(rows: Any, token: Any) -> Any:
    return gather(namespace(rows), rows, column(token))[:, 0]


def _without(rows: Any, token: Any) -> Any:
    xp = namespace(rows)
    ids = xp.arange(rows.shape[-1], dtype=token.dtype)[None, :]
    return xp.where(ids == column(token), xp.zeros_like(rows), rows)


def _ratio(numerator: Any, denominator: Any) -> Any:
    """The quotient, 0 where the denominator is 0."""
    xp = namespace(numerator)
    safe = xp.where(denominator > 0, denominator, xp.ones_like(denominator))
    return xp.where(denominator > 0, numerator / safe, xp.zeros_like(safe))

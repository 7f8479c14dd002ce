"""The rules as closed forms on a batch: a few scalars a node instead of residual rows.

Standard rule: after k rejections R = max(p − s·q, 0)/N; a rejection does s ← s + N, N ← Σ max(p − s·q, 0).
Published ResiSpec: with M the product of the budgets, R(x) = p(x)/M for every token that could still be
rejected, so the accept tests read p and q at the candidates only; the row is built once, at the end, by
replaying the rounds' scalars.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from resispec_core.gpu.levels import fill_level
from resispec_core.gpu.numerics import UNIT_BITS, column, real, total
from resispec_core.gpu.shaping import clip_residual, shaped_chain, shaped_horizon

LEAST_SCALE = 1e-300
"""A product of budgets below this is treated as zero: its reciprocal could overflow."""
MAX_CANDIDATES = 8


@dataclass(frozen=True)
class Batch:
    """What the rules compute on: float64 laws (N, V), and the entries at the candidates (N, b)."""

    xp: Any
    p: Any
    q: Any
    tokens: Any
    coins: Any
    p_at: Any
    q_at: Any

    @property
    def candidates(self) -> int:
        return int(self.tokens.shape[1])


class Verdict(NamedTuple):
    """What a rule leaves for ``array.verify`` to finish; every field has one entry (or row) a node."""

    accepted: Any
    """int64, −1 where all were rejected."""
    weights: Any
    """(N, V) float64: the residual up to scale, used where all were rejected."""
    last_resort: Any
    """int64 token where ``weights`` has no mass."""
    fell_back: Any
    """bool: a residual came out empty on the way and the one before it was kept."""


def run_rule(batch: Batch, rule: str, redistribution: str, budget: str) -> tuple[Verdict, Any]:
    """The verdict, and where the candidates' entries alone decided (stage A of the kernels)."""
    if rule == "deterministic":
        verdict = _deterministic(batch)
        return verdict, verdict.accepted >= 0
    if rule == "resispec":
        verdict = _resispec(batch, redistribution, budget)
        return verdict, (verdict.accepted >= 0 if budget == "local" else verdict.accepted == 0)
    if rule == "shaped" and batch.candidates > 1:
        return _shaped(batch), batch.p_at[:, 0] != batch.p_at[:, 0]
    return _specinfer(batch), _specinfer_settled(batch)


def _specinfer(b: Batch) -> Verdict:
    xp = b.xp
    accepted = xp.full_like(b.tokens[:, 0], -1)
    scale, mass = xp.zeros_like(b.p_at[:, 0]), xp.ones_like(b.p_at[:, 0])
    fell_back = accepted >= 0
    for i in range(b.candidates):
        left = xp.maximum(b.p_at[:, i] - scale * b.q_at[:, i], xp.zeros_like(scale))
        take = (accepted < 0) & (b.coins[:, i] * b.q_at[:, i] * mass < left)
        accepted = xp.where(take, xp.full_like(accepted, i), accepted)
        further = scale + mass
        rest = xp.minimum(real(xp, total(xp, _excess(xp, b, further))), xp.ones_like(mass))
        fell_back = fell_back | ((accepted < 0) & (rest == 0))
        scale, mass = xp.where(rest > 0, further, scale), xp.where(rest > 0, rest, mass)
    return Verdict(accepted, _excess(xp, b, scale), xp.full_like(accepted, -1), fell_back)


def _excess(xp: Any, b: Batch, scale: Any) -> Any:
    return xp.maximum(b.p - column(scale) * b.q, xp.zeros_like(b.p))


def _specinfer_settled(b: Batch) -> Any:
    """Candidate 1 by its own test; a later one where N ≤ 1 and s ≤ i already decide, all before it surely out."""
    settled = b.coins[:, 0] * b.q_at[:, 0] < b.p_at[:, 0]
    surely_out = ~settled
    for i in range(1, b.candidates):
        p, q = b.p_at[:, i], b.q_at[:, i]
        settled = settled | (surely_out & (b.coins[:, i] * q < p - float(i) * q))
        surely_out = surely_out & (p <= q)
    return settled


def _rejected_before(b: Batch, i: int, rejected: list[Any]) -> Any:
    """Where candidate i repeats one that was rejected before it."""
    seen = b.tokens[:, i] != b.tokens[:, i]
    for j in range(i):
        seen = seen | (rejected[j] & (b.tokens[:, j] == b.tokens[:, i]))
    return seen


def _without(b: Batch, rows: Any, rejected: list[Any]) -> Any:
    """``rows`` with the entries of the rejected candidates set to zero."""
    xp = b.xp
    ids = xp.arange(rows.shape[-1], dtype=b.tokens.dtype)[None, :]
    for j, gone in enumerate(rejected):
        rows = xp.where(column(gone) & (ids == b.tokens[:, j : j + 1]), xp.zeros_like(rows), rows)
    return rows


def _last_resort(b: Batch, rejected: list[Any]) -> Any:
    """The last rejected candidate with target mass: all that the last non-empty residual holds."""
    last = b.xp.full_like(b.tokens[:, 0], -1)
    for j, gone in enumerate(rejected):
        last = b.xp.where(gone & (b.p_at[:, j] > 0), b.tokens[:, j], last)
    return last


def _deterministic(b: Batch) -> Verdict:
    xp = b.xp
    accepted = xp.full_like(b.tokens[:, 0], -1)
    mass = xp.ones_like(b.p_at[:, 0])
    zero = xp.zeros_like(mass)
    rejected: list[Any] = []
    for i in range(b.candidates):
        owed = xp.where(_rejected_before(b, i, rejected), zero, b.p_at[:, i])
        take = (accepted < 0) & (b.coins[:, i] * mass < owed)
        accepted = xp.where(take, xp.full_like(accepted, i), accepted)
        rejected.append(accepted < 0)
        mass = xp.maximum(mass - owed, zero)
    never = accepted != accepted
    return Verdict(accepted, _without(b, b.p, rejected), _last_resort(b, rejected), never)


@dataclass(frozen=True)
class Round:
    """One rejection of the published rule."""

    rejected: Any
    """bool: the round changed the residual (False after an acceptance or an empty budget)."""
    budget: Any
    """Z, 1 where the round did not count."""
    held: Any
    """Mass of r: Z, or what the other tokens hold if that is less; 1 where it did not count."""


def _resispec(b: Batch, redistribution: str, budget: str) -> Verdict:
    xp = b.xp
    accepted = xp.full_like(b.tokens[:, 0], -1)
    product = xp.ones_like(b.p_at[:, 0])
    zero, one = xp.zeros_like(product), xp.ones_like(product)
    fell_back, touched = accepted >= 0, accepted >= 0
    rounds: list[Round] = []
    for i in range(b.candidates):
        q = b.q_at[:, i]
        repeat = _rejected_before(b, i, [r.rejected for r in rounds])
        owed = xp.where(repeat, zero, b.p_at[:, i])
        take = (accepted < 0) & (b.coins[:, i] * q * product < owed)
        accepted = xp.where(take, xp.full_like(accepted, i), accepted)
        size = q - owed / product
        held = size
        if budget == "eq13":
            size = xp.where(touched, size, xp.maximum(size, _least_ratio(b)))
            held = xp.where(touched, size, xp.minimum(size, 1.0 - owed))
        counts = (accepted < 0) & (q - owed / product > 0) & (product * held >= LEAST_SCALE)
        fell_back = fell_back | ((accepted < 0) & ~counts)
        touched = touched | counts
        product = xp.where(counts, product * held, product)
        rounds.append(Round(counts, xp.where(counts, size, one), xp.where(counts, held, one)))
    rejected = [r.rejected for r in rounds]
    if redistribution == "waterfill":
        weights = _waterfill(b, product, touched, rejected)
    else:
        weights = _replay(b, rounds, redistribution)
    return Verdict(accepted, weights, _last_resort(b, rejected), fell_back)


def _least_ratio(b: Batch) -> Any:
    xp = b.xp
    drafted = b.q > 0
    two = xp.full_like(b.q, 2.0)
    ratio = xp.minimum(b.p, two * b.q) / xp.where(drafted, b.q, xp.ones_like(b.q))
    return xp.min(xp.where(drafted, ratio, two), axis=-1)


def _waterfill(b: Batch, product: Any, touched: Any, rejected: list[Any]) -> Any:
    """``min(a·q, p/M)`` off the rejected tokens with total one; what is left goes to undrafted tokens."""
    xp = b.xp
    p = _without(b, b.p, rejected)
    q = _without(b, b.q, rejected)
    room = xp.minimum(p * column(1.0 / product), xp.ones_like(p))
    undrafted = xp.where(b.q == 0, p, xp.zeros_like(p))
    level = fill_level(xp, q, room, start=1.0, wanted=xp.ones_like(product))
    filled = xp.minimum(column(level.height) * q, room)
    filled = xp.where(q > 0, filled, xp.zeros_like(filled))
    spare = total(xp, undrafted)
    share = level.unmet / xp.where(spare > 0, real(xp, spare), xp.ones_like(product))
    rest = xp.where(column(spare > 0), undrafted * column(share), xp.zeros_like(p))
    return xp.where(column(touched), filled + rest, b.p)


def _replay(b: Batch, rounds: list[Round], redistribution: str) -> Any:
    """The residual row, one round after another: r/Z = m + redistribution with m = min(q·Z/held, R/held)."""
    xp = b.xp
    residual = b.p
    gone: list[Any] = []
    for step in rounds:
        gone.append(step.rejected)
        scaled = residual * column(1.0 / step.held)
        wanted = b.q * column(step.budget / step.held)
        base = _without(b, xp.minimum(wanted, scaled), gone)
        filled = total(xp, base)
        missing = real(xp, 2**UNIT_BITS - filled)
        missing = xp.maximum(missing, xp.zeros_like(missing))
        if redistribution == "proportional":
            room = real(xp, total(xp, _without(b, residual, gone))) - step.held * real(xp, filled)
            one = xp.ones_like(room)
            share = step.held * missing / xp.where(room > 0, room, one)
            share = xp.where(room > 0, xp.minimum(share, one), xp.zeros_like(room))
            shaped = base + column(share) * (scaled - base)
        else:
            room = xp.minimum(_without(b, scaled - base, gone), xp.ones_like(base))
            level = fill_level(xp, None, room, start=0.0, wanted=missing)
            shaped = base + xp.minimum(column(level.height), scaled - base)
        residual = xp.where(column(step.rejected), _without(b, shaped, gone), residual)
    return residual


def _shaped(b: Batch) -> Verdict:
    """Accept x_i with probability (r_i − r_{i+1})/(S_i q) at x_i; after the last, sample r(τ_{n+1})."""
    xp = b.xp
    n = b.candidates
    horizon = shaped_horizon(xp, b.p, b.q, n)
    chain = shaped_chain(xp, b.p, b.q, n, horizon)
    accepted = xp.full_like(b.tokens[:, 0], -1)
    for i in range(n):
        p, q = b.p_at[:, i], b.q_at[:, i]
        now = clip_residual(xp, p, q, horizon, chain.left[i])
        after = clip_residual(xp, p, q, horizon, chain.left[i + 1])
        take = (accepted < 0) & (b.coins[:, i] * chain.mass[i] * q < now - after)
        accepted = xp.where(take, xp.full_like(accepted, i), accepted)
    weights = clip_residual(xp, b.p, b.q, column(horizon), column(chain.left[n]))
    empty = total(xp, weights) == 0
    fell_back = empty
    for i in range(n - 1, -1, -1):
        earlier = clip_residual(xp, b.p, b.q, column(horizon), column(chain.left[i]))
        weights = xp.where(column(empty), earlier, weights)
        empty = empty & (total(xp, earlier) == 0)
    return Verdict(accepted, weights, xp.full_like(accepted, -1), fell_back)

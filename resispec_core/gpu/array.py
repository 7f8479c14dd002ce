"""The verification rules on whole batches, for any array namespace: the readable GPU reference.

``verify`` runs a rule on N nodes at once and returns the same bits as the fused kernels (``fused``), whatever
the namespace. ``api`` has the named rules with checks; argument order is the reference's:

- ``target``, ``draft``: (N, V) rows; ``tokens``: (N, b) int64 candidate ids, 1 ≤ b ≤ 8;
- ``coins``: (N, b + 1) float64 uniforms in [0, 1): coin i decides candidate i, the last one resamples.

Closed forms (gpu.md's, proved in docs/gpu.md) replace the residual rows of the reference by a few scalars a
node. Cost: O(V) a stage where rows are needed; memory a few (N, V) float64 arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from resispec_core.gpu.numerics import cast, column, draw, gather, namespace
from resispec_core.gpu.rows import Policy, Side, side
from resispec_core.gpu.sequential import Batch, Verdict, run_rule
from resispec_core.gpu.status import NodeStatus


class Decisions(NamedTuple):
    """One entry per node."""

    accepted: Any
    """int64 index of the accepted candidate, −1 where all were rejected (or the node is bad)."""
    token: Any
    """int64 token id, −1 for a bad node."""
    status: Any
    """int32 ``NodeStatus``."""


def verify(
    rule: str,
    target: Any,
    draft: Any,
    tokens: Any,
    coins: Any,
    *,
    redistribution: str = "proportional",
    budget: str = "local",
    target_norm: Any = None,
    draft_norm: Any = None,
    policy: Policy | None = None,
) -> Decisions:
    """Runs ``rule`` on arrays that already passed ``checks.checked`` (which names what is wrong with them)."""
    policy = policy or Policy()
    xp = namespace(target)
    vocabulary = target.shape[-1]
    bad_id = (tokens < 0) | (tokens >= vocabulary)
    bad_coin = ~((coins >= 0) & (coins < 1))
    tokens = xp.where(bad_id, xp.zeros_like(tokens), tokens)
    coins = xp.where(bad_coin, xp.zeros_like(coins), coins)
    sides = [side(xp, target, target_norm, policy, target=True)]
    norms = [target_norm]
    if rule != "deterministic":
        sides.append(side(xp, draft, draft_norm, policy, target=False))
        norms.append(draft_norm)
    p, q = sides[0].law, sides[-1].law
    batch = Batch(xp, p, q, tokens, coins, gather(xp, p, tokens), gather(xp, q, tokens))
    verdict, settled = run_rule(batch, rule, redistribution, budget)
    everything = policy.validate == "all" or (policy.kind == "logits" and any(norm is None for norm in norms))
    status = cast(xp, xp.any(bad_id, axis=-1), xp.int32) * int(NodeStatus.CANDIDATE)
    status = status + cast(xp, xp.any(bad_coin, axis=-1), xp.int32) * int(NodeStatus.COIN)
    status = xp.where(status == 0, _row_status(xp, sides, tokens, settled, everything), status)
    return _finish(batch, verdict, status)


def _row_status(xp: Any, sides: list[Side], tokens: Any, settled: Any, everything: bool) -> Any:
    """What is wrong with the entries a node read: those at its candidates, then the rows unless settled."""
    rows = sides[0].row_flags(xp)
    entries = sides[0].candidate_flags(xp, tokens)
    for other in sides[1:]:
        rows = rows + other.row_flags(xp)
        entries = entries + other.candidate_flags(xp, tokens)
    if everything:
        return rows
    return xp.where((entries != 0) | settled, entries, rows)


def _finish(batch: Batch, verdict: Verdict, status: Any) -> Decisions:
    """Resamples where every candidate was rejected, and blanks the nodes that have no answer."""
    xp = batch.xp
    none = xp.full_like(verdict.accepted, -1)
    drawn, mass = draw(xp, verdict.weights, batch.coins[:, -1])
    rejected = verdict.accepted < 0
    drawn = xp.where(mass > 0, drawn, verdict.last_resort)
    taken = xp.where(rejected, xp.zeros_like(none), verdict.accepted)
    chosen = gather(xp, batch.tokens, column(taken))[:, 0]
    token = xp.where(rejected, drawn, chosen)
    fallback = rejected & (verdict.fell_back | (mass == 0))
    status = xp.where(status == 0, cast(xp, fallback, xp.int32) * int(NodeStatus.FALLBACK), status)
    bad = status > int(NodeStatus.FALLBACK)
    return Decisions(xp.where(bad, none, verdict.accepted), xp.where(bad, none, token), status)

"""Two rules in eager torch, one node after another, written the way published implementations are.

The baseline of the benchmark, not a verifier to use: float32 arithmetic, a host decision per candidate, a fresh
residual row per rejection. Works on any torch device.
"""

from __future__ import annotations

from typing import Any


def verify(rule: str, target: Any, draft: Any, tokens: Any, coins: Any) -> tuple[list[int], list[int]]:
    """(accepted, token) of every node. ``rule``: ``specinfer`` or ``resispec`` (proportional)."""
    step = {"specinfer": _reject_specinfer, "resispec": _reject_proportional}[rule]
    accepted, chosen = [], []
    for node in range(target.shape[0]):
        residual, q = target[node].float(), draft[node].float()
        for i, x in enumerate(tokens[node].tolist()):
            if (coins[node, i] * q[x] < residual[x]).item():
                accepted.append(i)
                chosen.append(x)
                break
            residual = step(residual, q, x)
        else:
            accepted.append(-1)
            cumulative = residual.double().cumsum(0)
            chosen.append(int((cumulative <= coins[node, -1] * cumulative[-1]).sum().item()))
    return accepted, chosen


def _reject_specinfer(residual: Any, q: Any, x: int) -> Any:
    del x
    rest = (residual - q).clamp(min=0)
    return rest / rest.sum()


def _reject_proportional(residual: Any, q: Any, x: int) -> Any:
    budget = q[x] - residual[x]
    capacity = residual.clone()
    capacity[x] = 0
    projected = (budget * q).minimum(capacity)
    room = capacity - projected
    shaped = projected + (budget - projected.sum()) / room.sum() * room
    return shaped / shaped.sum()

"""Accept when the target's own draw is among the candidates."""

from __future__ import annotations

from typing import ClassVar

from resispec_core.arrays import Array, normalise, without
from resispec_core.rules.base import SequentialRule, Stage


class TargetMatch(SequentialRule):
    """Draws the token from p and accepts when it is one of the candidates.

    Written candidate by candidate: accept x with R(x), then R(x) := 0, renormalised. The returned token is
    the target's own draw, so the rule is exact for candidates chosen in any way at all, even dependent on
    one another; it is often called biased because it never divides by q. It accepts less than a rule that
    knows q: at n i.i.d. candidates Σ p(x)(1 − (1 − q(x))^n).

    Exact. Cost: O(1) a candidate. Source: folklore; the sampling form of lookup and assisted decoding.
    proofs/formal: ``target_match_exact``, ``target_match_acceptance`` and ``deterministic_exact``.
    """

    name = "target-match"
    draws: ClassVar[tuple[str, ...]] = ("iid", "without-replacement", "top-k", "greedy")
    summary = "sample from the target; accept when that token was drafted"
    batched = True
    residual_uses_token = True

    def accept(self, stage: Stage) -> Array:
        return stage.residual

    def reject(self, stage: Stage, token: Array) -> Array:
        return normalise(without(stage.residual, token), fallback=stage.residual)


class Deterministic(TargetMatch):
    """Candidates that are no draws at all (top-k children, retrieved tokens): target-match on a fixed set.

    Exact; acceptance p(S), which is the ceiling (proofs/formal: ``deterministic_exact``,
    ``deterministic_acceptance`` and ``deterministic_ceiling``). Dividing by the draft probability instead is the most
    common fault in this setting. Source: EAGLE-2 (2406.16858); REST (2311.08252); Token Recycling (2408.08696).
    """

    name = "deterministic"
    draws = ("top-k",)
    summary = "fixed candidates (EAGLE-2, lookup): accept with R(x), then remove x"

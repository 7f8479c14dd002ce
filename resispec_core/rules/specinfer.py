"""Recursive rejection sampling, the verifier of SpecInfer and its relatives."""

from __future__ import annotations

from typing import ClassVar

from resispec_core.arrays import Array, normalise, positive_part
from resispec_core.rules.base import SequentialRule, Stage, acceptance_ratio


class SpecInfer(SequentialRule):
    """Accepts candidate x with min(1, R(x)/D(x)); after a rejection the target is norm((R − D)+).

    D is the law the candidate was drawn from given those before it. So one rule covers SpecInfer (i.i.d.),
    Sequoia, MCSD and EAGLE-1 (without replacement), EAGLE-2 and lookup drafts (deterministic: D is a
    point mass) and the greedy draft of Hu et al.; with one candidate it is speculative sampling
    (Leviathan et al.; Chen et al.).

    Exact when the candidates really are drawn from D. Cost: O(V) a stage.
    proofs/formal: ``recursive_exact``, ``specinfer_published_exact`` and ``without_replacement_exact``.
    Source: SpecInfer (2305.09781), Algorithm 2; Sequoia (2402.12374), Algorithm 2.
    """

    name = "specinfer"
    draws: ClassVar[tuple[str, ...]] = ("iid", "without-replacement", "top-k", "greedy")
    summary = "recursive rejection: min(1, R/D), then norm((R - D)+)"
    batched = True
    residual_uses_token = False

    def accept(self, stage: Stage) -> Array:
        return acceptance_ratio(stage.residual, stage.draft)

    def reject(self, stage: Stage, token: Array) -> Array:
        return normalise(positive_part(stage.residual - stage.draft), fallback=stage.residual)

"""The paper's own exactness check (Appendix B.1), and why it cannot fail.

It fixes one realised chain of proxies k₁ … kₙ and adds up
``min(k₁, p) + (1 − β₁)·min(k₂, p₂) + … + Π(1 − βᵢ)·p_{n+1}``. By induction from the last term this telescopes to p
for any non-negative k at all, a random one included: it says nothing about a rule. The law that matters
sums over every candidate tuple and path, with the proxy that *that path* builds (``audit.enumerate``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from resispec_core.arrays import Array, normalise, positive_part
from resispec_core.audit.distances import kl_divergence
from resispec_core.drafts import DrawMode
from resispec_core.rules.base import SequentialRule, Stage
from resispec_core.rules.resispec import ResiSpec


def paper_check_law(target: Array, proxies: Sequence[Array]) -> Array:
    """The sum of Appendix B.1 for one chain of proxies; equals ``target`` for any non-negative proxies."""
    law = 0 * target
    remaining = target.sum()
    residual = target
    for proxy in proxies:
        overlap = np.minimum(proxy, residual)
        law = law + remaining * overlap
        remaining = remaining * (1 - overlap.sum())
        residual = normalise(positive_part(residual - overlap), fallback=residual)
    return law + remaining * residual


def paper_check_kl(target: Array, proxies: Sequence[Array]) -> float:
    """KL(target ‖ Appendix B.1 sum) in nats: rounding, whatever the proxies. Not evidence of exactness."""
    return kl_divergence(target, paper_check_law(target, proxies))


def realised_proxies(
    rule: SequentialRule,
    target: Array,
    draft: Array,
    rejected: Sequence[int],
    candidates: int,
    mode: DrawMode,
) -> list[Array]:
    """The chain the check is run on: the draft law first, then what each rejection of one path builds.

    For the published rule that is its proxy; for other rules, the law the next candidate is drawn from.
    """
    drawn = np.array(rejected, dtype=int)
    plan = rule.plan(target, draft, candidates)
    residual = target
    chain = [mode.conditional(draft, drawn[:0], candidates)]
    for index, token in enumerate(rejected):
        row = mode.conditional(draft, drawn[:index], candidates)
        stage = Stage(target, row, residual, index, candidates, plan)
        if isinstance(rule, ResiSpec):
            chain.append(rule.shape(residual, row, np.array(token)).proxy)
        elif index + 1 < candidates:
            chain.append(mode.conditional(draft, drawn[: index + 1], candidates))
        residual = rule.reject(stage, np.array(token))
    return chain

"""Speculative sampling with one candidate."""

from __future__ import annotations

from resispec_core.arrays import Array
from resispec_core.errors import InputError
from resispec_core.rules.specinfer import SpecInfer


class SingleDraft(SpecInfer):
    """Accepts the one candidate x with min(1, p(x)/q(x)), else samples from norm((p − q)+).

    Exact; acceptance Σ min(p, q) = 1 − TV(p, q), which is the ceiling. Cost: O(V) on a rejection, else O(1).
    proofs/formal: ``single_draft_exact``, ``single_draft_acceptance``.
    Source: Leviathan et al. (2211.17192), Algorithm 1; Chen et al. (2302.01318), Theorem 1.
    """

    name = "single-draft"
    draws = ("iid",)
    summary = "speculative sampling with one candidate: min(1, p/q), then norm((p - q)+)"

    def plan(self, target: Array, draft: Array, candidates: int) -> None:
        if candidates != 1:
            raise InputError(
                f"single-draft verifies one candidate, not {candidates}; use specinfer for several"
            )

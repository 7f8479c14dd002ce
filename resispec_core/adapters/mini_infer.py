"""mini-infer: ``speculative.verifier.speculative_step``, drafter and verifier together."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any

from resispec_core.adapters.base import Audited, logits_of, sequence_audit
from resispec_core.audit.replay.engine import Model

DISTRIBUTION = "mini-infer"


def step_function(drafted: int) -> Callable[..., Any]:
    """The library's step on models that read a Markov table."""
    speculative_step = import_module("mini_infer.speculative.verifier").speculative_step

    def step(target_model: Model, draft_model: Model, prefix: Any, rng: Any) -> Any:
        del rng
        target = lambda ids: (logits_of(target_model, ids), None)  # noqa: E731
        draft = lambda ids: (logits_of(draft_model, ids), None)  # noqa: E731
        return speculative_step(target, draft, prefix[None], k_draft=drafted, temperature=1.0)[0]

    return step


def audit() -> list[Audited]:
    """Every audited function, with the installed version."""
    version = metadata.version(DISTRIBUTION)
    return [
        Audited(
            DISTRIBUTION,
            version,
            "speculative.verifier.speculative_step",
            f"{drafted} drafted",
            sequence_audit(step_function(drafted), drafted, "mini-infer speculative_step"),
        )
        for drafted in (1, 2)
    ]

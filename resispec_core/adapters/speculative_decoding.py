"""speculative-decoding (lucidrains): the whole decode loop, ``speculative_decoding``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any

from resispec_core.adapters.base import Audited, logits_of, sequence_audit
from resispec_core.audit.replay.engine import Model

DISTRIBUTION = "speculative-decoding"


def decode(tokens: int, gamma: int) -> Callable[..., Any]:
    """A ``step`` that decodes ``tokens`` tokens with the library's loop; the caches are empty."""
    import torch

    speculative_decoding = import_module("speculative_decoding.speculative_decoding").speculative_decoding

    def network(model: Model) -> Callable[..., Any]:
        def run(ids: Any, seq_start_pos: Any = None, cache: Any = None, return_cache: bool = False) -> Any:
            del seq_start_pos, cache, return_cache
            return logits_of(model, ids), (torch.zeros(1, 1, ids.shape[-1], 1), None)

        return run

    def step(target_model: Model, draft_model: Model, prefix: Any, rng: Any) -> Any:
        del rng
        length = len(prefix) + tokens
        found, _ = speculative_decoding(
            network(target_model), network(draft_model), prefix[None], length, gamma=gamma, filter_thres=0.0
        )
        return found[0]

    return step


def audit() -> list[Audited]:
    """Every audited function, with the installed version."""
    version = metadata.version(DISTRIBUTION)
    return [
        Audited(
            DISTRIBUTION,
            version,
            "speculative_decoding",
            f"{tokens} tokens, {gamma} drafted a step",
            sequence_audit(decode(tokens, gamma), tokens - 1, "speculative_decoding"),
        )
        for tokens, gamma in ((1, 1), (2, 1), (2, 2))
    ]

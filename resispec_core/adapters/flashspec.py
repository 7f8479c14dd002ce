"""flashspec: ``sampling.rejection_sample`` and ``rejection_step``, and the lossy ``typical_sample`` beside them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any

from resispec_core.adapters.base import Audited, drafted_rows, sequence_audit
from resispec_core.audit.replay.engine import Model

DISTRIBUTION = "flashspec"
TYPICAL_P = 0.5
"""Wider than the library's 0.9, whose typical set holds no token of the audited table (and then nothing is lost)."""


def step_function(name: str, drafted: int) -> Callable[..., Any]:
    """A ``step`` around one of the three functions; a full acceptance without a bonus adds no token."""
    import torch

    sampling = import_module("flashspec.sampling")
    rejection = import_module("flashspec.sampling.rejection")

    def step(target_model: Model, draft_model: Model, prefix: Any, rng: Any) -> Any:
        del rng
        tokens, draft_rows, target_rows = drafted_rows(target_model, draft_model, prefix, drafted)
        ids = torch.tensor([tokens])
        q, p = draft_rows.log().float()[None], target_rows.log().float()[None]
        if name == "rejection_step":
            count, last = rejection.rejection_step(ids, q, p)[0].tolist()
            return [*tokens[:count], last]
        if name == "rejection_sample":
            accepted = rejection.rejection_sample(prefix[None], q, p[:, :drafted], ids, drafted)[0][
                0
            ].tolist()
        else:
            accepted = sampling.typical_sample(q, p[:, :drafted], ids, drafted, TYPICAL_P)[0][0].tolist()
        return [token for token in accepted if token >= 0]

    return step


def audit() -> list[Audited]:
    """Every audited function, with the installed version."""
    version = metadata.version(DISTRIBUTION)
    found = []
    for name in ("rejection_sample", "rejection_step", "typical_sample"):
        for drafted in (1, 2):
            lossy = name == "typical_sample"
            report = sequence_audit(step_function(name, drafted), drafted, f"flashspec {name}", lossy=lossy)
            found.append(Audited(DISTRIBUTION, version, name, f"{drafted} drafted", report))
    return found

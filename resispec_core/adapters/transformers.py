"""transformers: the verification step of assisted generation, ``generation.utils._speculative_sampling``.

The adapter drafts from a Markov table, builds the logits that the function takes (logarithms of the rows) and
returns its tokens; everything after the draft is the library's own code.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

from resispec_core.adapters.base import Audited
from resispec_core.audit.replay import ReplayReport, draw, replay_step
from resispec_core.audit.replay.engine import Model
from resispec_core.audit.replay.tables import hard_pair

DISTRIBUTION = "transformers"
FUNCTION = "generation.utils._speculative_sampling"


def speculative_step(drafted: int, dtype: Any = None) -> Callable[..., Any]:
    """A ``step`` that drafts ``drafted`` tokens and lets transformers verify them in ``dtype`` (default float32)."""
    import torch
    from transformers.generation.utils import _speculative_sampling

    dtype = dtype or torch.float32

    def step(target_model: Model, draft_model: Model, prefix: Any, rng: Any) -> Any:
        del rng
        tokens = tuple(prefix.tolist())
        draft_rows, target_rows = [], [target_model(tokens)]
        for _ in range(drafted):
            row = draft_model(tokens)
            draft_rows.append(row)
            tokens = (*tokens, draw(row.tolist()))
            target_rows.append(target_model(tokens))
        chosen, _ = _speculative_sampling(
            torch.tensor([tokens], dtype=torch.int64),
            torch.stack(draft_rows).log().to(dtype)[None],
            drafted,
            torch.stack(target_rows).log().to(dtype)[None],
        )
        return chosen[0]

    return step


def audit_speculative(
    drafted: int, *, dtype: str = "float32", vocabulary: int = 3, start: int | None = None, grid: bool = False
) -> ReplayReport:
    """Replay of the function on ``tables.hard_pair``, whose target masks token 1 after token V − 1.

    ``start``: the token before the first draft. float16 and bfloat16 are meant for grid mode.
    """
    import torch

    target, draft = hard_pair(vocabulary)
    return replay_step(
        speculative_step(drafted, getattr(torch, dtype)),
        target,
        draft,
        prompt=() if start is None else (start,),
        horizon=drafted + 1,
        extend="target",
        library="torch",
        numbers="float64" if dtype == "float64" else "float32",
        precision=dtype,
        grid=grid,
        name=f"transformers {FUNCTION}",
    )


def audit() -> list[Audited]:
    """Every audited function, with the installed version."""
    version = metadata.version(DISTRIBUTION)
    found = []
    for dtype in ("float64", "float32"):
        for drafted in (1, 2):
            setting = f"{dtype}, {drafted} drafted"
            found.append(
                Audited("transformers", version, FUNCTION, setting, audit_speculative(drafted, dtype=dtype))
            )
    # At u = 0 the comparison u <= 0 holds, so the grid gives a masked token mass q(x) times P(u = 0).
    for dtype in ("float32", "float16", "bfloat16"):
        report = audit_speculative(1, dtype=dtype, start=2, grid=True)
        found.append(
            Audited(
                "transformers",
                version,
                FUNCTION,
                f"{dtype}, 1 drafted, a masked token, real coin grid",
                report,
            )
        )
    return found

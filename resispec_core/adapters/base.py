"""What an adapter returns: one audited function with its version and verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from resispec_core.audit.replay import ReplayReport, draw, replay_step
from resispec_core.audit.replay.engine import Model
from resispec_core.audit.replay.tables import hard_pair
from resispec_core.audit.verdict import Verdict


@dataclass(frozen=True)
class Audited:
    """One function of a package, audited."""

    package: str
    version: str
    function: str
    setting: str
    """Rows, precision and mode of this audit, in words."""
    report: ReplayReport

    def __str__(self) -> str:
        return f"{self.package} {self.version} {self.function} ({self.setting}): {self.report}"

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "package": self.package,
            "version": self.version,
            "function": self.function,
            "setting": self.setting,
            "report": self.report.to_json(),
        }


def drafted_rows(
    target_model: Model, draft_model: Model, prefix: Any, count: int
) -> tuple[list[int], Any, Any]:
    """``count`` tokens drawn from the draft model after ``prefix``, with their draft rows (count, V) and the target's
    rows (count + 1, V), as torch tensors."""
    import torch

    start = tuple(prefix.tolist())
    tokens: list[int] = []
    draft_rows, target_rows = [], [target_model(start)]
    for _ in range(count):
        row = draft_model((*start, *tokens))
        draft_rows.append(row)
        tokens.append(draw(row.tolist()))
        target_rows.append(target_model((*start, *tokens)))
    return tokens, torch.stack(draft_rows), torch.stack(target_rows)


def logits_of(model: Model, ids: Any) -> Any:
    """What a network returns for ids of shape (1, T): the logarithms of the model's rows, shape (1, T, V)."""
    import torch

    tokens = tuple(ids[0].tolist())
    return torch.stack([model(tokens[: end + 1]) for end in range(len(tokens))]).log()[None]


def sequence_audit(step: Callable[..., Any], drafted: int, name: str, *, lossy: bool = False) -> ReplayReport:
    """Replay of ``step`` on ``tables.hard_pair(3)`` after token 0, over drafted + 1 tokens, float32."""
    target, draft = hard_pair(3)
    report = replay_step(
        step,
        target,
        draft,
        prompt=(0,),
        horizon=drafted + 1,
        extend="target",
        library="torch",
        numbers="float32",
        name=name,
    )
    if lossy and report.verdict is Verdict.BIASED and report.crash_mass == 0:
        return replace(report, verdict=Verdict.LOSSY_BY_DESIGN)
    return report

"""Replay: the exact law of an unmodified sampler, by visiting every way its coins can fall."""

from resispec_core.audit.replay.draws import draw
from resispec_core.audit.replay.engine import replay_step, replay_verify
from resispec_core.audit.replay.report import ReplayReport, Witness
from resispec_core.audit.replay.trail import Budget, LeakError, RefusalError

__all__ = [
    "Budget",
    "LeakError",
    "RefusalError",
    "ReplayReport",
    "Witness",
    "draw",
    "replay_step",
    "replay_verify",
]

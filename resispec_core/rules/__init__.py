"""The NumPy reference: one verification rule a file, each short enough to read beside its paper."""

from resispec_core.rules.base import Outcome, Rule, SequentialRule, SetRule, Stage
from resispec_core.rules.registry import RULES, rule
from resispec_core.rules.resispec import ResiSpec
from resispec_core.rules.specinfer import SpecInfer

__all__ = ["RULES", "Outcome", "ResiSpec", "Rule", "SequentialRule", "SetRule", "SpecInfer", "Stage", "rule"]

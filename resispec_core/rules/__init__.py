"""The NumPy reference: one verification rule a file, each short enough to read beside its paper."""

from resispec_core.rules.autoregressive import Autoregressive
from resispec_core.rules.base import Outcome, Row, Rule, SequentialRule, SetRule, Stage
from resispec_core.rules.chain import ChainRule
from resispec_core.rules.kseq import KSeq
from resispec_core.rules.optimal import Optimal
from resispec_core.rules.ranked import Ranked
from resispec_core.rules.registry import RULES, rule
from resispec_core.rules.resispec import ResiSpec
from resispec_core.rules.shaped import Shaped
from resispec_core.rules.shaped_without import ShapedWithoutReplacement
from resispec_core.rules.single_draft import SingleDraft
from resispec_core.rules.specinfer import SpecInfer
from resispec_core.rules.target_match import Deterministic, TargetMatch
from resispec_core.rules.typical import Typical

__all__ = [
    "RULES",
    "Autoregressive",
    "ChainRule",
    "Deterministic",
    "KSeq",
    "Optimal",
    "Outcome",
    "Ranked",
    "ResiSpec",
    "Row",
    "Rule",
    "SequentialRule",
    "SetRule",
    "Shaped",
    "ShapedWithoutReplacement",
    "SingleDraft",
    "SpecInfer",
    "Stage",
    "TargetMatch",
    "Typical",
    "rule",
]

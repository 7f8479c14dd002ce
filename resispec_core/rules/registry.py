"""The rules by name."""

from __future__ import annotations

import difflib
from typing import Any

from resispec_core.errors import InputError
from resispec_core.rules.autoregressive import Autoregressive
from resispec_core.rules.base import Rule
from resispec_core.rules.kseq import KSeq
from resispec_core.rules.optimal import Optimal
from resispec_core.rules.ranked import Ranked
from resispec_core.rules.resispec import ResiSpec
from resispec_core.rules.shaped import Shaped
from resispec_core.rules.shaped_without import ShapedWithoutReplacement
from resispec_core.rules.single_draft import SingleDraft
from resispec_core.rules.specinfer import SpecInfer
from resispec_core.rules.target_match import Deterministic, TargetMatch
from resispec_core.rules.typical import Typical

RULES: dict[str, type[Rule]] = {
    kind.name: kind
    for kind in (
        Autoregressive,
        SingleDraft,
        SpecInfer,
        KSeq,
        Shaped,
        ShapedWithoutReplacement,
        Optimal,
        Ranked,
        TargetMatch,
        Deterministic,
        Typical,
        ResiSpec,
    )
}


def rule(name: str | Rule, **options: Any) -> Rule:
    """The rule called ``name`` with its ``options``; ``InputError`` suggests near misses."""
    if isinstance(name, Rule):
        return name
    if name not in RULES:
        near = difflib.get_close_matches(name.lower(), RULES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"unknown rule {name!r}{hint} (known: {', '.join(RULES)})")
    given = {key: value for key, value in options.items() if value is not None}
    try:
        return RULES[name](**given)
    except TypeError:
        raise InputError(f"rule {name!r} takes no option {', '.join(given)}") from None

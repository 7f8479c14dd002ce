"""Both ends of the total variation of a rule's law from the target, at any vocabulary size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resispec_core.arrays import Array, is_rational, positive_part
from resispec_core.audit.certify.chain import chain_marginal
from resispec_core.audit.certify.forms import has_published_form, published_marginal, selected_marginal
from resispec_core.audit.certify.states import Budget
from resispec_core.audit.enumerate import can_merge, enumerate_paths
from resispec_core.audit.marginal import Marginal
from resispec_core.audit.pair_form import pair_marginal
from resispec_core.drafts import DrawMode
from resispec_core.errors import InputError
from resispec_core.laws import law, same_vocabulary
from resispec_core.rules.base import Rule, SequentialRule
from resispec_core.rules.registry import rule as named_rule
from resispec_core.rules.resispec import ResiSpec

DEFAULT = Budget()


@dataclass(frozen=True)
class Bracket:
    """The total variation lies in [``low``, ``high``], rounding included."""

    low: float
    high: float
    law_at_least: Array
    """(V,): mass that is certainly on each token, up to ``rounding`` in all."""
    unexplored: float
    """Mass whose token is not known: 1 − Σ law_at_least."""
    rounding: float
    """What both ends were moved outwards by."""
    method: str

    @property
    def width(self) -> float:
        """``high − low``."""
        return self.high - self.low


def certify(
    rule: Rule | str,
    target: Any,
    draft: Any,
    candidates: int = 1,
    *,
    draw: str | DrawMode | None = None,
    budget: Budget = DEFAULT,
) -> Bracket:
    """A certified bracket of TV(law of ``rule``, target) for float64 laws of shape (V,); nothing is renormalised.

    From a sub-law L ≤ law, entry by entry: Σ (L − p)+ ≤ TV ≤ Σ (L − p)+ + (1 − Σ L), each end moved outwards by the
    bound on rounding. By the structure of the rule: the published ResiSpec rule with i.i.d. candidates (rounding
    level at n = 1, else as narrow as ``budget`` allows; ``uniform`` redistribution and n > 3 stay wide); rules
    whose residual ignores the rejected token, two candidates without replacement, and set rules with a known
    selection law (rounding level). Any other rule: the ``budget.paths`` heaviest rejection paths of every stage.

    Errors: as ``audit``; rational laws are refused, for ``audit`` is exact on them. Cannot detect: what ``audit``
    cannot. Cost: docs/certified.md.
    """
    rule = named_rule(rule)
    p, q = law(target, name="target"), law(draft, name="draft")
    same_vocabulary(p, q)
    if is_rational(p):
        raise InputError("certify brackets float64 laws; audit(...) is exact on rational ones")
    mode = rule.draw_mode(draw)
    mode.check(q, candidates)
    found, method = _marginal(rule, p, q, candidates, mode, budget)
    return bracket_of(found, p, method)


def bracket_of(found: Marginal, target: Array, method: str) -> Bracket:
    """The bracket that a sub-law gives."""
    at_least = found.law
    excess = float(positive_part(at_least - target).sum())
    low, high = outward(excess, excess + float(found.unexplored), found.rounding)
    return Bracket(low, high, at_least, float(found.unexplored), found.rounding, method)


def outward(low: float, high: float, rounding: float) -> tuple[float, float]:
    """[low, high] widened by the bound on rounding, within [0, 1]."""
    return max(low - rounding, 0.0), min(high + rounding, 1.0)


def _marginal(
    rule: Rule, p: Array, q: Array, candidates: int, mode: DrawMode, budget: Budget
) -> tuple[Marginal, str]:
    if has_published_form(rule, p, mode, mode):
        assert isinstance(rule, ResiSpec)
        return published_marginal(rule, p, q, candidates, budget), "structure of the published rule"
    if isinstance(rule, SequentialRule) and can_merge(rule, mode, mode):
        found = chain_marginal(rule, p, q, candidates, mode, mode)
        return found, "paths merged by stage (the residual ignores the rejected token)"
    if candidates == 2 and mode.name == "without-replacement":
        pair = pair_marginal(rule, p, q)
        if pair is not None:
            return pair, "closed form for two candidates without replacement"
    selected = selected_marginal(rule, p, q, candidates, mode, mode)
    if selected is not None:
        return selected, "law of the selected candidate"
    cells = max(budget.paths, 1) * p.size
    sequential = isinstance(rule, SequentialRule)
    found = enumerate_paths(
        rule, p, q, candidates, drawn_as=mode, assumed=mode, max_cells=cells if sequential else None, partial=sequential
    )  # fmt: skip
    if found.unexplored == 0:
        return found, "every path"
    return found, f"the {budget.paths} heaviest rejection paths of each stage"

"""The audit of one rule on one pair of laws."""

from __future__ import annotations

from typing import Any

import numpy as np

from resispec_core.arrays import Array, is_rational, positive_part, zeros
from resispec_core.audit.ceiling import ceiling
from resispec_core.audit.certify.forms import has_published_form, published_marginal, selected_marginal
from resispec_core.audit.certify.states import Budget
from resispec_core.audit.closed_form import first_stage_law, prefix_rounding, rejections, second_acceptance
from resispec_core.audit.distances import distances
from resispec_core.audit.enumerate import can_merge, conditional_acceptance, enumerate_paths
from resispec_core.audit.marginal import Marginal, rounding_bound, witness
from resispec_core.audit.pair_form import pair_marginal
from resispec_core.audit.paper_check import paper_check_kl, realised_proxies
from resispec_core.audit.verdict import AuditReport, decide
from resispec_core.drafts import DrawMode, draw_mode
from resispec_core.errors import BudgetExceededError, InputError
from resispec_core.laws import law, same_vocabulary
from resispec_core.rules.base import Rule, SequentialRule
from resispec_core.rules.registry import rule as named_rule
from resispec_core.rules.resispec import ResiSpec

HEAVY_PATHS = 32
"""Rejection paths followed per level where the vocabulary is too large for all of them."""


def audit(
    rule: Rule | str,
    target: Any,
    draft: Any,
    candidates: int = 1,
    *,
    draw: str | DrawMode | None = None,
    mismatched: bool = False,
    max_cells: int | None = None,
    partial: bool = True,
) -> AuditReport:
    """Does ``rule`` keep the target law on this pair, and how much does it accept?

    ``target``, ``draft``: laws over the same vocabulary (see ``laws.law``), rational or float. ``draw``: how
    the candidates are drawn, by default the rule's own mode; another mode is an error unless
    ``mismatched=True`` audits it as the fault it is.

    Every candidate tuple and path is summed where that fits ``max_cells`` (live paths × V). Past it, rules
    whose residual ignores the rejected token are summed stage by stage, and the published ResiSpec rule
    by its structure (docs/certified.md); others by their heaviest paths. What is left out is stated
    as ``unexplored``; with ``partial=False`` it is a ``BudgetExceededError`` instead.

    Cannot detect: faults in how a real engine draws candidates, filters rows or uses its coins: this
    audits the rule. Cost: O(V^(n+1)) where every path is summed, else O(n·V log V).
    """
    rule = named_rule(rule)
    p, q = law(target, name="target"), law(draft, name="draft")
    same_vocabulary(p, q)
    assumed, drawn_as = _modes(rule, draw, mismatched)
    drawn_as.check(q, candidates)
    found, method = _marginal(rule, p, q, candidates, drawn_as, assumed, max_cells, partial)
    top = ceiling(p, q, candidates, drawn_as)
    return _report(rule, p, q, candidates, drawn_as, assumed, found, method, top)


def _modes(rule: Rule, draw: str | DrawMode | None, mismatched: bool) -> tuple[DrawMode, DrawMode]:
    if not mismatched:
        mode = rule.draw_mode(draw)
        return mode, mode
    if draw is None:
        raise InputError("mismatched=True needs draw=..., the way the candidates are really drawn")
    return rule.draw_mode(), draw_mode(draw)


def _marginal(
    rule: Rule,
    p: Array,
    q: Array,
    candidates: int,
    drawn_as: DrawMode,
    assumed: DrawMode,
    max_cells: int | None,
    partial: bool,
) -> tuple[Marginal, str]:
    def run(**options: Any) -> Marginal:
        return enumerate_paths(
            rule, p, q, candidates, drawn_as=drawn_as, assumed=assumed, max_cells=max_cells, **options
        )

    try:
        return run(), "every path"
    except BudgetExceededError:
        if can_merge(rule, drawn_as, assumed):
            return run(merge=True), "paths merged by stage (the residual ignores the rejected token)"
        if candidates == 2 and drawn_as.name == assumed.name == "without-replacement":
            found = pair_marginal(rule, p, q)
            if found is not None:
                return found, "closed form for two candidates without replacement, O(V log V)"
        closed = _published_closed_form(rule, p, q, candidates, drawn_as, assumed)
        if closed is not None and (partial or closed[0].unexplored == 0):
            return closed
        selected = selected_marginal(rule, p, q, candidates, drawn_as, assumed)
        if selected is not None:
            return selected, "closed form: the law of the selected candidate (candidates in random order)"
        if not partial or not isinstance(rule, SequentialRule):
            raise
    max_cells = HEAVY_PATHS * p.size
    return run(partial=True), f"the {HEAVY_PATHS} heaviest rejection paths of each stage"


def _published_closed_form(
    rule: Rule, p: Array, q: Array, candidates: int, drawn_as: DrawMode, assumed: DrawMode
) -> tuple[Marginal, str] | None:
    """docs/closed_forms.md and docs/certified.md: the law at n = 1, else lower bounds that nearly add up to 1.

    In rationals, and for Eq. 13, only acceptance at candidates 1 and 2 is known beside the heaviest paths.
    """
    if type(rule) is not ResiSpec or drawn_as.name != "iid" or assumed.name != "iid":
        return None
    structured = has_published_form(rule, p, drawn_as, assumed)
    if candidates == 1 and rule.redistribution == "uniform" and not structured:
        return None
    first = np.minimum(p, q)
    rounding = rounding_bound(p.size, candidates, p) + prefix_rounding(p.size, p)
    if candidates == 1 and rule.redistribution != "uniform":
        law_found = first_stage_law(p, q, rule.redistribution, rule.budget)
        left = rejections(p, q, rule.budget).left_out
        return (
            Marginal(
                parts=(first, law_found - first),
                accepted=(first.sum(),),
                reached=(1,),
                paths=2 * int(np.count_nonzero(q > p)) + int(np.count_nonzero(first)),
                unexplored=left,
                carriers=None,
                rounding=rounding,
            ).normalised(),
            "closed form, O(V log V)",
        )
    heavy = enumerate_paths(
        rule,
        p,
        q,
        candidates,
        drawn_as=drawn_as,
        assumed=assumed,
        max_cells=HEAVY_PATHS * p.size,
        partial=True,
    )
    if structured:
        return (
            published_marginal(rule, p, q, candidates, Budget(), heavy),
            f"structure of the published rule; witness among its {HEAVY_PATHS} heaviest rejection paths of each stage",
        )
    second = np.maximum(second_acceptance(p, q, rule.budget), heavy.parts[1])
    parts = (first, second, *heavy.parts[2:])
    left = 1 - sum(part.sum() for part in parts)
    left = max(left, 0 * left)
    left = left if left > rounding else 0 * left
    reached = (1, 1 - first.sum(), 1 - first.sum() - second.sum(), *heavy.reached[3:])[:candidates]
    return (
        Marginal(
            parts=parts,
            accepted=tuple(part.sum() for part in parts[:-1]),
            reached=reached,
            paths=heavy.paths,
            unexplored=left,
            carriers=heavy.carriers,
            rounding=rounding,
        ).normalised(),
        f"closed form for candidates 1 and 2, then the {HEAVY_PATHS} heaviest rejection paths of each stage",
    )


def _report(
    rule: Rule,
    p: Array,
    q: Array,
    candidates: int,
    drawn_as: DrawMode,
    assumed: DrawMode,
    found: Marginal,
    method: str,
    top: Any | None,
) -> AuditReport:
    complete = found.unexplored == 0
    found_law = found.law
    # Uncounted paths can only add mass, so the excess already found is a lower bound on the TV; another is
    # what acceptance exceeds the ceiling by, since α*(law) ≤ α*(p) + TV(law, p).
    gaps = distances(found_law, p) if complete else None
    tv = gaps.total_variation if gaps else positive_part(found_law - p).sum()
    # An integer zero keeps rationals rational: Fraction - 0.0 is a float, in which a small TV can vanish.
    rounding = 0 if is_rational(p) else found.rounding
    low = tv - rounding
    if top is not None and drawn_as is assumed:
        low = max(low, found.acceptance - top - rounding)
    low = max(low, 0 * low)
    high = min(tv + found.unexplored + rounding, 1 if is_rational(p) else 1.0)
    tv, low, high = (end.item() if isinstance(end, np.generic) else end for end in (tv, low, high))
    top = top.item() if isinstance(top, np.generic) else top
    verdict = decide(low, high, complete=complete, rounding=found.rounding, lossy=rule.lossy)
    check = None
    if isinstance(rule, SequentialRule):
        rejected = found.carriers.heaviest_rejections() if found.carriers else _one_rejection(p, q)
        check = paper_check_kl(p, realised_proxies(rule, p, q, rejected, candidates, assumed))
    return AuditReport(
        rule=rule.name,
        draw=drawn_as.name,
        candidates=candidates,
        vocabulary=p.size,
        verdict=verdict,
        bound=high,
        total_variation=tv if complete else low,
        total_variation_bracket=(low, high),
        law=found_law,
        distances=gaps,
        witness=witness(found, p),
        paper_check_kl=check,
        acceptance=found.acceptance,
        ceiling=top,
        acceptance_by_candidate=found.accepted,
        conditional_acceptance=tuple(conditional_acceptance(found).tolist()),
        paths=found.paths,
        method=method,
        unexplored=found.unexplored,
        rounding=found.rounding,
        mismatched=drawn_as is not assumed,
    )


def _one_rejection(p: Array, q: Array) -> tuple[int, ...]:
    excess = q - p
    return (int(np.argmax(excess)),) if (excess > zeros(1, like=p)).any() else ()

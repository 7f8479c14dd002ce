"""Every rule × draw mode × dtype against the target law. The oracle is p itself; its tolerance is the audit's bound."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from fuzz.target import Case, Target
from resispec_core.arrays import as_float, is_rational
from resispec_core.audit import Verdict, audit
from resispec_core.audit.counterexample import row, texts
from resispec_core.drafts import draw_mode
from resispec_core.errors import BudgetExceededError
from resispec_core.laws import as_rational
from resispec_core.rules import RULES
from resispec_core.rules import rule as named_rule
from resispec_core.testing.strategies import DTYPES, law_pairs, verification_cases

CLAIMS_NOTHING = ("resispec", "typical")
"""Biased, or lossy by design: for them the float audit is held against the rational audit of the same laws."""
OPTIONS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "resispec": st.fixed_dictionaries(
        {
            "redistribution": st.sampled_from(["proportional", "waterfill", "uniform"]),
            "budget": st.sampled_from(["local", "eq13"]),
        }
    ),
    "ranked": st.fixed_dictionaries({"orders": st.integers(1, 8)}),
}
LARGEST_COIN = 1 - 2.0**-53


@st.composite
def cases(draw: st.DrawFn, rules: tuple[str, ...] = tuple(RULES)) -> Case:
    """A rule (of ``rules``), its options, laws it may meet, and the coins of one verification."""
    name = draw(st.sampled_from(rules))
    mode = draw(st.sampled_from(RULES[name].draws))
    dtype = draw(st.sampled_from(("rational", *DTYPES)))
    most = 1 if name == "single-draft" else 4
    large = dtype == "float64" and draw(st.integers(0, 9)) == 9
    if large:  # past the budget, so that merged paths and closed forms are used
        target, draft = draw(law_pairs(6, 24, rational=False))
        support = draw_mode(mode).support(draft)
        n = draw(st.integers(1, min(most, 24 if support is None else support)))
    else:
        found = draw(
            verification_cases(
                5, most, draws=mode, rational=dtype == "rational", dtypes=(dtype,) if dtype in DTYPES else ("float64",)
            )
        )  # fmt: skip
        target, draft, n = found.target, found.draft, found.candidates
    coin = st.one_of(st.sampled_from([0.0, LARGEST_COIN, 0.5]), st.floats(0, LARGEST_COIN))
    return {
        "rule": name,
        "options": draw(OPTIONS.get(name, st.just({}))),
        "draw": mode,
        "candidates": n,
        "target": texts(target),
        "draft": texts(draft),
        "max_cells": len(target) if large else None,
        "coins": draw(st.lists(coin, min_size=2 * n + 3, max_size=2 * n + 3)),
    }


def check(case: Case) -> None:
    """The audit on every path, and one run of ``verify`` on the case's own coins."""
    rule = named_rule(case["rule"], **case["options"])
    p, q, n = row(case["target"], "target"), row(case["draft"], "draft"), case["candidates"]
    try:
        report = audit(rule, p, q, n, draw=case["draw"], max_cells=case["max_cells"])
    except BudgetExceededError:
        assert case["max_cells"] is not None, f"{rule.name}: no budget was set, and it was exceeded"
        return
    check_report(case, rule.name, report, p, q)
    check_verification(case, rule, p, q)


def check_report(case: Case, name: str, report: Any, p: Any, q: Any) -> None:
    """What the report may say about this rule."""
    slack = 0 if is_rational(p) else report.rounding
    assert (report.law >= 0).all(), f"{name}: a negative probability in {report.law}"
    complete = report.unexplored == 0
    if complete:
        missing = abs(report.law.sum() - 1)
        assert missing <= 2 * slack, f"{name}: the output law misses unit mass by {missing}"
    if name in CLAIMS_NOTHING:
        if not is_rational(p) and complete:
            exact_p, exact_q = as_rational(p), as_rational(q)
            same = named_rule(name, **case["options"])
            true = audit(same, exact_p, exact_q, case["candidates"], draw=case["draw"])
            off = float(abs(as_float(true.law) - report.law).sum() / 2)
            assert off <= 2 * slack, f"{name}: the float law is {off} from the rational one, bound {slack}"
        return
    wanted = (
        {Verdict.EXACT if is_rational(p) else Verdict.EXACT_WITHIN} if complete else {Verdict.INCONCLUSIVE}
    )
    assert report.verdict in wanted, f"{name}: {report.verdict}, total variation {report.total_variation}"
    if complete:
        off = abs(report.law - p).sum() / 2
        assert off <= slack, f"{name}: the output law is {off} from the target law, bound {slack}"
    if report.ceiling is not None:
        over = report.acceptance - report.ceiling
        assert over <= slack, f"{name}: accepts {over} more than any exact rule can"


def check_verification(case: Case, rule: Any, p: Any, q: Any) -> None:
    """One verification: the index names the token, and the token has positive probability under p."""
    n, coins = case["candidates"], case["coins"]
    if is_rational(p):
        coins = [Fraction(coin) for coin in coins]
    tokens = draw_mode(case["draw"]).draw(q, n, coins[:n])
    token, accepted = rule.verify(p, q, tokens, coins[n : n + rule.coins(n)], case["draw"])
    assert -1 <= accepted < n, f"{rule.name}: accepted is {accepted} of {n} candidates"
    assert accepted < 0 or tokens[accepted] == token, (
        f"{rule.name}: candidate {accepted} is not token {token}"
    )
    assert p[token] > 0, f"{rule.name}: token {token} has probability zero (accepted: {accepted >= 0})"


TARGET = Target("laws", cases, check)

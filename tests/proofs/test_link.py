"""The Python rules are the procedures that ``proofs/formal`` speaks of, on every small rational pair.

The grid: every pair of laws on at most three tokens whose weights have denominators of at most 6 (3,195 pairs), with
one or two candidates; up to 4 (534 pairs) with three. Each rule is walked beside the transcription of its definition
(``definitions.py``): every acceptance probability, every residual and the final law must be equal as fractions. Then
what an audit sums up must be ``output`` and ``acceptance``. A slip in a transcription would have to be in the rule as
well to go unseen; the theorems of ``proofs/formal`` are also checked on the transcriptions themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain as join
from itertools import combinations, product
from pathlib import Path
from typing import Any

import definitions as of
import numpy as np
import pytest
from definitions import Law, Procedure
from grid import law_faults, pairs, row, walk_faults

from resispec_core import rules
from resispec_core.arrays import divide, normalise, positive_part
from resispec_core.audit import acceptance_ceiling, paper_check_law
from resispec_core.audit.marginal import Marginal
from resispec_core.drafts import draw_mode
from resispec_core.rules.optimal import optimal_proxy

ROOT = Path(__file__).parents[2]
ALL, FEW = 6, 4
"""Largest denominators of the full grid, and of the one for three candidates and for summing every tuple again."""
Model = Callable[[rules.Rule, Law, Law, int], tuple[Procedure, Any]]
"""(rule, p, q, n) -> the procedure of the formal proof and its first state."""


def grid(largest: int) -> Any:
    return join(pairs(1, largest), pairs(2, largest), pairs(3, largest))


def sized(largest: int = ALL, candidates: tuple[int, ...] = (1, 2, 3)) -> Any:
    """(n, pair): three candidates on the smaller grid only."""
    return join.from_iterable(
        product((n,), grid(largest if n < 3 else min(FEW, largest))) for n in candidates
    )


def drawable(mode: Any, q: Law, n: int) -> bool:
    most = mode.support(row(q))
    return most is None or n <= most


def recursive(draw: str) -> Model:
    """Recursive rejection with the draw mode's own law of each candidate."""

    def model(rule: rules.Rule, p: Law, q: Law, n: int) -> tuple[Procedure, Any]:
        top = sorted(range(len(q)), key=lambda x: (-q[x], x))
        point = [tuple(of.ONE if y == x else of.ZERO for y in range(len(q))) for x in top]

        def conditional(drawn: tuple[int, ...]) -> Law:
            i = len(drawn)
            if draw == "top-k":
                return point[i]
            return (
                of.norm([of.ZERO if y in top[: n - 1] else a for y, a in enumerate(q)])
                if i == 0
                else point[i - 1]
            )

        return of.recursive(conditional), (p, ())

    return model


def shaped(rule: rules.Rule, p: Law, q: Law, n: int) -> tuple[Procedure, Any]:
    return of.chain(q, of.Shaping(p, q, rule.plan(row(p), row(q), n).total).residual), 0


def k_seq(rule: rules.Rule, p: Law, q: Law, n: int) -> tuple[Procedure, Any]:
    return of.kseq(p, q, rule.plan(row(p), row(q), n).gamma, n), 0


def siblings(draw: str) -> Model:
    """Target-match under any draw: the candidates' law is no part of the rule."""

    def model(rule: rules.Rule, p: Law, q: Law, n: int) -> tuple[Procedure, Any]:
        if draw == "iid":
            return of.siblings(q), p
        # The same coins and residuals, with the draw mode's law beside them in the state.
        laws = (
            of.without_replacement() if draw == "without-replacement" else recursive(draw)(rule, p, q, n)[0]
        )
        start = q if draw == "without-replacement" else ()
        plain = of.siblings(q)

        def following(s: Any, x: int) -> Any:
            w, rest = s
            return plain.next(w, x), laws.next((p, rest), x)[1]

        return Procedure(lambda s: laws.draw((p, s[1])), lambda s: s[0], following, lambda s: s[0]), (
            p,
            start,
        )

    return model


def published(shape: Callable[[Law], of.Shape]) -> Model:
    return lambda rule, p, q, n: (of.published(q, shape(q)), p)


RESISPEC = {"proportional": of.proportional, "waterfill": of.waterfilling, "uniform": of.uniform}
CASES: dict[str, tuple[rules.SequentialRule, str, Model]] = {
    "single-draft": (rules.SingleDraft(), "iid", lambda rule, p, q, n: (of.specinfer(q), p)),
    "specinfer iid": (rules.SpecInfer(), "iid", lambda rule, p, q, n: (of.specinfer(q), p)),
    "specinfer without-replacement": (
        rules.SpecInfer(),
        "without-replacement",
        lambda rule, p, q, n: (of.without_replacement(), (p, q)),
    ),
    "specinfer top-k": (rules.SpecInfer(), "top-k", recursive("top-k")),
    "specinfer greedy": (rules.SpecInfer(), "greedy", recursive("greedy")),
    "k-seq": (rules.KSeq(), "iid", k_seq),
    "shaped": (rules.Shaped(), "iid", shaped),
    **{f"target-match {d}": (rules.TargetMatch(), d, siblings(d)) for d in rules.TargetMatch.draws},
    "deterministic": (rules.Deterministic(), "top-k", siblings("top-k")),
    **{f"resispec {how}": (rules.ResiSpec(how), "iid", published(f)) for how, f in RESISPEC.items()},
}


def faults(name: str, rule: rules.SequentialRule | None = None, largest: int = ALL) -> list[str]:
    """Where the rule of a case, or another in its place, is not the procedure; stops at the first."""
    own, draw, model = CASES[name]
    rule, mode = rule or own, draw_mode(draw)
    seen = 0
    for n, (p, q) in sized(largest, (1,) if name == "single-draft" else (1, 2, 3)):
        if not drawable(mode, q, n):
            continue
        seen += 1
        procedure, start = model(own, p, q, n)
        found = walk_faults(rule, mode, procedure, start, (p, q), n)
        if found is None and n < 3 and max(x.denominator for x in p + q) <= FEW:
            found = law_faults(rule, mode, procedure, start, (p, q), n)
        if found is not None:
            return [f"n = {n}, {found}"]
    assert seen > len(list(grid(largest))) / 2
    return []


@pytest.mark.parametrize("name", CASES)
def test_the_rule_is_its_definition(name: str) -> None:
    assert faults(name) == []


def test_every_rule_is_linked_or_has_a_reason_not_to_be() -> None:
    linked = {type(rule).name for rule, _, _ in CASES.values()} | {"optimal"}
    # Without candidates there is nothing to prove; typical acceptance is lossy and nobody claims otherwise.
    # The two for draws without replacement have proofs on paper (proofs/without_replacement.md); ``ranked`` is an
    # instance of ``optimal_exact``, with its own selection in place of the priorities.
    on_paper = {"shaped-without-replacement", "ranked"}
    assert set(rules.RULES) - linked == {"autoregressive", "typical"} | on_paper
    assert {draw for rule, draw, _ in CASES.values() if rule.name == "specinfer"} == set(
        rules.SpecInfer.draws
    )


def test_the_grid_is_complete() -> None:
    assert len(list(grid(ALL))) == 1 + 13**2 + 55**2


# The premises of the theorems, at what the rules' plans really hold.


def test_k_seq_meets_the_premise_and_no_smaller_step_does() -> None:
    step = of.Fraction(1, 2**20)
    for n, (p, q) in sized():
        gamma = rules.KSeq().plan(row(p), row(q), n).gamma
        if any(map(min, p, q)):
            assert of.kseq_load(p, q, gamma, n) <= gamma
            assert gamma - step < 1 or of.kseq_load(p, q, gamma - step, n) > gamma - step
        else:  # disjoint supports: the rule accepts nothing whatever gamma is, and the premise is not needed
            assert of.output(of.kseq(p, q, gamma, n), n, 0) == p


def test_shaped_ends_at_zero_with_a_valid_chain() -> None:
    for n, (p, q) in sized():
        plan = rules.Shaped().plan(row(p), row(q), n)
        shaping = of.Shaping(p, q, plan.total)
        assert shaping.tau(n) == 0
        assert plan.left == tuple(shaping.tau(i) for i in range(n + 1))
        assert of.valid_chain(p, q, n, shaping.residual)


def selection_faults(rule: rules.Optimal, p: Law, q: Law, n: int) -> list[str]:
    """Which premises of optimal_exact and optimal_meets_ceiling fail, and where rule and definition part."""
    target, draft = row(p), row(q)
    plan = rule.plan(target, draft, n)
    sel = {}
    for t in product([x for x in range(len(q)) if q[x]], repeat=n):
        chosen = rule.select(plan, t)
        sel[t] = tuple(
            sum((c for c, z in zip(chosen, t, strict=True) if z == x), of.ZERO) for x in range(len(q))
        )
    k = of.selected(q, sel)
    a, f = of.optimal_parts(p, k)
    h = np.flatnonzero(optimal_proxy(target, draft, n)[2]).tolist()
    mass = sum((q[x] for x in h), of.ZERO) ** n
    accept, residual = rule.accept(plan), rule.residual(plan)
    holds = {
        "sel is a law": all(sum(s) == 1 and min(s) >= 0 for s in sel.values()),
        "k is the law of the selected": k == tuple(plan.proxy),
        "a": all(accept[x] == a[x] for x in range(len(q)) if k[x]),
        "f": p == k or tuple(residual) == f,
        "k >= p on H": all(k[x] >= p[x] for x in h),
        "k <= p off H": all(k[x] <= p[x] for x in range(len(q)) if x not in h),
        "mass off H": sum((k[x] for x in range(len(q)) if x not in h), of.ZERO) == 1 - mass,
        "exact": of.optimal_output(p, q, sel) == p,
        "ceiling": sum(map(min, p, k)) == of.ceiling_of(p, q, n, h),
    }
    return [name for name, true in holds.items() if not true]


@pytest.mark.parametrize("size", [2, 3])
def test_optimal_is_its_definition_and_meets_the_premises(size: int) -> None:
    for p, q in pairs(size, ALL):
        assert selection_faults(rules.Optimal(), p, q, 2) == []
    for p, q in pairs(size, FEW):
        assert selection_faults(rules.Optimal(), p, q, 1) == []


def test_the_ceiling_is_the_smallest_bound_of_all_sets() -> None:
    for n, (p, q) in sized():
        sets = join.from_iterable(combinations(range(len(p)), size) for size in range(len(p) + 1))
        assert acceptance_ceiling(row(p), row(q), n) == min(of.ceiling_of(p, q, n, h) for h in sets)


def test_the_paper_check_is_the_sum_of_appendix_b() -> None:
    for p, q in grid(ALL):
        for proxies in ([q], [q, p], [q, q[::-1], p]):
            law = tuple(paper_check_law(row(p), [row(k) for k in proxies]))
            assert law == of.appendix_b(p, proxies) == p


def test_waterfilling_meets_its_definition() -> None:
    void = 0
    for p, q in grid(ALL):
        for x in (x for x in range(len(q)) if q[x] > p[x]):
            r = tuple(rules.ResiSpec("waterfill").shape(row(p), row(q), np.array(x)).residual_mass)
            drafted = sum((a for y, a in enumerate(p) if y != x and q[y]), of.ZERO)
            if drafted >= q[x] - p[x]:
                assert of.is_waterfilling(q, p, x, r)
            void += drafted < q[x] - p[x]
            lowest = of.projection(q, p, x)
            assert all(a <= b <= c for a, b, c in zip(lowest, r, of.drop(p, x), strict=True))
    assert void > 0  # the definition in published.v says nothing there; see definitions.waterfilling


# The theorems, on the transcriptions.


def test_the_transcriptions_obey_the_theorems() -> None:
    for n, (p, q) in product((1, 2), grid(FEW)):
        assert of.output(of.specinfer(q), n, p) == p  # specinfer_published_exact
        chained = of.chain(q, of.specinfer_residual(p, q))
        assert of.output(chained, n, 0) == p  # specinfer_exact
        assert of.acceptance(chained, n, 0) == of.acceptance(of.specinfer(q), n, p)  # specinfer_accepts
        match = of.acceptance(of.siblings(q), n, p)
        assert match == of.target_match_acceptance(p, q, n)  # target_match_acceptance
    assert of.output(of.published(Q3, of.proportional(Q3)), 1, P3) == fractions("107/282 46/105 1801/9870")
    assert of.output(of.published(Q3, of.waterfilling(Q3)), 1, P3) == fractions("7/18 7/15 13/90")
    assert of.acceptance(of.published(Q3, of.proportional(Q3)), 2, P3) == of.Fraction(89, 100)
    assert all(of.drift((of.ONE, of.ZERO), fractions("1/2 1/2"), z) == 1 for z in fractions("1/5 1/2 1"))


def fractions(text: str) -> Law:
    return tuple(map(of.Fraction, text.split()))


P3, Q3 = fractions("1/3 1/3 1/3"), fractions("1/2 2/5 1/10")


# Planted faults: each must be found by the comparison that should find it.


class Lenient(rules.SpecInfer):
    def accept(self, stage: rules.Stage) -> Any:
        return np.minimum(divide(stage.residual * of.Fraction(1001, 1000), stage.draft), of.ONE)


class HalfResidual(rules.SpecInfer):
    def reject(self, stage: rules.Stage, token: Any) -> Any:
        return normalise(positive_part(stage.residual - stage.draft / 2), fallback=stage.residual)


class KeepsToken(rules.TargetMatch):
    def reject(self, stage: rules.Stage, token: Any) -> Any:
        return stage.residual


class WrongReach(rules.Shaped):
    def reach(self, plan: Any, index: int) -> Any:
        return plan.reach[0]


class LazyKSeq(rules.KSeq):
    def reject(self, stage: rules.Stage, token: Any) -> Any:
        return stage.target


class NoDeficit(rules.ResiSpec):
    """Skips the redistribution; only the shape of the residual differs."""

    def _redistribute(self, projected: Any, *rest: Any) -> Any:
        return projected


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("specinfer iid", Lenient()),
        ("specinfer without-replacement", HalfResidual()),
        ("specinfer top-k", Lenient()),
        ("specinfer greedy", HalfResidual()),
        ("single-draft", HalfResidual()),
        ("target-match iid", KeepsToken()),
        ("deterministic", KeepsToken()),
        ("shaped", WrongReach()),
        ("k-seq", LazyKSeq()),
        ("resispec proportional", NoDeficit()),
        ("resispec waterfill", rules.ResiSpec("uniform")),
        ("resispec uniform", rules.ResiSpec("waterfill")),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_twin_is_told_apart(name: str, twin: rules.SequentialRule) -> None:
    assert faults(name, twin, FEW) != []


class FirstOnly(rules.Optimal):
    """Selects the first candidate, whatever the priorities say."""

    def select(self, plan: Any, tokens: Any) -> Any:
        return np.array([of.ONE] + [of.ZERO] * (len(tokens) - 1))


def test_a_wrong_selection_is_told_apart() -> None:
    assert "k is the law of the selected" in selection_faults(FirstOnly(), P3, Q3, 2)


def test_an_audit_that_forgets_the_resample_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Marginal, "law", property(lambda self: sum(self.parts[1:-1], self.parts[0])))
    assert "the audit has the law" in faults("specinfer iid", largest=FEW)[0]


# Each rule names its theorem.


def theorems_named(text: str) -> set[str]:
    """Names after ``proofs/formal:`` in a docstring."""
    listed = re.findall(r"proofs/formal: ((?:``\w+``(?:,\s+|\s+and\s+)?)+)", text)
    return {name for part in listed for name in re.findall(r"``(\w+)``", part)}


def missing_theorems(docs: dict[str, str], printed: set[str]) -> dict[str, set[str] | str]:
    """Rules that name no theorem, or one that ``assumptions.v`` does not print."""
    bad: dict[str, set[str] | str] = {}
    for name, text in docs.items():
        named = theorems_named(text)
        if not named:
            bad[name] = "names no theorem"
        elif named - printed:
            bad[name] = named - printed
    return bad


PRINTED = set(re.findall(r"Print Assumptions (\w+)\.", (ROOT / "proofs/formal/assumptions.v").read_text()))


def test_every_rule_names_its_theorem() -> None:
    docs = {
        name: kind.__doc__ or ""
        for name, kind in rules.RULES.items()
        if name not in ("autoregressive", "typical", "shaped-without-replacement")  # the last: on paper only
    }
    assert missing_theorems({**docs, "chain": rules.ChainRule.__doc__ or ""}, PRINTED) == {}


def test_a_rule_without_its_theorem_is_reported() -> None:
    good = "Exact (proofs/formal: ``chain_exact``, ``shaped_exact``\n    and ``shaped_optimal``)."
    assert theorems_named(good) == {"chain_exact", "shaped_exact", "shaped_optimal"}
    docs = {"a": good, "b": "Exact.", "c": good.replace("chain_exact", "chain_inexact")}
    assert missing_theorems(docs, PRINTED) == {"b": "names no theorem", "c": {"chain_inexact"}}

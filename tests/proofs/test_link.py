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
from functools import lru_cache
from itertools import chain as join
from itertools import combinations, pairwise, product
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
from resispec_core.rules import priorities
from resispec_core.rules.optimal import optimal_proxy
from resispec_core.rules.shaped_without import shape_pair

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


def conditional(draw: str, q: Law, n: int) -> Callable[[tuple[int, ...]], Law]:
    """The law of the next candidate, given those drawn, in the draw modes other than i.i.d."""
    top = sorted(range(len(q)), key=lambda x: (-q[x], x))
    point = [tuple(of.ONE if y == x else of.ZERO for y in range(len(q))) for x in top]

    def without_replacement(drawn: tuple[int, ...]) -> Law:
        return of.norm([of.ZERO if y in drawn else a for y, a in enumerate(q)])

    def greedy(drawn: tuple[int, ...]) -> Law:
        first = of.norm([of.ZERO if y in top[: n - 1] else a for y, a in enumerate(q)])
        return point[len(drawn) - 1] if drawn else first

    return {
        "top-k": lambda drawn: point[len(drawn)],
        "without-replacement": without_replacement,
        "greedy": greedy,
    }[draw]


def recursive(draw: str) -> Model:
    """Recursive rejection with the draw mode's own law of each candidate."""
    return lambda rule, p, q, n: (of.recursive(conditional(draw, q, n)), (p, ()))


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


def load_used(w: Law, d: Law) -> of.Fraction:
    """The load of the plan that the rule makes; the comparison then asks that the plan be made from it."""
    return of.load_of(tuple(shape_pair(row(w), row(d)).refused), d)


def shaped_without(rule: rules.Rule, p: Law, q: Law, n: int) -> tuple[Procedure, Any]:
    refused = lru_cache(lambda w, d: of.refused(load_used(w, d), w, d))
    second = lru_cache(lambda w, d: of.accepts_second(load_used(w, d), w, d))
    return of.look_ahead(refused, second), (n, (p, q))


RESISPEC = {"proportional": of.proportional, "waterfill": of.waterfilling, "uniform": of.uniform}


def published(how: str, draw: str) -> Model:
    """The published rule with Algorithm 1's budget."""
    if draw == "iid":
        return lambda rule, p, q, n: (of.published(q, RESISPEC[how]), p)
    return lambda rule, p, q, n: (of.published_after(conditional(draw, q, n), RESISPEC[how]), (p, ()))


def published_eq13(how: str) -> Model:
    return lambda rule, p, q, n: (of.published_eq13(q, RESISPEC[how]), p)


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
    "shaped-without-replacement": (
        rules.ShapedWithoutReplacement(),
        "without-replacement",
        shaped_without,
    ),
    **{f"target-match {d}": (rules.TargetMatch(), d, siblings(d)) for d in rules.TargetMatch.draws},
    "deterministic": (rules.Deterministic(), "top-k", siblings("top-k")),
    **{f"resispec {how}": (rules.ResiSpec(how), "iid", published(how, "iid")) for how in RESISPEC},
    **{
        f"resispec {how} {draw}": (rules.ResiSpec(how), draw, published(how, draw))
        for how in RESISPEC
        for draw in ("without-replacement", "top-k")
    },
    **{f"resispec {how} eq13": (rules.ResiSpec(how, "eq13"), "iid", published_eq13(how)) for how in RESISPEC},
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


SMALLER = {name for name in CASES if re.match("resispec (waterfill|uniform) ", name)}
"""The other fills under other draws and budgets: each part is compared on the full grid in another case."""


@pytest.mark.parametrize("name", CASES)
def test_the_rule_is_its_definition(name: str) -> None:
    assert faults(name, largest=FEW if name in SMALLER else ALL) == []


def test_every_rule_is_linked_or_has_a_reason_not_to_be() -> None:
    linked = {type(rule).name for rule, _, _ in CASES.values()} | {"optimal", "ranked"}
    # Without candidates there is nothing to prove; typical acceptance is lossy and nobody claims otherwise.
    assert set(rules.RULES) - linked == {"autoregressive", "typical"}
    for kind in (rules.SpecInfer, rules.ResiSpec, rules.TargetMatch):
        assert {draw for rule, draw, _ in CASES.values() if rule.name == kind.name} == set(kind.draws)


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


def selection(rule: rules.SetRule, plan: Any, weights: Any, size: int) -> of.Selection:
    """For every tuple of candidates the law of the one that the rule selects."""
    sel = {}
    for t in weights:
        chosen = rule.select(plan, t)
        sel[t] = tuple(
            sum((c for c, z in zip(chosen, t, strict=True) if z == x), of.ZERO) for x in range(size)
        )
    return sel


def selection_faults(rule: rules.Optimal, p: Law, q: Law, n: int) -> list[str]:
    """Which premises of optimal_exact and optimal_meets_ceiling fail, and where rule and definition part."""
    target, draft = row(p), row(q)
    plan = rule.plan(target, draft, n)
    weights = of.independent(q, n)
    sel = selection(rule, plan, weights, len(q))
    k = of.selected(weights, sel)
    a, f = of.optimal_parts(p, k)
    proxy = optimal_proxy(target, draft, n)
    h = sorted(proxy.order[: proxy.cut].tolist())
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
        "exact": of.optimal_output(p, weights, sel) == p,
        "ceiling": sum(map(min, p, k)) == of.ceiling_of(p, q, n, h),
    }
    return [name for name, true in holds.items() if not true]


@pytest.mark.parametrize("size", [2, 3])
def test_optimal_is_its_definition_and_meets_the_premises(size: int) -> None:
    for p, q in pairs(size, ALL):
        assert selection_faults(rules.Optimal(), p, q, 2) == []
    for p, q in pairs(size, FEW):
        assert selection_faults(rules.Optimal(), p, q, 1) == []


def priority_faults(p: Law, q: Law, n: int) -> list[str]:
    """Which premises and conclusions of proxy_sets_exist fail, and where the sets are not those of its proof."""
    target, draft = row(p), row(q)
    found = optimal_proxy(target, draft, n)
    own_p, own_q = (tuple(law[found.order]) for law in (target, draft))
    k = of.proxy(found.cut, own_p, own_q, *found.levels)
    sets = rules.Optimal().plan(target, draft, n).priorities
    # Tokens of one ratio share their pieces: the theorem is on the groups.
    members = [np.flatnonzero(sets.group == g) for g in range(len(sets.first) - 1)]
    mass = tuple(sum(draft[x]) for x in members)
    wanted = tuple(sum(found.mass[np.isin(found.order, x)]) for x in members)
    starts = [of.upto(mass, w) for w in range(len(mass))]
    held = [[of.ZERO] * len(mass) for _ in mass]
    for g, (first, last) in enumerate(pairwise(sets.first)):
        for start, end, density in list(zip(*sets.pieces, strict=True))[first:last]:
            held[g][starts.index(start)] += density * (end - start)
    heights = tuple(of.window(n, mass, w) for w in range(len(mass)))
    per_unit = tuple(a / b for a, b in zip(wanted, mass, strict=True))
    holds = {
        "H is the least prefix": of.least_prefix(n, found.cut, own_p, own_q),
        "k is the proxy": k == tuple(found.mass),
        "k has its masses": of.upto(k, found.cut) == of.upto(own_q, found.cut) ** n and sum(k) == 1,
        "k is majorised": all(of.upto(k, j) >= of.upto(own_q, j) ** n for j in range(len(k) + 1)),
        "pieces are windows": set(sets.pieces.end) <= {*starts[1:], of.ONE},
        "the sets are the exchange": held == of.exchanged(mass, heights, of.matched(mass, heights, per_unit)),
        "the sets give k": of.priority_sets(n, mass, wanted, held),
    }
    return [name for name, true in holds.items() if not true]


def test_the_priority_sets_are_the_exchange_of_the_proof() -> None:
    for n, (p, q) in join(sized(), product((2,), pairs(4, FEW))):
        assert priority_faults(p, q, n) == [], (p, q, n)


def ranked_faults(rule: rules.Ranked, p: Law, q: Law, n: int) -> list[str]:
    """Which premises of ranked_exact fail, and where rule and definition part."""
    plan = rule.plan(row(p), row(q), n)
    drafted = [x for x in range(len(q)) if q[x]]
    draws = of.without_replacement()
    weights = {t: w for t in product(drafted, repeat=n) if (w := of.weight(draws, (p, q), t))}
    sel = selection(rule, plan, weights, len(q))
    highest = {
        t: tuple(
            sum(
                (
                    c
                    for c, ranks in zip(plan.weights, plan.ranks, strict=True)
                    if max(t, key=lambda z: ranks[z]) == x
                ),
                of.ZERO,
            )
            for x in range(len(q))
        )
        for t in weights
    }
    laws = [of.ranked_law(weights, ranks) for ranks in plan.ranks]
    k = of.selected(weights, sel)
    a, f = of.optimal_parts(p, k)
    accept, residual = rule.accept(plan), rule.residual(plan)
    holds = {
        "the weights are a law": sum(plan.weights) == 1 and min(plan.weights) >= 0,
        "the ranks differ": all(len({ranks[x] for x in drafted}) == len(drafted) for ranks in plan.ranks),
        "the highest is selected": sel == highest,
        "k is the mixture": k
        == tuple(
            sum((c * law[x] for c, law in zip(plan.weights, laws, strict=True)), of.ZERO)
            for x in range(len(q))
        ),
        "k is the law of the selected": k == tuple(plan.proxy),
        "a": all(accept[x] == a[x] for x in range(len(q)) if k[x]),
        "f": p == k or tuple(residual) == f,
        "exact": of.optimal_output(p, weights, sel) == p,
    }
    return [name for name, true in holds.items() if not true]


@pytest.mark.parametrize("candidates", [1, 2, 3])
def test_ranked_is_its_definition_and_meets_the_premises(candidates: int) -> None:
    seen = 0
    for p, q in grid(FEW):
        if drawable(draw_mode("without-replacement"), q, candidates):
            assert ranked_faults(rules.Ranked(), p, q, candidates) == [], (p, q)
            seen += 1
    assert seen > 50


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
    assert of.output(of.published(Q3, of.proportional), 1, P3) == fractions("107/282 46/105 1801/9870")
    assert of.output(of.published(Q3, of.waterfilling), 1, P3) == fractions("7/18 7/15 13/90")
    assert of.acceptance(of.published(Q3, of.proportional), 2, P3) == of.Fraction(89, 100)
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


class HandsOnSpecInfer(rules.ShapedWithoutReplacement):
    """Hands on the residual of recursive rejection, as if nothing had been held back."""

    def reject(self, stage: rules.Stage, token: Any) -> Any:
        return normalise(positive_part(stage.residual - stage.draft), fallback=stage.residual)


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
        ("shaped-without-replacement", HandsOnSpecInfer()),
        ("shaped-without-replacement", rules.SpecInfer()),
        ("resispec proportional", NoDeficit()),
        ("resispec waterfill", rules.ResiSpec("uniform")),
        ("resispec uniform", rules.ResiSpec("waterfill")),
        ("resispec proportional without-replacement", rules.ResiSpec("uniform")),
        ("resispec waterfill top-k", NoDeficit("waterfill")),
        ("resispec proportional eq13", rules.ResiSpec("proportional")),
        ("resispec waterfill eq13", rules.ResiSpec("proportional", "eq13")),
        ("resispec uniform eq13", rules.ResiSpec("uniform")),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_twin_is_told_apart(name: str, twin: rules.SequentialRule) -> None:
    assert faults(name, twin, FEW) != []


class First:
    """Selects the first candidate, whatever the plan says."""

    def select(self, plan: Any, tokens: Any) -> Any:
        return np.array([of.ONE] + [of.ZERO] * (len(tokens) - 1))


class FirstOptimal(First, rules.Optimal):
    pass


class FirstRanked(First, rules.Ranked):
    pass


def test_a_wrong_selection_is_told_apart() -> None:
    assert "k is the law of the selected" in selection_faults(FirstOptimal(), P3, Q3, 2)
    assert "the highest is selected" in ranked_faults(FirstRanked(), P3, Q3, 2)


def no_exchange(change: Any) -> Any:
    """Every group stays in its own window."""
    return change[:0], np.empty(0, dtype=int), np.empty(0, dtype=int)


def right_end(left: Any, right: Any, n: int) -> Any:
    """The density at the end of a window, for its mean."""
    return n * right ** (n - 1)


@pytest.mark.parametrize(("name", "twin"), [("_matched", no_exchange), ("_height", right_end)])
def test_wrong_priority_sets_are_told_apart(name: str, twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priorities, name, twin)
    scarce = fractions("0 1/6 5/6"), fractions("1/6 1/6 2/3")
    assert priority_faults(*scarce, 2) == ["the sets are the exchange", "the sets give k"]


def test_a_wrong_proxy_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    right = optimal_proxy
    monkeypatch.setitem(globals(), "optimal_proxy", lambda p, q, n: right(p, q, n)._replace(cut=0))
    assert "H is the least prefix" in priority_faults(P3, Q3, 2)


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
        if name not in ("autoregressive", "typical")
    }
    assert missing_theorems({**docs, "chain": rules.ChainRule.__doc__ or ""}, PRINTED) == {}


def test_a_rule_without_its_theorem_is_reported() -> None:
    good = "Exact (proofs/formal: ``chain_exact``, ``shaped_exact``\n    and ``shaped_optimal``)."
    assert theorems_named(good) == {"chain_exact", "shaped_exact", "shaped_optimal"}
    docs = {"a": good, "b": "Exact.", "c": good.replace("chain_exact", "chain_inexact")}
    assert missing_theorems(docs, PRINTED) == {"b": "names no theorem", "c": {"chain_inexact"}}

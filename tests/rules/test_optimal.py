"""The optimal proxy: exact, at the ceiling, with priority sets that really tile and select."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings

from resispec_core import audit, law_from_logits, parse_law, rules
from resispec_core.audit import acceptance_ceiling
from resispec_core.audit.closed_form import prefix_rounding
from resispec_core.llama.store import sample_store
from resispec_core.rules import optimal
from resispec_core.rules.base import Outcome
from resispec_core.rules.optimal import optimal_proxy
from resispec_core.rules.priorities import Pieces, Priorities
from resispec_core.testing.strategies import verification_cases


def tiling_faults(priorities, draft):
    """Groups with too little room for q, and stretches of [0, 1] not covered exactly once."""
    start, end, density = priorities.pieces
    ends = sorted({*start, *end, 0, 1})
    uneven = [(a, b) for a, b in pairwise(ends) if density[(start <= a) & (b <= end)].sum() != 1]
    short = [
        number
        for number, (first, last) in enumerate(pairwise(priorities.first))
        if priorities.pieces.masses[first:last].sum() != draft[priorities.group == number].sum()
    ]
    return uneven + short


def law_of_the_sets(priorities):
    """The law of the token with the largest priority, in rationals, from the sets as they are: for every group.

    Where the measures of all groups together have the slope s between F(a) and F(b), a group of slope d wins there with
    probability d/s·(F(b)^n − F(a)^n). Nothing is taken for uniform.
    """
    start, end, density = (np.array([Fraction(x) for x in part], dtype=object) for part in priorities.pieces)
    ends = np.array(sorted({*start, *end}), dtype=object)
    spans = list(zip(np.searchsorted(ends, start), np.searchsorted(ends, end), strict=True))
    cover: list[dict[int, Fraction]] = [{} for _ in ends[1:]]
    for group, (first, last) in enumerate(pairwise(priorities.first)):
        held = sum(density[first:last] * (end[first:last] - start[first:last]))
        drafted = sum(map(Fraction, priorities.draft[priorities.group == group].tolist()))
        for piece in range(first, last):
            for stretch in range(*spans[piece]):
                cover[stretch][group] = cover[stretch].get(group, 0) + density[piece] * drafted / held
    law, below = [Fraction(0)] * (priorities.first.size - 1), Fraction(0)
    for width, slopes in zip(ends[1:] - ends[:-1], cover, strict=True):
        slope = sum(slopes.values())
        above = below + slope * width
        for group, own in slopes.items():
            law[group] += own / slope * (above**priorities.candidates - below**priorities.candidates)
        below = above
    return law


def distance_of_the_laws(plan):
    """Total variation between ``plan.proxy`` and the law of the sets, over groups."""
    priorities, law = plan.priorities, law_of_the_sets(plan.priorities)
    said = [sum(map(Fraction, plan.proxy[priorities.group == group].tolist())) for group in range(len(law))]
    return sum(map(abs, (a - b for a, b in zip(said, law, strict=True)))) / 2


@settings(max_examples=100)
@given(verification_cases(5, 4))
def test_rational_sets_have_the_law_that_is_verified_with(case):
    assert distance_of_the_laws(rules.Optimal().plan(case.target, case.draft, case.candidates)) == 0


@pytest.mark.parametrize("size", [2, 30, 200])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_float_sets_have_that_law_within_the_bound(size, n):
    rng = np.random.default_rng(size * n)
    p, q = (rng.dirichlet(np.full(size, weight)) for weight in (0.3, 1.0))
    plan = rules.Optimal().plan(p, q, n)
    assert distance_of_the_laws(plan) <= n * prefix_rounding(size, p)


@settings(max_examples=100)
@given(verification_cases(5, 4))
def test_a_priority_is_where_its_coin_is_in_the_set(case):
    """Below the priority that a coin gives lies that share of the token's set."""
    priorities = rules.Optimal().plan(case.target, case.draft, case.candidates).priorities
    for token in np.flatnonzero(case.draft > 0):
        start, end, density = priorities.of(token)
        for coin in (Fraction(place, 7) for place in range(7)):
            at = priorities.priority(token, coin)
            below = (density * np.maximum(np.minimum(end, at) - start, 0)).sum()
            assert below == coin * (density * (end - start)).sum()
            assert ((start <= at) & (at <= end)).any()


def test_sets_in_another_place_are_noticed():
    rng = np.random.default_rng(0)
    plan = rules.Optimal().plan(*rng.dirichlet(np.ones(30), size=2), 3)
    start, end, density = plan.priorities.pieces
    moved = Pieces(np.where(start > 0, start + 1e-6, 0), end + 1e-6, density)
    assert distance_of_the_laws(plan._replace(priorities=replace(plan.priorities, pieces=moved))) > 1e-9


@settings(max_examples=1000)
@given(verification_cases(5, 4))
def test_the_sets_tile_and_select_with_the_optimal_proxy(case):
    p, q, n = case.target, case.draft, case.candidates
    proxy = optimal_proxy(p, q, n)
    plan = rules.Optimal().plan(p, q, n)
    assert tiling_faults(plan.priorities, q) == []
    assert (plan.priorities.pieces.density > 0).all()
    assert plan.proxy[proxy.order].tolist() == proxy.mass.tolist()
    assert plan.proxy.sum() == proxy.mass.sum() == 1
    assert np.minimum(p, plan.proxy).sum() == acceptance_ceiling(p, q, n)


@settings(max_examples=150)
@given(verification_cases(4, 3))
def test_every_tuple_summed_is_exact_and_meets_the_ceiling(case):
    report = audit("optimal", case.target, case.draft, case.candidates)
    assert report.method == "every path"
    assert report.verdict == "EXACT"
    assert report.acceptance == report.ceiling


def test_overlapping_sets_are_seen():
    q = parse_law("1/2,1/2")
    half, whole = Fraction(1, 2), Fraction(1)
    quarter = Fraction(1, 4)

    def sets(second_start):
        rows = ([Fraction(0), second_start], [half, whole], [whole, whole])
        pieces = Pieces(*(np.array(row, dtype=object) for row in rows))
        return Priorities(q, 2, np.array([0, 1]), pieces, np.array([0, 1, 2]))

    good, bad = sets(half), sets(quarter)
    assert tiling_faults(good, q) == []
    assert tiling_faults(bad, q) != []
    assert good.selection_law().tolist() == [quarter, 1 - quarter]
    assert good.selection((0, 1)).tolist() == [0, 1]
    assert good.selection((1, 1)).tolist() == [half, half]


class WrongProxy(rules.Optimal):
    """Verifies with the draft law instead of the law of the selected candidate."""

    name = "wrong-proxy"

    def accept(self, plan):
        return np.minimum(plan.target / plan.priorities.draft, 1)


def test_verifying_with_the_draft_law_is_biased():
    p, q = parse_law("1/10,2/10,3/10,4/10"), parse_law("4/10,3/10,2/10,1/10")
    assert audit(WrongProxy(), p, q, 2).verdict == "BIASED"


def test_running_the_rule_follows_the_audited_law():
    """All coins on a grid of midpoints: each of three decisions is off by at most 1/(2m) of the tuple's mass."""
    p, q, m, rule = np.array([0.25, 0.5, 0.25]), np.array([0.5, 0.125, 0.375]), 12, rules.Optimal()
    coins, law = [(k + 0.5) / m for k in range(m)], np.zeros(3)
    for tokens in [(a, b) for a in range(3) for b in range(3)]:
        weight = q[list(tokens)].prod() / m**3
        for first in coins:
            for second in coins:
                for last in coins:
                    # The accept coin and the resample coin are one: their decisions exclude each other.
                    law[rule.verify(p, q, tokens, [first, second, last, last]).token] += weight
    assert np.abs(law - p).sum() / 2 <= 3 / m


@pytest.mark.parametrize("row", range(0, 28, 3))
def test_real_rows_meet_the_ceiling(row):
    p, q = (law_from_logits(side) for side in sample_store().row(row))
    report = audit("optimal", p, q, 3)
    assert report.verdict == "EXACT_WITHIN"
    assert abs(report.acceptance - report.ceiling) < 1e-9


@settings(max_examples=500)
@given(verification_cases(12, 5, rational=False))
def test_float_sets_meet_the_ceiling(case):
    plan = rules.Optimal().plan(case.target, case.draft, case.candidates)
    found = np.minimum(case.target, plan.proxy).sum()
    # Running sums: a few eps a token, times the slope n of the cake.
    assert abs(found - acceptance_ceiling(case.target, case.draft, case.candidates)) < 1e-13 * case.candidates


def light_ends():
    """Pairs whose first or last token by p/q is so light that its segment holds nothing but rounding."""
    yield (
        np.array([8.333333333333332e-17, 0.6666666666666666, 0.3333333333333333]),
        np.array([9.09090909090909e-20, 0.6363636363636362, 0.36363636363636365]),
    )
    p = law_from_logits(sample_store().row(9)[0], temperature=0.1)
    yield p, 0.999 * p + 0.001 * law_from_logits(sample_store().row(9)[1], temperature=0.1)
    rng = np.random.default_rng(57)  # found among 3,600: c₁ is rarely the level that such a token sets
    p, q = rng.dirichlet(np.full(50, 0.5), size=2)
    q, light = 0.999 * p + 0.001 * q, rng.integers(50)
    q[light], p[light] = 1e-15, 1e-18
    yield p / p.sum(), q / q.sum()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p, q = rng.dirichlet(np.full(300, 0.5)), rng.dirichlet(np.full(300, 0.5))
        light = rng.integers(300)
        q[light] = 1e-19
        p[light] = q[light] * (1e-3, 1e3)[seed % 2]
        if seed % 4 > 1:
            q = 0.999 * p + 0.001 * q  # saturated: the ceiling is nearly 1
        yield p / p.sum(), q / q.sum()


def missed(p, q, n):
    """What the plan's acceptance is off by."""
    found = np.minimum(p, rules.Optimal().plan(p, q, n).proxy).sum()
    return abs(found - acceptance_ceiling(p, q, n))


@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_light_tokens_at_the_ends_do_not_set_the_levels(n):
    assert max(missed(p, q, n) for p, q in light_ends()) < 1e-13 * n


@pytest.mark.parametrize(("level", "least"), [("_raised", 1e-6), ("_cut", 1e-4)])
def test_a_level_outside_its_segment_is_noticed(monkeypatch, level, least):
    """Each level left as the quotient gives it, once."""
    kept = getattr(optimal, level)

    def unbounded(*sums):
        with monkeypatch.context() as patch:
            patch.setattr(optimal, "_within", lambda quotient, *_: quotient)
            return kept(*sums)

    monkeypatch.setattr(optimal, level, unbounded)
    assert max(missed(p, q, n) for p, q in light_ends() for n in (2, 3, 4, 8)) > least


@pytest.mark.parametrize(
    ("draft", "candidates"),
    [([0.0, 1.0, 5e-324], 4), ([0.0, 1.0, 2.0**-53], 2), ([0.0, 1.0, 8e-64], 1), ([0.0, 1.0, 1e-60], 6)],
)
def test_masses_that_no_stretch_of_floats_can_hold(draft, candidates):
    """Found by fuzzing: an empty stretch was divided by its mass, and densities of tiny masses overflowed."""
    target, draft = np.array([1.0, 0.0, 0.0]), np.array(draft)
    plan = rules.Optimal().plan(target, draft, candidates)
    for tokens in ([2] * candidates, [2] * (candidates - 1) + [1]):
        chosen = rules.Optimal().select(plan, tokens)
        assert abs(chosen.sum() - 1) <= 4 * candidates * np.finfo(float).eps
        # Token 1 shares its set with token 2, or always ranks above it.
        assert tokens[-1] == 2 or chosen[-1] >= 1 / candidates
    coins = [0.5] * (candidates + 2)
    assert rules.Optimal().verify(target, draft, [2] * candidates, coins).token == 0


@pytest.mark.parametrize("name", ["optimal", "specinfer", "k-seq", "shaped", "resispec", "single-draft"])
def test_each_coin_of_a_verification_has_its_own_use(name):
    """The law of ``verify`` over a grid of coins that every threshold is on: p, so no coin decides two things."""
    p, q = (
        parse_law("3/8,3/8,1/4"),
        parse_law("1/8,1/8,3/4"),
    )  # accepts token 2 with 1/3, then owes the others alike
    rule = rules.rule(name)
    coins = [Fraction(2 * place + 1, 12) for place in range(6)]
    found = [Fraction(0)] * 3
    for token in range(3):
        for tape in product(coins, repeat=rule.coins(1)):
            found[rule.verify(p, q, [token], tape).token] += q[token] / len(coins) ** rule.coins(1)
    assert found == p.tolist()


@pytest.mark.parametrize("name", ["optimal", "specinfer", "k-seq", "shaped", "resispec", "typical"])
def test_the_last_coin_alone_resamples(name):
    """Nothing that is drafted can be accepted, so the token is where the last coin is in p, whatever the others are."""
    p, q = parse_law("1/4,1/4,1/2,0"), parse_law("0,0,0,1")
    rule = rules.rule(name)
    for others, last, token in ((Fraction(9, 10), Fraction(1, 10), 0), (Fraction(1, 10), Fraction(9, 10), 2)):
        tape = [others] * (rule.coins(2) - 1) + [last]
        assert rule.verify(p, q, [3, 3], tape) == Outcome(token, -1)

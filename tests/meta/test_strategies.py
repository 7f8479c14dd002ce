"""The strategies reach the corners they promise, and what they find shrinks to something readable."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from resispec_core import InputError, audit, law, parse_law, rules
from resispec_core.audit.replay import replay_step
from resispec_core.audit.replay.numpy_source import REFUSED
from resispec_core.drafts import DRAW_MODES, draw_mode
from resispec_core.laws import law as checked_law
from resispec_core.laws import law_from_logits
from resispec_core.testing import (
    VerificationCase,
    draft_trees,
    float_laws,
    generators,
    law_pairs,
    markov_tables,
    rational_laws,
    target_tv,
    verification_cases,
)

SEARCH = settings(
    max_examples=500, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@settings(max_examples=500)
@given(rational_laws(1, 6, max_weight=12))
def test_rational_laws_are_laws_with_small_denominators(row):
    assert checked_law(row) is not None
    assert all(isinstance(x, Fraction) and x.denominator <= 6 * 12 for x in row)


@settings(max_examples=500)
@given(float_laws(1, 6))
def test_float_laws_are_laws(row):
    assert row.dtype == np.float64
    assert law(row).tolist() == row.tolist()


@settings(max_examples=200)
@given(rational_laws(1, 6, allow_zeros=False), float_laws(1, 6, allow_zeros=False))
def test_full_support_on_request(exact, floating):
    assert (exact > 0).all()
    # A subnormal weight beside others may round to zero when divided by their sum; anything larger may not.
    assert (floating > 0).sum() >= 1


@pytest.mark.parametrize("rational", [True, False])
@pytest.mark.parametrize(
    "corner",
    [
        lambda p, q: p.size == 1,
        lambda p, q: p.size > 1 and (p == q).all(),
        lambda p, q: p.size > 1 and 0 < abs(p - q).sum() < 1e-9,
        lambda p, q: p.size > 1 and (p * q == 0).all(),
        lambda p, q: p.size > 2 and (q == 1).any() and not (p == q).all(),
        lambda p, q: p.size > 2 and (p == 1).any() and not (p == q).all(),
        lambda p, q: p.size > 2 and (p == q[::-1]).all() and not (p == q).all(),
        lambda p, q: p.size > 2 and ((p == 0) & (q > 0)).any() and ((q == 0) & (p > 0)).any(),
        lambda p, q: p.size == 5 and np.unique(p).size < 5 and (p > 0).all(),
    ],
    ids=[
        "one token",
        "equal",
        "near",
        "disjoint",
        "point draft",
        "point target",
        "reversed",
        "zeros",
        "ties",
    ],
)
def test_every_corner_is_reached(rational, corner):
    find(law_pairs(1, 5, rational=rational), lambda pair: bool(corner(*pair)), settings=SEARCH)


def test_the_search_can_fail():
    """The planted fault: a corner that does not exist is not found."""
    with pytest.raises(NoSuchExample):
        find(law_pairs(2, 3), lambda pair: pair[0].size == 4, settings=SEARCH)


def test_subnormal_masses_are_reached():
    found = find(float_laws(2, 4), lambda row: bool(((row > 0) & (row < 1e-308)).any()), settings=SEARCH)
    assert found.size == 2


@pytest.mark.parametrize("name", DRAW_MODES)
def test_cases_ask_for_no_more_candidates_than_the_draft_gives(name):
    mode = draw_mode(name)

    @settings(max_examples=200)
    @given(verification_cases(4, 4, draws=name))
    def check(case):
        mode.check(case.draft, case.candidates)
        assert case.target.size == case.draft.size <= 4
        assert 1 <= case.candidates <= 4

    check()


def test_the_bias_of_the_published_rule_shrinks_to_a_readable_case():
    case = find(
        verification_cases(5, 3),
        lambda case: audit("resispec", case.target, case.draft, case.candidates).verdict == "BIASED",
        settings=SEARCH,
    )
    assert case.candidates == 1
    assert case.target.size <= 3
    assert max(x.denominator for x in [*case.target, *case.draft]) <= 6


class Lenient(rules.SpecInfer):
    """Accepts one percent too much."""

    name = "lenient"

    def accept(self, stage):
        return np.minimum(super().accept(stage) * Fraction(101, 100), Fraction(1))


@pytest.mark.parametrize("rational", [True, False])
def test_a_one_percent_fault_is_found_within_a_hundred_examples(rational):
    def biased(case):
        rule = Lenient()
        if not rational:
            rule.accept = lambda stage: np.minimum(rules.SpecInfer.accept(rule, stage) * 1.01, 1.0)
        return audit(rule, case.target, case.draft, case.candidates).verdict == "BIASED"

    find(
        verification_cases(5, 3, rational=rational),
        biased,
        settings=settings(SEARCH, max_examples=100, phases=[Phase.generate]),
    )


def test_a_case_prints_as_something_to_paste():
    case = VerificationCase(parse_law("1/3,2/3"), parse_law("1/2,1/2"), 2)
    assert repr(case) == "VerificationCase(parse_law('1/3,2/3'), parse_law('1/2,1/2'), candidates=2)"
    again = eval(repr(case), {"VerificationCase": VerificationCase, "parse_law": parse_law})
    assert again.target.tolist() == case.target.tolist()
    floats = VerificationCase(law([0.25, 0.75]), law([0.5, 0.5]), 1)
    assert repr(floats) == "VerificationCase(law([0.25, 0.75]), law([0.5, 0.5]), candidates=1)"


@settings(max_examples=50)
@given(st.sampled_from([(0, 3), (3, 2), (-1, 1)]))
def test_impossible_sizes_are_refused_at_once(sizes):
    for strategy in (rational_laws, float_laws, law_pairs):
        with pytest.raises(InputError, match="pass 1 <= min_size <= max_size"):
            strategy(*sizes)


@settings(max_examples=200)
@given(
    verification_cases(
        4,
        3,
        rational=False,
        draws=list(DRAW_MODES),
        temperatures=(0.1, 1.0, 2.0),
        dtypes=("float64", "float32"),
    )
)
def test_logits_have_the_laws_of_the_case(case):
    draw_mode(case.draw).check(case.draft, case.candidates)
    # log p of magnitude up to 745 in float64 and 104 in float32, each with a relative error of eps.
    allowed = 2000 * np.finfo(case.dtype).eps
    for row, logits in zip((case.target, case.draft), case.logits(), strict=True):
        assert logits.dtype == case.dtype
        found = law_from_logits(logits, temperature=case.temperature)
        assert np.abs(found - row).sum() <= allowed


@pytest.mark.parametrize(
    "wanted",
    [
        lambda case: case.draw == "greedy" and case.candidates == 3,
        lambda case: case.temperature == 0.1,
        lambda case: case.dtype == "float16" and case.target.size > 1,
    ],
)
def test_draws_temperatures_and_types_are_reached(wanted):
    cases = verification_cases(
        4, 3, rational=False, draws=["iid", "greedy"], temperatures=(1.0, 0.1), dtypes=("float64", "float16")
    )
    case = find(cases, wanted, settings=SEARCH)
    assert eval(repr(case), {"VerificationCase": VerificationCase, "law": law}).draw == case.draw


def test_unknown_types_are_refused():
    with pytest.raises(InputError, match="dtypes holds 'float8'; known: float64"):
        find(verification_cases(dtypes=("float8",)), lambda case: True, settings=SEARCH)
    with pytest.raises(InputError, match="pass rational=False"):
        find(verification_cases(dtypes=("float32",)), lambda case: True, settings=SEARCH)


@settings(max_examples=100)
@given(markov_tables(2, 3))
def test_markov_tables_are_laws_after_every_token(tables):
    for model in tables:
        for prefix in [(), *((token,) for token in range(model.size))]:
            row = model(prefix)
            assert row.sum() == 1
            assert max(x.denominator for x in row) <= 18


def greedy_bonus(target_model, draft_model, prefix, rng):
    row = target_model(prefix)
    token = int(rng.choice(len(row), p=row))
    return [token, int(np.argmax(target_model([*prefix, token])))]


def test_a_fault_of_the_second_token_shrinks_to_two_tokens():
    def shows(tables):
        target, _ = tables
        return any(max(target.rows[token]) < 1 for token in np.flatnonzero(target.start > 0).tolist())

    target, draft = find(markov_tables(2, 3), shows, settings=SEARCH)
    assert target.size == 2
    assert max(x.denominator for row in target.rows for x in row) == 2
    report = replay_step(greedy_bonus, target, draft, horizon=2, extend="target", monte_carlo=0)
    assert (report.verdict, report.first_token) == ("BIASED", 0)


@settings(max_examples=200)
@given(draft_trees(6, 2), draft_trees(6, 2, distinct=True))
def test_trees_have_their_parents_first(any_tree, distinct):
    for tree in (any_tree, distinct):
        assert 1 <= len(tree) <= 6
        assert all(-1 <= parent < place and 0 <= token < 2 for place, (parent, token) in enumerate(tree))
    assert len(set(distinct)) == len(distinct)


def test_repeated_siblings_and_deep_trees_are_reached():
    find(draft_trees(6, 3), lambda tree: len(set(tree)) < len(tree), settings=SEARCH)
    find(draft_trees(4, 3), lambda tree: [parent for parent, _ in tree] == [-1, 0, 1, 2], settings=SEARCH)
    with pytest.raises(NoSuchExample):
        find(draft_trees(6, 3, distinct=True), lambda tree: len(set(tree)) < len(tree), settings=SEARCH)


def test_targeting_finds_a_worse_pair():
    def worst(aimed):
        seen = []

        @settings(SEARCH, max_examples=200, phases=[Phase.generate, Phase.target])
        @given(verification_cases(4, 1, min_vocab=3))
        def look(case):
            report = audit("resispec", case.target, case.draft, 1)
            seen.append(float((target_tv(report) if aimed else report).total_variation))

        look()
        return max(seen)

    assert worst(aimed=True) >= worst(aimed=False) > 0.2


def masked_at_zero(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] <= target[x]:  # a coin of exactly 0 accepts what the target never gives
        return x
    return int(rng.choice(len(target), p=target))


def strict(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] < target[x]:
        return x
    return int(rng.choice(len(target), p=target))


@pytest.mark.parametrize("verify", [masked_at_zero, strict])
def test_chosen_coins_find_a_token_that_the_target_never_gives(verify):
    def impossible(arguments):
        case, rng = arguments
        return any(
            case.target[verify(case.target, case.draft, [token], rng)] == 0
            for token in np.flatnonzero(case.draft > 0).tolist()
        )

    search = st.tuples(verification_cases(4, 1, rational=False), generators())
    if verify is strict:
        with pytest.raises(NoSuchExample):
            find(search, impossible, settings=SEARCH)
    else:
        case, _ = find(search, impossible, settings=settings(SEARCH, max_examples=100))
        assert case.target.size == 2


@settings(max_examples=100)
@given(generators())
def test_chosen_generators_draw_what_numpy_could(rng):
    assert isinstance(rng, np.random.Generator)
    assert 0 <= rng.random() < 1
    coins = rng.random((2, 3), dtype=np.float32)
    assert coins.dtype == np.float32
    assert ((coins >= 0) & (coins < 1)).all()
    assert (coins * 2**24 == np.floor(coins * 2**24)).all()
    assert rng.choice(4, p=[0, 0.5, 0, 0.5]) in (1, 3)
    assert rng.choice(["a", "b"]) in ("a", "b")
    assert len(set(rng.choice(5, size=3, replace=False).tolist())) == 3
    assert sorted(rng.permutation(4).tolist()) == [0, 1, 2, 3]
    assert 2 <= rng.integers(2, 5) < 5
    assert rng.integers(3, size=2, endpoint=True).max() <= 3
    assert 1 <= rng.uniform(1, 2) <= 2  # 2 by rounding, as NumPy documents
    assert rng.exponential() >= 0
    assert np.isfinite(rng.gumbel(size=3)).all()
    assert 0 <= rng.integers(2**40) < 2**40
    assert rng.multinomial(1, [0, 0.5, 0.5]).tolist() in ([0, 1, 0], [0, 0, 1])
    place = np.empty(2, dtype=np.float32)
    assert rng.random(out=place) is place
    assert ((place >= 0) & (place < 1)).all()
    items = [1, 2, 3]
    rng.shuffle(items)
    assert sorted(items) == [1, 2, 3]
    with pytest.raises(ValueError, match="do not sum to 1"):
        rng.choice(2, p=[0.5, 0.6])
    with pytest.raises(ValueError, match="larger sample than population"):
        rng.choice(2, size=3, replace=False)


def test_other_draws_are_refused_by_name():
    assert {"normal", "bytes", "bit_generator"} <= set(REFUSED["Generator"])

    @settings(max_examples=2)
    @given(generators())
    def check(rng):
        with pytest.raises(InputError, match=r"Generator\.normal is read .*Hypothesis does not choose it"):
            rng.normal()
        with pytest.raises(InputError, match=r"Generator\.bit_generator is read at test_strategies"):
            _ = rng.bit_generator

    check()

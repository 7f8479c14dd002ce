"""Properties every rule shares, and the concrete verifier against the enumerated law."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resispec_core import InputError, audit, parse_law, rules
from resispec_core.drafts import draw_mode
from resispec_core.rules import RULES, rule
from resispec_core.testing.strategies import verification_cases

SEQUENTIAL = [
    name for name in RULES if issubclass(RULES[name], rules.SequentialRule) and name != "single-draft"
]


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_permuting_tokens_permutes_the_law(name):
    if "iid" not in RULES[name].draws:
        pytest.skip("top-k breaks ties by token id, so its candidates are not equivariant")

    @settings(max_examples=60)
    @given(verification_cases(4, 2), st.randoms(use_true_random=False))
    def check(case, random):
        order = list(range(case.target.size))
        random.shuffle(order)
        straight = audit(name, case.target, case.draft, case.candidates)
        turned = audit(name, case.target[order], case.draft[order], case.candidates)
        assert turned.law.tolist() == straight.law[order].tolist()
        assert turned.acceptance == straight.acceptance

    check()


@pytest.mark.parametrize(
    ("p", "q", "acceptance"),
    [("1", "1", 1), ("1/2,1/4,1/4", "1/2,1/4,1/4", 1), ("1,0", "0,1", 0), ("0,1", "1/2,1/2", None)],
)
@pytest.mark.parametrize("name", ["specinfer", "resispec", "shaped", "k-seq"])
def test_corners(name, p, q, acceptance):
    report = audit(name, parse_law(p), parse_law(q), 2)
    assert acceptance is None or report.acceptance == acceptance
    if name != "resispec":
        assert report.verdict == "EXACT"


def threshold(below):
    """The coin up to which ``below(coin)`` holds, to 2^-45, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2


def law_of_running(verify, mode, q, size):
    """The law of ``verify`` for two candidates, measured at the coins where its decisions change."""
    law, never = np.zeros(size), 1 - 2**-53
    for tokens, weight in mode.tuples(q, 2):
        first = threshold(lambda u, t=tokens: verify(t, [u, never, 0.5]).accepted == 0)
        second = threshold(lambda u, t=tokens: verify(t, [never, u, 0.5]).accepted == 1)
        law[tokens[0]] += weight * first
        law[tokens[1]] += weight * (1 - first) * second
        if first < 1 - 2**-40 and second < 1 - 2**-40:
            steps = [
                threshold(lambda u, t=tokens, y=y: verify(t, [never, never, u]).token <= y)
                for y in range(size)
            ]
            law += weight * (1 - first) * (1 - second) * np.diff([0.0, *steps])
    return law


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_running_the_rule_gives_the_audited_law(name):
    p, q, mode = np.array([0.25, 0.5, 0.25]), np.array([0.5, 0.125, 0.375]), rule(name).draw_mode()
    law = law_of_running(lambda *given: rule(name).verify(p, q, *given), mode, q, 3)
    # Every threshold is known to 2^-45, and at most four meet in one path.
    np.testing.assert_allclose(law, audit(name, p, q, 2).law, atol=9 * 4 * 2**-40)


def test_running_a_rule_that_resamples_from_the_target_is_seen():
    class Wrong(rules.SpecInfer):
        def reject(self, stage, token):
            return stage.target

    p, q, mode = np.array([0.25, 0.5, 0.25]), np.array([0.5, 0.125, 0.375]), draw_mode("iid")
    law = law_of_running(lambda *given: Wrong().verify(p, q, *given), mode, q, 3)
    assert np.abs(law - p).max() > 0.01


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_a_coin_of_zero_never_accepts_an_impossible_token(name):
    p, q = parse_law("0,1/2,1/2"), parse_law("1/2,1/4,1/4")
    tokens = next(iter(rule(name).draw_mode().tuples(q, 2)))[0]
    for coin in (Fraction(0), Fraction(2**53 - 1, 2**53)):
        outcome = rule(name).verify(p, q, tokens, [Fraction(0), Fraction(0), coin])
        assert p[outcome.token] > 0


def test_wrong_coins_and_tokens_are_refused():
    p, q = parse_law("1/2,1/2"), parse_law("1/4,3/4")
    with pytest.raises(InputError, match="2 coins given, 3 needed"):
        rules.SpecInfer().verify(p, q, [0, 1], [0, 0])
    with pytest.raises(InputError, match="coin 1 is 1; coins are uniforms"):
        rules.SpecInfer().verify(p, q, [0, 1], [0, 1, 0])
    with pytest.raises(InputError, match="candidate 1 is token 2, outside the vocabulary"):
        rules.SpecInfer().verify(p, q, [0, 2], [0, 0, 0])


def test_pairing_a_rule_with_another_draw_is_an_error_unless_asked_for():
    p, q = parse_law("1/2,3/10,1/5"), parse_law("3/5,3/10,1/10")
    with pytest.raises(InputError, match="mismatched=True"):
        audit("shaped", p, q, 2, draw="top-k")
    # A greedy draft scored as if it had been sampled: the law that bug report states, 5/6, 0, 1/6.
    report = audit("shaped", p, q, 1, draw="top-k", mismatched=True)
    assert report.verdict == "BIASED"
    assert report.law.tolist() == [Fraction(5, 6), 0, Fraction(1, 6)]


@pytest.mark.parametrize("name", ["resispc", "Specinfer"])
def test_near_misses_are_suggested(name):
    with pytest.raises(InputError, match="did you mean"):
        rule(name)


def test_more_candidates_than_the_draft_can_give_are_refused():
    p, q = parse_law("1/2,1/4,1/4"), parse_law("1/2,1/2,0")
    with pytest.raises(InputError, match="at most 2"):
        audit("specinfer", p, q, 3, draw="without-replacement")
    assert audit("specinfer", p, q, 3, draw="top-k").verdict == "EXACT"


@pytest.mark.parametrize("draw", ["iid", "without-replacement", "top-k", "greedy"])
def test_tuples_have_total_weight_one_and_sampling_follows_them(draw):
    q, mode = parse_law("1/2,1/3,1/6"), draw_mode(draw)
    weights = dict(mode.tuples(q, 2))
    assert sum(weights.values()) == 1
    rng = np.random.default_rng(1)
    assert {mode.sample(q, 2, rng) for _ in range(50)} <= set(weights)


def test_typical_takes_every_epsilon_and_delta_that_make_a_threshold():
    for epsilon, delta in ((0.0, 0.0), (1.0, 7.0)):
        assert rules.Typical(epsilon, delta).delta == delta
    for epsilon, delta in ((-0.1, 0.3), (1.1, 0.3), (0.1, -1e-9), (0.1, float("nan"))):
        with pytest.raises(InputError, match=rf"epsilon is {epsilon} and delta is {delta}"):
            rules.Typical(epsilon, delta)

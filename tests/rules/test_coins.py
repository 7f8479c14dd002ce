"""``verify`` read as a black box of its coins: its thresholds, found by bisection, give the enumerated law.

Bisection is exact: every threshold of these cases is a fraction with denominator at most ``DENOMINATOR``, so an
interval shorter than 1/(2·DENOMINATOR²) holds one candidate only.
"""

from fractions import Fraction

import pytest

from resispec_core import audit, parse_law
from resispec_core.drafts import draw_mode
from resispec_core.rules import Outcome, ResiSpec, Shaped, SpecInfer

DENOMINATOR = 10**5
ALMOST_ONE = 1 - Fraction(1, 2**64)


def threshold(below):
    """The c in [0, 1] with ``below(coin)`` true exactly for coins < c; ``below`` is monotone."""
    if not below(Fraction(0)):
        return Fraction(0)
    if below(ALMOST_ONE):
        return Fraction(1)
    low, high = Fraction(0), ALMOST_ONE
    while high - low > Fraction(1, 2 * DENOMINATOR**2):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return ((low + high) / 2).limit_denominator(DENOMINATOR)


def law_from_coins(rule, p, q, candidates, draw):
    """Σ over tuples of the measure of the coins that lead to each token."""
    law = [Fraction(0)] * p.size
    for tokens, weight in draw_mode(draw).tuples(q, candidates):
        left = weight

        def run(index, coin, tokens=tokens):
            coins = [ALMOST_ONE] * candidates + [Fraction(0)]
            coins[index] = coin
            return rule.verify(p, q, tokens, coins, draw)

        for index, token in enumerate(tokens):
            accepted = threshold(lambda coin, index=index: run(index, coin).accepted == index)
            law[token] += left * accepted
            left *= 1 - accepted
            if left == 0:
                break
        if left == 0:
            continue
        steps = [
            threshold(lambda coin, token=token: run(candidates, coin).token <= token)
            for token in range(p.size)
        ]
        for token, (start, stop) in enumerate(zip([Fraction(0), *steps], steps, strict=False)):
            law[token] += left * (stop - start)
    return law


CASES = [
    (SpecInfer(), "iid", 2),
    (SpecInfer(), "without-replacement", 2),
    (SpecInfer(), "top-k", 2),
    (SpecInfer(), "greedy", 2),
    (ResiSpec("proportional"), "iid", 1),
    (ResiSpec("waterfill"), "iid", 2),
    (ResiSpec("uniform", "eq13"), "iid", 1),
    (Shaped(), "iid", 2),
]


@pytest.mark.parametrize(("rule", "draw", "candidates"), CASES)
@pytest.mark.parametrize(("p", "q"), [("1/3,1/3,1/3", "1/2,2/5,1/10"), ("0,1/4,3/4", "1/2,1/2,0")])
def test_the_measure_of_the_coins_is_the_enumerated_law(rule, draw, candidates, p, q):
    p, q = parse_law(p), parse_law(q)
    found = audit(rule, p, q, candidates, draw=draw)
    assert law_from_coins(rule, p, q, candidates, draw) == found.law.tolist()


def non_strict(kind):
    """The planted fault: ``u <= ratio``, as a kernel with coins that include 0 might have it."""

    class NonStrict(kind):
        def verify(self, target, draft, tokens, coins, draw=None):
            shifted = [coin - Fraction(1, 2**80) if coin > 0 else None for coin in coins[:-1]]
            for index, coin in enumerate(shifted):
                if coin is None:  # u = 0 satisfies u <= ratio for every ratio
                    return Outcome(tokens[index], index)
            return super().verify(target, draft, tokens, [*shifted, coins[-1]], draw)

    return NonStrict()


def accepts_an_impossible_token(rule):
    p, q = parse_law("0,1/2,1/2"), parse_law("1/2,1/4,1/4")
    outcome = rule.verify(p, q, [0, 0], [Fraction(0), Fraction(0), Fraction(0)])
    return p[outcome.token] == 0


@pytest.mark.parametrize("kind", [SpecInfer, ResiSpec, Shaped])
def test_a_coin_of_zero_never_accepts_an_impossible_token_and_the_non_strict_twin_does(kind):
    assert not accepts_an_impossible_token(kind())
    assert accepts_an_impossible_token(non_strict(kind))


class OffByOne(SpecInfer):
    """Reads each stage's coin one place too late."""

    name = "off-by-one"

    def verify(self, target, draft, tokens, coins, draw=None):
        return super().verify(target, draft, tokens, [*coins[1:], coins[0]], draw)


class LateResidual(SpecInfer):
    """Resamples from the target instead of the residual."""

    name = "late-residual"

    def verify(self, target, draft, tokens, coins, draw=None):
        outcome = super().verify(target, draft, tokens, coins, draw)
        if outcome.accepted >= 0:
            return outcome
        return Outcome(int(coins[-1] * target.size), -1)


@pytest.mark.parametrize("twin", [OffByOne(), LateResidual()])
def test_a_verify_that_departs_from_its_rule_is_caught(twin):
    p, q = parse_law("1/3,1/3,1/3"), parse_law("1/2,2/5,1/10")
    assert law_from_coins(twin, p, q, 2, "iid") != audit(SpecInfer(), p, q, 2).law.tolist()

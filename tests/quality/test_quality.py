"""Are faults found soon, and do they shrink to something one can read?

Each sampler is planted with one fault of the kind that was met in shipped code. Hypothesis gets 100 examples of the
strategy that users are told to take; what it finds must shrink to at most four tokens with denominators of at most 12.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from resispec_core.audit import Verdict
from resispec_core.audit.replay import replay_verify
from resispec_core.testing import verification_cases

SEARCH = settings(
    max_examples=100,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)
MOST_TOKENS, LARGEST_DENOMINATOR = 4, 12


def residual(p, q):
    left = np.maximum(p - q, 0 * p)
    return left / left.sum() if left.sum() > 0 else p


def draw(row, rng):
    return int(rng.choice(len(row), p=row))


def right(target, draft, candidates, rng):
    for x in candidates:
        if rng.random() * draft[x] < target[x]:
            return x
        target = residual(target, draft)
    return draw(target, rng)


def whole_target_after_a_rejection(target, draft, candidates, rng):
    x = candidates[0]
    return x if rng.random() * draft[x] < target[x] else draw(target, rng)


def residual_of_one_entry(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] < target[x]:
        return x
    owed = target.copy()
    owed[x] = 0 * owed[x]
    return draw(owed / owed.sum() if owed.sum() > 0 else target, rng)


def residual_minus_a_scalar(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] < target[x]:
        return x
    return draw(residual(target, draft[x]), rng)


def arguments_swapped(target, draft, candidates, rng):
    x = candidates[0]
    return x if rng.random() * target[x] < draft[x] else draw(residual(target, draft), rng)


def stale_residual_for_later_candidates(target, draft, candidates, rng):
    owed = residual(target, draft)
    for x in candidates:
        if rng.random() * draft[x] < target[x]:
            return x
    return draw(owed, rng)


def coin_of_the_test_used_again(target, draft, candidates, rng):
    x, coin = candidates[0], rng.random()
    if coin * draft[x] < target[x]:
        return x
    total = 0 * target[0]
    for token, mass in enumerate(residual(target, draft)):
        total = total + mass
        if coin < total:
            return token
    return len(target) - 1


def likeliest_draft_always_kept(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] < target[x] or draft[x] == draft.max():
        return x
    return draw(residual(target, draft), rng)


def additive_epsilon(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] < target[x]:
        return x
    owed = residual(target, draft) + target.sum() / 1000
    return draw(owed / owed.sum(), rng)


def last_token_never_resampled(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] < target[x]:
        return x
    owed = residual(target, draft)
    owed[-1] = 0 * owed[-1]
    return draw(owed / owed.sum(), rng) if owed.sum() > 0 else x


def best_of_the_candidates(target, draft, candidates, rng):
    return right(target, draft, sorted(candidates, key=lambda x: -target[x])[:1], rng)


FAULTS = [
    whole_target_after_a_rejection, residual_of_one_entry, residual_minus_a_scalar, arguments_swapped,
    stale_residual_for_later_candidates, coin_of_the_test_used_again, likeliest_draft_always_kept, additive_epsilon,
    last_token_never_resampled, best_of_the_candidates,
]  # fmt: skip
CASES = verification_cases(max_vocab=5, max_candidates=3)


def biased(verify):
    def check(case) -> bool:
        report = replay_verify(
            verify, case.target, case.draft, case.candidates, numbers="rational", monte_carlo=0
        )
        return report.verdict is Verdict.BIASED

    return check


@pytest.mark.parametrize("verify", FAULTS, ids=lambda verify: verify.__name__)
def test_found_within_a_hundred_examples_and_shrunk(verify) -> None:
    case = find(CASES, biased(verify), settings=SEARCH)
    assert case.target.size <= MOST_TOKENS
    assert max(x.denominator for x in [*case.target, *case.draft]) <= LARGEST_DENOMINATOR
    assert case.candidates <= 2


def test_nothing_is_found_in_the_right_sampler() -> None:
    with pytest.raises(NoSuchExample):
        find(CASES, biased(right), settings=settings(SEARCH, max_examples=50))


def test_nothing_is_found_where_no_case_shows_the_fault() -> None:
    """The search can fail: with one token there is nothing to get wrong."""
    with pytest.raises(NoSuchExample):
        find(
            verification_cases(1, 2),
            biased(whole_target_after_a_rejection),
            settings=settings(SEARCH, max_examples=10),
        )

"""One run as a list of decisions: every branch is met once, with its weight, and what cannot be is said."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest
from test_replay_coins import coin, law

from resispec_core.audit.replay.draws import Concrete, answering, required
from resispec_core.audit.replay.trail import (
    NEGLIGIBLE,
    Budget,
    Decision,
    LeakError,
    RefusalError,
    Trail,
    exact_number,
    explore,
)
from resispec_core.errors import BudgetExceededError

HALF, THIRD, SIXTH = Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)


def test_every_branch_of_positive_weight_is_met_once() -> None:
    weights = [THIRD, Fraction(0), HALF, SIXTH]

    def run(trail: Trail) -> tuple[int, int]:
        return trail.choose(weights, "a"), trail.choose(weights[::-1], lambda index: f"b {index}")

    budget = Budget()
    found = [
        (outcome, trail.weight, [d.label for d in trail.decisions]) for outcome, trail in explore(run, budget)
    ]
    assert [outcome for outcome, _, _ in found] == list(itertools.product((0, 2, 3), (0, 1, 3)))
    for (a, b), weight, labels in found:
        assert weight == weights[a] * weights[3 - b]
        assert labels == ["a", f"b {b}"]
    assert budget.used == 9
    assert sum(budget.sites.values()) == 9 + 3  # the first choice is made anew three times
    assert all(site.startswith("test_trail.py:") for site in budget.sites)


def test_a_single_branch_is_no_fork() -> None:
    trail = Trail()
    assert trail.choose([Fraction(0), Fraction(1)], "sure") == 1
    assert trail.decisions == []
    with pytest.raises(RefusalError, match=r"without a branch of positive weight at test_trail\.py"):
        trail.choose([Fraction(0)], "none")


def test_the_next_branch() -> None:
    decision = Decision("here", "x", (HALF, Fraction(0), HALF), 0)
    assert decision.advance()
    assert decision.taken == 2
    assert not decision.advance()


def test_categorical_weights_need_not_be_normalised() -> None:
    for weights in ([1, 2, 3], [0.5, 1.0, 1.5], [THIRD, 2 * THIRD, Fraction(1)]):
        assert law(lambda trail, w=weights: trail.categorical(w, "x")) == {0: SIXTH, 1: THIRD, 2: HALF}


def test_a_run_that_changes_between_paths_is_refused() -> None:
    calls: list[int] = []

    def other_weights(trail: Trail) -> None:
        calls.append(1)
        trail.choose([HALF, HALF] if len(calls) == 1 else [THIRD, 2 * THIRD], "x")

    with pytest.raises(LeakError, match="run 1 decisions deep met other branches"):
        list(explore(other_weights, Budget()))
    calls.clear()

    def fewer(trail: Trail) -> None:
        calls.append(1)
        if len(calls) == 1:
            trail.choose([HALF, HALF], "x")

    with pytest.raises(LeakError, match="ended after 0 forks where the run before met 1"):
        list(explore(fewer, Budget()))


def test_a_budget_ends_after_its_runs_and_names_the_busiest_site() -> None:
    def run(trail: Trail) -> None:
        for _ in range(6):
            trail.choose([HALF, HALF], "x")

    assert len(list(explore(run, Budget(runs=64)))) == 64
    with pytest.raises(
        BudgetExceededError, match=r"more than 63 runs .*budget 63 runs.* forks at test_trail\.py:\d+"
    ):
        list(explore(run, Budget(runs=63)))
    with pytest.raises(BudgetExceededError, match="budget 64 runs, 0 s"):
        list(explore(run, Budget(runs=64, seconds=0)))


def test_a_swallowed_refusal_is_raised_at_the_end_and_the_first_one_counts() -> None:
    def run(trail: Trail) -> None:
        trail.refuse(RefusalError("first"))
        trail.refuse(RefusalError("second"))

    with pytest.raises(RefusalError, match="first"):
        list(explore(run, Budget()))


def test_numbers_that_can_meet_a_coin() -> None:
    assert exact_number(0.1) == Fraction(0.1)
    assert exact_number(THIRD) is THIRD
    for bad in (float("inf"), float("nan"), "x", None):
        with pytest.raises(RefusalError, match="only finite numbers can"):
            exact_number(bad)


@pytest.mark.parametrize(("cut", "forks"), [(NEGLIGIBLE / 2, False), (NEGLIGIBLE * 2, True)])
def test_a_side_too_light_to_matter_is_added_to_the_bound(cut: Fraction, forks: bool) -> None:
    for below in (True, False):
        paths = list(
            explore(
                lambda trail, below=below: coin(trail) < cut if below else coin(trail) >= 1 - cut,
                Budget(),
                neglect=True,
            )
        )
        assert [bool(found) for found, _ in paths] == ([True, False] if forks else [False])
        assert sum(trail.neglected for _, trail in paths) == (0 if forks else cut)
    whole = list(explore(lambda trail: coin(trail) < cut, Budget()))
    assert {bool(found): trail.weight for found, trail in whole} == {True: cut, False: 1 - cut}


def test_a_path_runs_again_with_numbers() -> None:
    def run(_: Any) -> tuple[Any, ...]:
        trail = required()
        first = trail.uniform(None) if isinstance(trail, Concrete) else coin(trail)
        index = trail.index([1, 2], "x") if isinstance(trail, Concrete) else trail.categorical([1, 2], "x")
        second = trail.uniform(None) if isinstance(trail, Concrete) else coin(trail)
        return bool(first < THIRD), index, bool(second * 4 > 3), bool(first < HALF)

    def inside(trail: Trail) -> Any:
        with answering(trail):
            return run(trail)

    outcomes = set()
    for outcome, trail in explore(inside, Budget()):
        numbers = Concrete(trail)
        with answering(numbers):
            assert run(None) == outcome
        outcomes.add(outcome)
        with pytest.raises(RefusalError, match="draws more than its replay did"):
            numbers.next()
    assert len(outcomes) == 3 * 2 * 2


def test_no_generator_of_the_replay_works_outside_it() -> None:
    with pytest.raises(RefusalError, match="outside the replay"):
        required()

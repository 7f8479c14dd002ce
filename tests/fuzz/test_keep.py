"""The cover that chooses what stays in the corpus."""

from __future__ import annotations

from fuzz import keep
from fuzz.target import Target
from fuzz.targets import laws
from resispec_core.errors import InputError


def test_a_cover_loses_no_line_and_keeps_no_idle_case() -> None:
    reached = [
        ({"n": 1}, {("f", 1)}),
        ({"n": 2}, {("f", 1), ("f", 2)}),
        ({"n": 3}, {("g", 1)}),
        ({"n": 4}, {("f", 2)}),
    ]
    assert keep.smallest(reached) == [{"n": 2}, {"n": 3}]


def test_lines_are_those_of_the_package_and_a_few_cases_reach_most() -> None:
    kept = keep.cover(Target("laws", laws.cases, laws.check), 30, seed=1)
    assert 2 <= len(kept) < 30
    lines = keep.lines_of(Target("laws", laws.cases, laws.check), kept[0])
    assert len(lines) > 100
    assert all(file.startswith(keep.ROOM) for file, _ in lines)


def test_a_failing_case_is_not_kept_in_silence() -> None:
    def fail(case) -> None:
        raise InputError("planted")

    try:
        keep.cover(Target("laws", laws.cases, fail), 5, seed=1)
    except InputError:
        return
    raise AssertionError("the failure was swallowed")

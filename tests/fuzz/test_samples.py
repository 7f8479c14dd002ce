"""A fixed, small sample of the fuzzer's cases in every run; `resispec fuzz` takes fresh ones. Kernels: tests/gpu."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.target import load
from fuzz.targets import laws
from resispec_core.rules import RULES


def sample(count: int, cases: st.SearchStrategy, check) -> int:
    seen = []

    @settings(max_examples=count, database=None, suppress_health_check=list(HealthCheck))
    @given(case=cases)
    def run(case) -> None:
        check(case)
        seen.append(case)

    run()
    return len(seen)


@pytest.mark.parametrize("name", RULES)
def test_laws(name: str) -> None:
    assert sample(40, laws.cases((name,)), laws.check) >= 40


@pytest.mark.parametrize("name", ["files", "commands"])
def test_files_and_commands(name: str) -> None:
    target = load(name)
    assert sample(100, target.cases(), target.check) >= 100

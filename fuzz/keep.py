"""``python -m fuzz.keep TARGET [--cases N] [--seed S]``: put a small set of cases that reach much code into the corpus.

Draws N cases, notes the lines of ``resispec_core`` that each runs, and keeps, largest gain first, those without which a
line would be lost, up to MOST of them. A failing case is not kept; ``resispec fuzz`` is for those.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from fuzz import corpus
from fuzz.target import TARGETS, Case, Target, load

ROOM = str(Path(__file__).parents[1] / "resispec_core")
MOST = 25
Lines = set[tuple[str, int]]


def lines_of(target: Target, case: Case) -> Lines:
    """The lines of ``resispec_core`` that the case runs."""
    seen: Lines = set()

    def local(frame: FrameType, event: str, *_: Any) -> Any:
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return local

    def trace(frame: FrameType, *_: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(ROOM) else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        target.check(case)
    finally:
        sys.settrace(before)
    return seen


def smallest(reached: list[tuple[Case, Lines]]) -> list[Case]:
    """A greedy cover: the case with most new lines first; between equals the shorter one."""
    left, kept = list(reached), []
    covered: Lines = set()
    while left and len(kept) < MOST:
        case, lines = max(left, key=lambda pair: (len(pair[1] - covered), -len(str(pair[0]))))
        if not lines - covered:
            break
        kept.append(case)
        covered |= lines
        left = [pair for pair in left if pair[0] is not case]
    return kept


def cover(target: Target, cases: int, seed: int) -> list[Case]:
    """The cases to keep of ``cases`` fresh ones."""
    reached: list[tuple[Case, Lines]] = []

    @hypothesis.seed(seed)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=target.cases())
    def run(case: Case) -> None:
        reached.append((case, lines_of(target, case)))

    run()
    return smallest(reached)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", choices=list(TARGETS))
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for case in cover(load(options.target), options.cases, options.seed):
        print(
            corpus.write(
                options.target, case, {"error": None, "kept": "reaches lines that no other kept case reaches"}
            )
        )


if __name__ == "__main__":
    main()

"""What a replay costs: paths, processor time, and a replayed run beside an ordinary call of the same sampler.

``python tests/benchmarks/replay_cost.py [--large]`` prints the table of docs/audit_your_sampler.md; ``--large`` adds
V = 32 with two drafted tokens (half a minute). Times are this process's own processor time, so that other work on the
machine does not count; the last column is a ratio within the run.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from resispec_core.audit.replay import replay_step
from resispec_core.audit.replay.tables import hard_pair

CASES = ((3, 1, "step"), (3, 2, "step"), (3, 3, "target"), (3, 3, "step"), (8, 2, "target"))
LARGE = (32, 2, "target")
CALLS = 2000


def chain(drafted: int) -> Any:
    """The chain verifier of Leviathan et al. in NumPy, drafter included."""

    def draw(row: Any, rng: Any) -> int:
        return int(rng.choice(len(row), p=row))

    def step(target_model: Any, draft_model: Any, prefix: Any, rng: Any) -> list[int]:
        prefix, tokens = list(prefix), []
        for _ in range(drafted):
            tokens.append(draw(draft_model([*prefix, *tokens]), rng))
        for place, x in enumerate(tokens):
            p, q = target_model([*prefix, *tokens[:place]]), draft_model([*prefix, *tokens[:place]])
            if rng.random() * q[x] >= p[x]:
                left = np.maximum(p - q, 0 * p)
                return [*tokens[:place], draw(left / left.sum(), rng)]
        return [*tokens, draw(target_model([*prefix, *tokens]), rng)]

    return step


def measure(size: int, drafted: int, extend: str) -> tuple[Any, ...]:
    """(V, drafted, extend, verdict, runs, seconds of the whole call, cost of a replayed run in ordinary calls)."""
    target, draft = hard_pair(size)
    step = chain(drafted)
    start = time.process_time()
    report = replay_step(step, target, draft, horizon=drafted + 1, extend=extend)  # type: ignore[arg-type]
    spent = time.process_time() - start
    rows = {
        (name, token): model([] if token is None else [token]).astype(float)
        for name, model in (("target", target), ("draft", draft))
        for token in (None, *range(size))
    }
    models = [
        lambda prefix, name=name: rows[name, prefix[-1] if prefix else None] for name in ("target", "draft")
    ]
    rng = np.random.default_rng(1)
    start = time.process_time()
    for _ in range(CALLS):
        step(*models, [], rng)
    each = (time.process_time() - start) / CALLS
    return size, drafted, extend, report.verdict.value, report.runs, spent, spent / report.runs / each


def main(arguments: list[str]) -> None:
    print(
        "| V | drafted | continued by | verdict | runs, float and rational | processor time | a run, in calls |"
    )
    print("|---|---|---|---|---|---|---|")
    measure(*CASES[0])  # imports and first-use caches
    for case in (*CASES, *([LARGE] if "--large" in arguments else [])):
        size, drafted, extend, verdict, runs, spent, ratio = measure(*case)
        print(
            f"| {size} | {drafted} | {extend} | {verdict} | {runs:,} | {spent:.2g} s | {ratio:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])

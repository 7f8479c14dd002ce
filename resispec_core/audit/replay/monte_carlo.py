"""The closing Monte Carlo of the unpatched function: the proof that the patches did not change the code under test."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from resispec_core.audit.replay.compare import EPSILON
from resispec_core.audit.replay.outcomes import Crash, Outcomes, read_tokens
from resispec_core.audit.replay.patches import Watch, one_thread
from resispec_core.audit.replay.rows import Library, forked
from resispec_core.audit.replay.trail import LeakError

FALSE_ALARM = 1e-9
"""Chance that the comparison rejects a replay that is right, per audit."""


def _samples(call: Callable[[Any], Any], count: int, library: Library, watch: Watch) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    try:
        random.seed(20)
        np.random.seed(20)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(20)
        rng: Any = np.random.default_rng(20) if library == "numpy" else forked(library)
        with one_thread():
            for _ in range(count):
                try:
                    tokens, _laws = read_tokens(_settled(call(rng)))
                except Exception as error:
                    tokens = Crash(type(error).__name__, "")
                key = tokens.kind if isinstance(tokens, Crash) else tokens
                counts[key] = counts.get(key, 0) + 1
    finally:
        watch.restore()
    return counts


def _settled(returned: Any) -> Any:
    return returned.reshape(-1).tolist() if hasattr(returned, "untyped_storage") else returned


def monte_carlo(
    call: Callable[[Any], Any], count: int, library: Library, found: Outcomes, precision: str, watch: Watch
) -> int:
    """Each outcome's frequency against its replayed probability, at ``FALSE_ALARM`` for all together.

    An outcome seen with frequency f has probability x with ``count·KL(f‖x) ≤ log(2K/FALSE_ALARM)``, K outcomes
    (Chernoff). The real generator's grid and rounding may move x by eps of the working precision; an outcome that
    the replay gave probability below 1e-12 must otherwise not be seen at all. ``watch`` puts every generator back.
    """
    counts = _samples(call, count, library, watch)
    expected: dict[Any, float] = {}
    for key, mass in found.law.items():
        name = key.kind if isinstance(key, Crash) else key
        expected[name] = expected.get(name, 0.0) + float(mass)
    names = expected.keys() | counts.keys()
    limit = math.log(2 * len(names) / FALSE_ALARM) / count
    slack = 4 * EPSILON[precision] if precision in ("float16", "bfloat16") else 0.0
    for name in names:
        x, f = expected.get(name, 0.0), counts.get(name, 0) / count
        if _kl(f, min(max(f, x - slack), x + slack, 1.0)) > limit:
            raise LeakError(
                f"unpatched, the sampler gave {name} in {counts.get(name, 0)} of {count} runs; replayed it has "
                f"probability {x:.6g}: the replay did not see the sampler's real randomness"
            )
    return count


def _kl(f: float, x: float) -> float:
    if f == x:
        return 0.0
    if (f > 0 and x < 1e-12) or (f < 1 and x > 1 - 1e-12):
        return math.inf
    first = f * math.log(f / x) if f > 0 else 0.0
    return first + ((1 - f) * math.log((1 - f) / (1 - x)) if f < 1 else 0.0)

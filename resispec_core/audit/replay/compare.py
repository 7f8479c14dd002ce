"""The law of the outcomes against the target's: distances, the verdict, the witness."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from resispec_core.audit.replay.outcomes import Crash, Outcomes, Tokens
from resispec_core.audit.replay.report import ReplayReport, Witness
from resispec_core.audit.replay.rows import Numbers
from resispec_core.audit.replay.trail import ONE, ZERO, Budget, LeakError
from resispec_core.audit.verdict import Verdict
from resispec_core.errors import InputError

EPSILON = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "rational": 0.0,
}


def rounding(size: int, stages: int, numbers: str) -> float:
    """Bound on the TV that rounding alone may add: ``stages·(16 + 2 log2 V)·eps``, as for ``marginal.rounding_bound``.

    ``stages``: candidates + 2 for a verifier; 4 per token of the horizon for a step.
    """
    if numbers not in EPSILON:
        raise InputError(f"precision is {numbers!r}; known: {', '.join(EPSILON)}")
    return stages * (16 + 2 * math.log2(max(size, 2))) * EPSILON[numbers]


def report_of(
    found: Outcomes,
    expected: dict[Tokens, Fraction],
    horizon: int,
    size: int,
    numbers: Numbers,
    budget: Budget,
    subject: str,
    signature: str,
    grid: bool,
    stages: int,
    tuples: dict[Any, Tokens],
    precision: str | None,
) -> ReplayReport:
    crashes: dict[str, Fraction] = {}
    got: dict[Tokens, Fraction] = {}
    for key, mass in found.law.items():
        if isinstance(key, Crash):
            crashes[str(key)] = crashes.get(str(key), ZERO) + mass
        elif len(key) != horizon or any(token >= size for token in key):
            name = f"InvalidToken: returned {list(key)}, vocabulary {size}"
            crashes[name] = crashes.get(name, ZERO) + mass
        else:
            got[key] = mass
    crash_mass = sum(crashes.values(), ZERO)
    if sum(found.law.values(), ZERO) != 1:
        raise LeakError("the outcomes do not sum to 1; this is a fault of the harness")
    tv = variation(got, expected, crash_mass)
    first = variation(_first(got), _first(expected), crash_mass)
    zero_mass = sum((mass for key, mass in got.items() if key not in expected), ZERO)
    allowed = rounding(size, stages, precision or numbers) + float(found.neglected)
    bound: Fraction | float
    if tv > allowed or (grid and zero_mass > 0):
        verdict, bound = Verdict.BIASED, tv
    elif numbers == "rational" and found.inexact == 0:
        verdict, bound = (Verdict.EXACT if tv == 0 else Verdict.BIASED), tv
    elif numbers == "rational":
        verdict, bound = Verdict.INCONCLUSIVE, ONE
    else:
        verdict, bound = Verdict.EXACT_WITHIN, float(tv) + allowed
    if numbers == "rational" and verdict is Verdict.BIASED and tv < 1e-12:
        verdict, bound = Verdict.INCONCLUSIVE, ONE  # floats crept in: a gap of their size proves nothing
    witness = None
    if verdict is Verdict.BIASED:
        witness = _witness(found, got, expected, tuples)
    notes = [f"reused randomness: {place} ({count} paths)" for place, count in found.reused.most_common(3)]
    if numbers == "float64" and precision is None and rounding(size, stages, "float32") > tv > allowed:
        notes.append(
            "the gap is of the size of float32 rounding; if float32 is meant, pass precision='float32'"
        )
    return ReplayReport(
        subject=subject,
        signature=signature,
        verdict=verdict,
        bound=bound,
        total_variation=tv,
        first_token=first,
        zero_mass=zero_mass,
        crash_mass=crash_mass,
        crashes=crashes,
        law=got,
        expected=expected,
        horizon=horizon,
        vocabulary=size,
        paths=found.paths,
        runs=budget.used,
        sites=dict(budget.sites.most_common(10)),
        numbers=numbers,
        rounding=allowed,
        inexact=found.inexact,
        witness=witness,
        grid=grid,
        notes=notes,
    )


def variation(got: dict[Tokens, Fraction], expected: dict[Tokens, Fraction], crash: Fraction) -> Fraction:
    keys = got.keys() | expected.keys()
    return (sum((abs(got.get(key, ZERO) - expected.get(key, ZERO)) for key in keys), ZERO) + crash) / 2


def _first(table: dict[Tokens, Fraction]) -> dict[Tokens, Fraction]:
    result: dict[Tokens, Fraction] = {}
    for tokens, mass in table.items():
        result[tokens[:1]] = result.get(tokens[:1], ZERO) + mass
    return result


def _witness(
    found: Outcomes, got: dict[Tokens, Fraction], expected: dict[Tokens, Fraction], tuples: dict[Any, Tokens]
) -> Witness | None:
    if not got:
        return None
    worst = max(got, key=lambda key: got[key] - expected.get(key, ZERO))
    steps = found.heaviest[worst][1]
    return Witness(
        worst,
        got[worst],
        expected.get(worst, ZERO),
        tuples.get(worst),
        tuple(
            f"{step.label} ({step.site}, probability {float(step.weights[step.taken]):.4g})" for step in steps
        ),
    )

"""What a check returns, and the one place that asks the solver."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import z3

TIMEOUT_MS = 60_000


Witness = dict[str, list[str] | str]


@dataclass(frozen=True)
class Finding:
    """One statement about a rule, and what the check found.

    ``found`` and ``expected`` are ``"holds"`` or ``"fails"`` (``"unknown"`` where the solver gave up).
    ``planted`` is what the same check said of a wrong variant: one that is not rejected proves nothing.
    """

    name: str
    statement: str
    expected: str
    found: str
    planted_variant: str
    planted: str
    witness: Witness | None
    seconds: float

    @property
    def as_expected(self) -> bool:
        """The statement came out as the ledger says, and the wrong variant was rejected."""
        return self.found == self.expected and self.planted == "fails"


def decide(constraints: Iterable[z3.BoolRef], violation: z3.BoolRef) -> tuple[str, z3.ModelRef | None]:
    """Say whether ``constraints`` leave room for ``violation``.

    Returns ``("holds", None)`` when the two together are unsatisfiable, ``("fails", model)`` with a
    counterexample, ``("unknown", None)`` when the solver stops at ``TIMEOUT_MS`` milliseconds.
    """
    solver = z3.SolverFor("QF_NRA")
    solver.set("timeout", TIMEOUT_MS)
    solver.add(*constraints, violation)
    answer = solver.check()
    if answer == z3.unsat:
        return "holds", None
    return ("fails", solver.model()) if answer == z3.sat else ("unknown", None)


def decide_all(
    cases: Iterable[tuple[list[z3.BoolRef], z3.BoolRef]],
) -> tuple[str, z3.ModelRef | None]:
    """Decide a statement case by case: it holds when every case holds, fails with the first that does."""
    worst = "holds"
    for constraints, violation in cases:
        answer, model = decide(constraints, violation)
        if answer == "fails":
            return answer, model
        if answer == "unknown":
            worst = answer
    return worst, None


def value(model: z3.ModelRef, term: z3.ArithRef) -> str:
    """A term's value in a model: a fraction, or a decimal followed by ``?`` where it is irrational."""
    got = model.eval(term, model_completion=True)
    if z3.is_rational_value(got):
        return str(Fraction(got.numerator_as_long(), got.denominator_as_long()))
    return str(got.approx(20).as_fraction()) + "?" if z3.is_algebraic_value(got) else str(got)


def witness_of(model: z3.ModelRef | None, **terms: z3.ArithRef | list[z3.ArithRef]) -> Witness | None:
    """The named terms' values in a counterexample."""
    if model is None:
        return None
    return {
        name: [value(model, t) for t in term] if isinstance(term, list) else value(model, term)
        for name, term in terms.items()
    }


class Stopwatch:
    """Wall seconds since it was made."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

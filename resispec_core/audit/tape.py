"""Tape: a sampler as a deterministic function of its uniforms, measured cell by cell.

For code that no replay can enter (a compiled kernel, a Triton kernel under its interpreter): it is called on chosen
uniforms, and each coordinate's breakpoints are bisected on the generator's grid. What later coordinates do is probed
at interior points and at their corners. The result is *measured, N calls*: narrow cells can be missed, so the
verdict is ``NOT_REFUTED`` or ``BIASED``, never ``EXACT``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from resispec_core.arrays import Array, as_float
from resispec_core.audit.distances import total_variation
from resispec_core.audit.replay.compare import rounding
from resispec_core.audit.verdict import EXIT_CODES, Verdict
from resispec_core.drafts import DrawMode, draw_mode
from resispec_core.errors import BudgetExceededError, InputError
from resispec_core.laws import law, same_vocabulary

STARTS = (0.0, 0.031, 0.11, 0.19, 0.28, 0.37, 0.46, 0.55, 0.64, 0.73, 0.82, 0.91, 0.969, 1.0)
"""First probes of a coordinate; 1.0 stands for the largest grid value below 1."""
PROBES = (0.0, 0.37, 0.73, 1.0)
"""Where later coordinates are held while an earlier one is bisected."""
RANDOM_CHECKS = 64
"""Random points per candidate tuple at which the measured cells are compared with the kernel itself."""


@dataclass
class TapeReport:
    """What was measured. ``law`` is complete only as far as every cell was found."""

    subject: str
    verdict: Verdict
    total_variation: float
    law: Array
    expected: Array
    calls: int
    rounding: float
    missed: float
    """Fraction of random points at which the kernel disagreed with the measured cells."""
    findings: list[str] = field(default_factory=list)
    """Adversarial uniforms that gave an impossible token or an exception."""

    @property
    def exit_code(self) -> int:
        """1 biased, 3 not refuted or inconclusive."""
        return EXIT_CODES[self.verdict]

    def __str__(self) -> str:
        name = self.verdict.value.replace("_", " ")
        text = f"{name} (measured, {self.calls} calls), TV = {self.total_variation:.3g}"
        return text + (f"; {self.findings[0]}" if self.findings else "")

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "engine": "tape",
            "subject": self.subject,
            "verdict": self.verdict.value,
            "total_variation": self.total_variation,
            "law": [float(mass) for mass in self.law],
            "expected": [float(mass) for mass in self.expected],
            "calls": self.calls,
            "rounding": self.rounding,
            "missed": self.missed,
            "findings": list(self.findings),
        }


class _Kernel:
    """The function on integer grid coordinates, counting and remembering its calls."""

    def __init__(
        self, call: Callable[[Array], Any], coins: int, bits: int, dtype: Any, budget: list[int]
    ) -> None:
        self.call, self.coins, self.top, self.dtype, self.budget = call, coins, (1 << bits) - 1, dtype, budget
        self.known: dict[tuple[int, ...], int] = {}
        self.errors: dict[tuple[int, ...], str] = {}

    def place(self, value: float) -> int:
        return min(int(value * (self.top + 1)), self.top)

    def __call__(self, point: tuple[int, ...]) -> int:
        if point not in self.known:
            self.budget[0] += 1
            if self.budget[0] > self.budget[1]:
                raise BudgetExceededError(
                    f"the tape needs more than {self.budget[1]} kernel calls; use fewer candidates, a smaller "
                    "vocabulary or fewer coins, or raise max_calls"
                )
            uniforms = np.array([place / (self.top + 1) for place in point], dtype=self.dtype)
            try:
                self.known[point] = int(self.call(uniforms))
            except InputError:
                raise  # an adapter says what is missing; no finding about the kernel
            except Exception as error:
                self.known[point] = -1
                self.errors[point] = f"{type(error).__name__}: {error}"
        return self.known[point]


def tape_audit(
    kernel: Callable[..., Any],
    target: Any,
    draft: Any,
    candidates: int = 1,
    *,
    draw: str | DrawMode = "iid",
    coins: int | None = None,
    bits: int = 24,
    max_calls: int = 2_000_000,
    name: str | None = None,
) -> TapeReport:
    """Measure the law of ``kernel(target, draft, candidates, uniforms) -> token``.

    ``kernel`` gets float64 rows of shape (V,), an int64 array of n candidates and ``coins`` uniforms (default n + 1)
    as float32 multiples of 2^−24, or float64 ones of 2^−``bits`` for bits > 24. Candidates are enumerated as ``draw``
    says. Every coordinate is also set to 0, to the largest value below 1 and to every threshold ± 1 step; a token of
    probability zero there is a finding.

    ``BIASED``: the measured TV exceeds the rounding bound and what random checks leave open, or an impossible token was
    returned. Cost: about 50 kernel calls per breakpoint and probe, exponential in ``coins``. Cannot detect: cells that
    no probe meets, and anything outside the kernel.
    """
    p, q = law(target, name="target"), law(draft, name="draft")
    p, q = as_float(p), as_float(q)
    same_vocabulary(p, q)
    count = candidates + 1 if coins is None else coins
    if not 1 <= count <= 6:
        raise InputError(f"coins is {count}; the tape measures 1 to 6 uniforms")
    mode, budget = draw_mode(draw), [0, max_calls]
    found = np.zeros(p.size + 1)
    findings: list[str] = []
    checks, wrong = 0, 0
    rng = np.random.default_rng(7)
    for drawn, weight in mode.tuples(q, candidates):
        ids = np.array(drawn, dtype=np.int64)
        run = _Kernel(
            lambda uniforms, ids=ids: kernel(p.copy(), q.copy(), ids.copy(), uniforms),  # type: ignore[misc]
            count, bits, np.float32 if bits <= 24 else np.float64, budget,
        )  # fmt: skip
        cells = _cells(run, ())
        for edges, token in cells:
            share = float(np.prod([(high - low) / (run.top + 1) for low, high in edges]))
            found[token if 0 <= token < p.size else p.size] += weight * share
        for point in rng.integers(0, run.top + 1, size=(RANDOM_CHECKS, count)).tolist():
            checks += 1
            wrong += run(tuple(point)) != _look_up(cells, point)
        findings += _adversarial(run, cells, drawn, p)
    tv = float(total_variation(found[:-1], p)) + found[-1] / 2
    allowed = rounding(p.size, candidates + 2, "float32" if bits <= 24 else "float64")
    missed = wrong / checks
    biased = tv > allowed + 4 * missed or bool(findings)
    verdict = Verdict.BIASED if biased else Verdict.INCONCLUSIVE if tv > allowed else Verdict.NOT_REFUTED
    subject = name or str(getattr(kernel, "__name__", "kernel"))
    return TapeReport(subject, verdict, tv, found[:-1], p, budget[0], allowed, missed, findings[:20])


Edges = tuple[tuple[int, int], ...]


def _cells(run: _Kernel, fixed: tuple[int, ...]) -> list[tuple[Edges, int]]:
    """Boxes (integer edges, high excluded) of the coordinates after ``fixed``, each with its token."""
    later = run.coins - len(fixed) - 1
    probes = list(itertools.product([run.place(value) for value in PROBES], repeat=later))
    if len(probes) > 64:
        probes = [point for point in probes if len(set(point)) <= 2][:64]

    def signature(value: int) -> tuple[int, ...]:
        return tuple(run((*fixed, value, *probe)) for probe in probes)

    cuts = [0]
    places = sorted({run.place(value) for value in STARTS} | {1, run.top - 1})
    for left, right in itertools.pairwise(places):
        cuts += _breaks(signature, left, right)
    boxes: list[tuple[Edges, int]] = []
    for low, high in itertools.pairwise([*cuts, run.top + 1]):
        middle = (low + high - 1) // 2
        if later == 0:
            boxes.append((((low, high),), run((*fixed, middle))))
        else:
            boxes += [(((low, high), *edges), token) for edges, token in _cells(run, (*fixed, middle))]
    return boxes


def _breaks(signature: Callable[[int], tuple[int, ...]], left: int, right: int) -> list[int]:
    """First places of every new signature in (left, right], found by bisection."""
    first, last = signature(left), signature(right)
    if first == last:
        return []
    if right - left == 1:
        return [right]
    middle = (left + right) // 2
    return _breaks(signature, left, middle) + _breaks(signature, middle, right)


def _look_up(cells: Sequence[tuple[Edges, int]], point: Sequence[int]) -> int:
    for edges, token in cells:
        if all(low <= value < high for (low, high), value in zip(edges, point, strict=True)):
            return token
    raise AssertionError("the cells do not tile the cube")


def _adversarial(run: _Kernel, cells: list[tuple[Edges, int]], drawn: tuple[int, ...], p: Array) -> list[str]:
    """Corners and thresholds ± 1 step: tokens that the target gives probability zero, and exceptions."""
    found = []
    for edges, _ in cells[:256]:
        middle = tuple((low + high - 1) // 2 for low, high in edges)
        for place, (low, high) in enumerate(edges):
            for value in {
                0,
                run.top,
                low,
                max(low - 1, 0),
                min(low + 1, run.top),
                high - 1,
                min(high, run.top),
            }:
                point = (*middle[:place], value, *middle[place + 1 :])
                token = run(point)
                shown = ", ".join(f"{coordinate / (run.top + 1):.9g}" for coordinate in point)
                start = f"with candidates {list(drawn)} and uniforms [{shown}] the kernel"
                if point in run.errors:
                    found.append(f"{start} raised {run.errors[point]}")
                elif not 0 <= token < p.size:
                    found.append(f"{start} returned {token}, outside the vocabulary")
                elif p[token] == 0:
                    found.append(f"{start} returned token {token}, which the target gives probability zero")
    return found

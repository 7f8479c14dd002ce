"""One run of a sampler as a list of decisions, and the driver that visits every such list.

A run meets *forks*: a coin compared with a threshold, a categorical draw. ``Trail.choose`` decides each one and
records it; ``explore`` runs the sampler again with the last decision changed until every branch of positive
weight was taken. Weights are ``Fraction`` and add up to exactly 1.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

from resispec_core.errors import BudgetExceededError, InputError

ZERO, ONE = Fraction(0), Fraction(1)
NEGLIGIBLE = Fraction(1, 10**18)
"""In float runs a threshold that splits off less than this (``clamp(min=1e-20)``) does not fork the run."""
OWN_CODE = str(Path(__file__).parent)
"""Frames in these files are the harness; the first frame outside is the call site."""
PLAIN = frozenset((int, float, Fraction))
LIBRARIES = (
    "/resispec_core/testing/",
    "/numpy/",
    "/torch/",
    "/random.py",
    "<frozen",
    "/bisect.py",
    "<__array_function__",
)


class RefusalError(InputError):
    """The sampler uses randomness in a way the harness cannot follow exactly; nothing is concluded."""


class LeakError(RefusalError):
    """A coin would have left the harness as an ordinary number, or a random source was read behind its back."""


@dataclass
class Decision:
    """One fork: the branches of positive weight, and the one taken."""

    site: str
    label: str
    weights: tuple[Fraction, ...]
    taken: int

    def advance(self) -> bool:
        """Take the next branch of positive weight; False where there is none."""
        for index in range(self.taken + 1, len(self.weights)):
            if self.weights[index].numerator > 0:
                self.taken = index
                return True
        return False


@dataclass
class Budget:
    """How much replay one audit may spend. ``spend`` raises ``BudgetExceededError`` with counts per call site."""

    runs: int = 200_000
    seconds: float = 300.0
    used: int = 0
    started: float = field(default_factory=time.monotonic)
    sites: Counter[str] = field(default_factory=Counter)

    def spend(self) -> None:
        """One more run of the sampler."""
        self.used += 1
        elapsed = time.monotonic() - self.started
        if self.used > self.runs or elapsed > self.seconds:
            busiest = "; ".join(f"{count} forks at {site}" for site, count in self.sites.most_common(5))
            raise BudgetExceededError(
                f"the replay needs more than {min(self.used, self.runs)} runs in {elapsed:.1f} s (budget {self.runs} "
                f"runs, {self.seconds:g} s): {busiest}. Use a smaller vocabulary, fewer drafted tokens or a shorter "
                "horizon, or raise the budget"
            )


class Trail:
    """The decisions of one run; the single object through which every random source is answered."""

    limit: ClassVar[str] = "the replay cannot control it"
    """Why what is refused is refused, for the message."""

    def __init__(self, prefix: Sequence[Decision] = (), grid: bool = False, neglect: bool = False) -> None:
        self._prefix = list(prefix)
        self.decisions: list[Decision] = []
        self.weight = ONE
        self.grid = grid
        self.neglect = neglect
        """Whether sides of a threshold lighter than ``NEGLIGIBLE`` are skipped and added to the bound."""
        self.neglected = ZERO
        self.fault: RefusalError | None = None
        self.inexact = 0
        """Thresholds and weights that were rounded to float64 (logarithms, powers)."""
        self.draws: list[Any] = []
        """What the sampler drew, in order: ``Unit`` objects and categorical indices."""
        self.reused: Counter[str] = Counter()
        """Call sites that compared a coin already compared elsewhere."""

    def choose(self, weights: Sequence[Fraction], label: str | Callable[[int], str]) -> int:
        """The branch to take at a fork with these weights (they sum to 1). Single branches are not forks."""
        live = [index for index, weight in enumerate(weights) if weight.numerator > 0]
        if len(live) == 1:
            return live[0]
        if not live:
            raise self.refuse(RefusalError(f"a fork without a branch of positive weight at {call_site()}"))
        place = len(self.decisions)
        if place < len(self._prefix):
            planned = self._prefix[place]
            if planned.weights != tuple(weights):
                raise self.refuse(
                    LeakError(
                        f"run {place + 1} decisions deep met other branches than the run before it at {call_site()}: "
                        "the sampler depends on something besides its inputs and its coins (a counter, the clock, a "
                        "hidden generator, a state kept between calls); make it a pure function of them"
                    )
                )
            decision = Decision(planned.site, planned.label, planned.weights, planned.taken)
            if callable(label):
                decision.label = label(planned.taken)
        else:
            text = label(live[0]) if callable(label) else label
            decision = Decision(call_site(), text, tuple(weights), live[0])
        self.decisions.append(decision)
        self.weight *= decision.weights[decision.taken]
        return decision.taken

    def categorical(self, weights: Sequence[Any], label: str) -> int:
        """An index drawn with probability proportional to ``weights`` (validated by the caller)."""
        given = tuple(weights)
        plain = PLAIN.issuperset(map(type, given))  # numbers that cannot change later
        law = _normalised(given) if plain else _normalise(given)
        index = self.choose(law, lambda taken: f"{label} gave {taken}")
        self.draws.append(index)
        return index

    def refuse(self, error: RefusalError) -> RefusalError:
        """Remember ``error`` so that the sampler cannot swallow it, and return it to be raised."""
        if self.fault is None:
            self.fault = error
        return error

    def finish(self) -> None:
        """Raise what a swallowed refusal hid, and check that the whole prefix was met."""
        if self.fault is not None:
            raise self.fault
        if len(self.decisions) < len(self._prefix):
            raise LeakError(
                f"a replay ended after {len(self.decisions)} forks where the run before met {len(self._prefix)}: the "
                "sampler depends on something besides its inputs and its coins"
            )


def explore(
    run: Callable[[Trail], Any], budget: Budget, *, grid: bool = False, neglect: bool = False
) -> Iterator[tuple[Any, Trail]]:
    """Every path of ``run``: pairs (what it returned, its trail). The weights sum to exactly 1.

    ``run`` gets a trail that it must make the active one. Depth first, one full run a path.
    """
    prefix: list[Decision] = []
    total = ZERO
    while True:
        budget.spend()
        trail = Trail(prefix, grid=grid, neglect=neglect)
        outcome = run(trail)
        trail.finish()
        for decision in trail.decisions[max(len(prefix) - 1, 0) :]:
            budget.sites[decision.site] += 1
        total += trail.weight
        yield outcome, trail
        prefix = list(trail.decisions)
        while prefix and not prefix[-1].advance():
            prefix.pop()
        if not prefix:
            break
    if total != 1:
        raise LeakError(f"the paths have a total weight of {total}, not 1; this is a fault of the harness")


def call_site() -> str:
    """``file:line`` of the innermost frame outside the harness and the numeric libraries."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = _outside(frame.f_code.co_filename)
        if name is not None:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "unknown place"


@cache
def _outside(file: str) -> str | None:
    """The short name of a file that is neither the harness nor a numeric library; None for those."""
    inside = file.startswith(OWN_CODE) or any(part in file for part in LIBRARIES)
    return None if inside else Path(file).name


def _normalise(weights: tuple[Any, ...]) -> tuple[Fraction, ...]:
    exact = [exact_number(weight) for weight in weights]
    total = sum(exact, ZERO)
    return tuple(weight / total for weight in exact)


_normalised = lru_cache(maxsize=4096)(_normalise)
"""A replay meets the same rows in every run; equal tuples of numbers have the same exact law."""


def exact_number(value: Any) -> Fraction:
    """The exact rational value of a finite number; ``RefusalError`` for anything else."""
    if isinstance(value, Fraction):
        return value
    if hasattr(value, "item"):
        value = value.item()
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError):
        raise RefusalError(f"{value!r} met a coin at {call_site()}; only finite numbers can") from None

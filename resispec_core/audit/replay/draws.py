"""What every random source asks for: a uniform, exponential noise, an index; as symbols or as numbers.

A ``Concrete`` trail repeats one explored path with ordinary numbers: each coin gets a value inside the interval
that the path left open. The sampler must then do what it did symbolically; that check is run on crashes always and
on other paths by default, and is what tells a sampler's own exception from one that a symbol provoked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from resispec_core.audit.replay.coin import Symbol, Unit
from resispec_core.audit.replay.grid import FRACTION_53, Grid
from resispec_core.audit.replay.race import arrange
from resispec_core.audit.replay.trail import RefusalError, Trail, call_site


class Numbers(Protocol):
    """Something that answers every draw with a number: a path run again, or Hypothesis (``testing.generator``)."""

    fault: RefusalError | None
    limit: ClassVar[str]
    """Why what is refused is refused, for the message."""

    def uniform(self, grid: Grid) -> float: ...
    def noise(self, grid: Grid) -> float: ...
    def index(self, weights: Sequence[Any], label: str) -> int: ...
    def below(self, count: int, label: str) -> int: ...
    def refuse(self, error: RefusalError) -> RefusalError: ...


class Concrete:
    """The draws of an explored path, as numbers."""

    fault: RefusalError | None = None
    limit: ClassVar[str] = Trail.limit

    def __init__(self, explored: Trail) -> None:
        units = [draw for draw in explored.draws if isinstance(draw, Unit)]
        raced = arrange(units)
        self.possible = raced is not None
        self._values: list[Any] = []
        for draw in explored.draws:
            if not isinstance(draw, Unit):
                self._values.append(draw)
            elif raced and draw in raced:
                self._values.append(raced[draw])
            else:
                self._values.append(float(draw.middle()))
        self._place = 0

    def uniform(self, grid: Grid) -> float:
        """The coin of the explored path."""
        return float(self.next())

    noise = uniform

    def index(self, weights: Sequence[Any], label: str) -> int:
        """The index that the explored path took."""
        return int(self.next())

    def below(self, count: int, label: str) -> int:
        """As ``index``."""
        return int(self.next())

    def next(self) -> Any:
        """The next recorded draw; a refusal where the re-run wants more draws than the replay had."""
        if self._place == len(self._values):
            raise RefusalError(
                f"the concrete re-run of a path draws more than its replay did, at {call_site()}"
            )
        self._place += 1
        return self._values[self._place - 1]

    def refuse(self, error: RefusalError) -> RefusalError:
        """As ``Trail.refuse``."""
        self.fault = self.fault or error
        return error


Active = Trail | Numbers
_active: list[Active] = []


@contextmanager
def answering(trail: Active) -> Iterator[None]:
    """Let ``trail`` answer every controlled source inside the block."""
    _active.append(trail)
    try:
        yield
    finally:
        _active.pop()


def active() -> Active | None:
    """The trail that answers now; None outside a replay."""
    return _active[-1] if _active else None


def required() -> Active:
    """The active trail; a controlled source used outside a replay is a fault of the caller."""
    if not _active:
        raise RefusalError("a controlled generator was used outside the replay it was made for")
    return _active[-1]


def uniform(grid: Grid = FRACTION_53) -> Any:
    """A coin on [0, 1)."""
    trail = required()
    return Symbol(trail, Unit(trail, grid)) if isinstance(trail, Trail) else trail.uniform(grid)


def exponential(grid: Grid = FRACTION_53) -> Any:
    """Exp(1) noise: −log of a coin."""
    trail = required()
    return -uniform(grid).log() if isinstance(trail, Trail) else -math.log(trail.noise(grid))


def gumbel(grid: Grid = FRACTION_53) -> Any:
    """Standard Gumbel noise: −log of exponential noise."""
    noise = exponential(grid)
    # NumPy draws again where the noise would be infinite.
    return -math.log(max(noise, 2.0**-53)) if isinstance(noise, float) else -noise.log()


def categorical(weights: Sequence[Any], label: str) -> int:
    """An index with probability proportional to ``weights``: one branch per positive weight."""
    trail = required()
    return (trail.categorical if isinstance(trail, Trail) else trail.index)(weights, label)


def ordered(weights: Sequence[Any], count: int, label: str) -> list[int]:
    """``count`` different indices, each drawn from what the earlier ones left; stops when no weight is left."""
    left = list(weights)
    chosen: list[int] = []
    while len(chosen) < count and any(weight > 0 for weight in left):
        chosen.append(categorical(left, label))
        left[chosen[-1]] = 0
    return chosen


def integer(low: int, high: int, label: str) -> int:
    """A uniform integer in [low, high)."""
    trail = required()
    if not isinstance(trail, Trail):
        return low + trail.below(high - low, label)
    if high - low > 4096:
        raise trail.refuse(
            RefusalError(f"{label} has {high - low} values at {call_site()}; too many to branch on")
        )
    return low + trail.categorical([1] * (high - low), label)


def bernoulli(probability: Any, label: str) -> bool:
    """True with ``probability`` in [0, 1]."""
    exact = Fraction(probability.item() if hasattr(probability, "item") else probability)
    return categorical([1 - exact, exact], label) == 1


def draw(weights: Sequence[Any]) -> int:
    """An index with probability proportional to ``weights``: enumerated in a replay, sampled outside of one.

    For adapters that must draw something themselves, so that one adapter serves both. Sampling uses Python's global
    ``random``.
    """
    if active() is not None:
        return categorical(list(weights), "draw")
    import random

    return random.choices(range(len(weights)), weights=[float(weight) for weight in weights])[0]

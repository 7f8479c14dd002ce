"""The exact law of what one call returns: every path of an unmodified function, crashes included."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from resispec_core.audit.replay.coin import Symbol
from resispec_core.audit.replay.draws import Active, Concrete, answering
from resispec_core.audit.replay.trail import (
    ONE,
    ZERO,
    Budget,
    Decision,
    LeakError,
    RefusalError,
    Trail,
    explore,
)

Tokens = tuple[int, ...]
CHECKED_PATHS = 64
"""Paths re-run with concrete numbers at the start of each exploration; afterwards one in 16, and every crash."""
TOO_NARROW = Fraction(1, 10**9)


@dataclass(frozen=True)
class Crash:
    """An exception of the sampler itself, as an outcome."""

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass
class Outcomes:
    """What one call returns, with exact weights that sum to 1."""

    law: dict[Tokens | Crash, Fraction] = field(default_factory=dict)
    heaviest: dict[Tokens | Crash, tuple[Fraction, list[Decision]]] = field(default_factory=dict)
    paths: int = 0
    inexact: int = 0
    neglected: Fraction = ZERO
    reused: Counter[str] = field(default_factory=Counter)

    def add(self, key: Tokens | Crash, weight: Fraction, decisions: list[Decision]) -> None:
        """One more way to ``key``."""
        self.law[key] = self.law.get(key, ZERO) + weight
        if key not in self.heaviest or weight > self.heaviest[key][0]:
            self.heaviest[key] = (weight, decisions)

    def merge(self, other: Outcomes, weight: Fraction) -> None:
        """Mix in ``other`` with ``weight``."""
        for key, mass in other.law.items():
            self.add(key, ZERO, other.heaviest[key][1])
            self.law[key] += weight * mass
            best = weight * other.heaviest[key][0]
            if best > self.heaviest[key][0]:
                self.heaviest[key] = (best, other.heaviest[key][1])
        self.paths += other.paths
        self.inexact += other.inexact
        self.neglected += weight * other.neglected
        self.reused += other.reused


def outcomes(
    call: Callable[[], Any], budget: Budget, *, grid: bool = False, neglect: bool = False
) -> Outcomes:
    """Explore ``call``, which must take fresh copies of its inputs every time. Needs ``patches.controlled()``.

    ``call`` returns a token, a sequence of tokens, or a torch tensor of them.
    """
    found = Outcomes()
    for returned, trail in explore(lambda trail: _run(call, trail), budget, grid=grid, neglect=neglect):
        result, laws = returned
        number = found.paths
        if isinstance(result, Crash) or number < CHECKED_PATHS or number % 16 == 0:
            _check_concrete(call, trail, result)
        found.paths += 1
        found.inexact += trail.inexact
        found.neglected += trail.neglected
        found.reused += trail.reused
        if isinstance(result, Crash):
            found.add(result, trail.weight, trail.decisions)
            continue
        for tokens, weight in _expand(result, laws):
            found.add(tokens, trail.weight * weight, trail.decisions)
    return found


def _run(call: Callable[[], Any], trail: Active) -> tuple[Any, dict[int, list[Fraction]]]:
    """The tokens of one run (pending draws as negative placeholders) and the laws of those."""
    with ExitStack() as stack:
        stack.enter_context(answering(trail))
        shadows = None
        if "torch" in sys.modules:
            from resispec_core.audit.replay import torch_shadow, torch_source

            shadows = torch_shadow.Shadows()
            stack.enter_context(torch_source.Function(shadows))
            stack.enter_context(torch_source.Dispatch(shadows))
        try:
            returned = call()
        except RefusalError:
            raise
        except Exception as error:
            if trail.fault is not None:
                raise trail.fault from error
            return Crash(type(error).__name__, str(error).split("\n")[0][:200]), {}
    return read_tokens(returned, shadows)


def read_tokens(returned: Any, shadows: Any = None) -> tuple[Any, dict[int, list[Fraction]]]:
    """A returned value as a tuple of tokens; a wrong kind of value is a crash outcome."""
    if shadows is not None and hasattr(returned, "untyped_storage"):
        returned = shadows.values(returned)
    elif isinstance(returned, np.ndarray):
        returned = returned.reshape(-1).tolist()
    elif not isinstance(returned, (list, tuple)):
        returned = [returned]
    tokens: list[int] = []
    laws: dict[int, list[Fraction]] = {}
    for entry in returned:
        if shadows is not None and hasattr(entry, "untyped_storage"):
            entry = shadows.values(entry)[0]
        if hasattr(entry, "weights"):
            exact = [Fraction(weight) for weight in entry.weights]
            total = sum(exact, ZERO)
            laws[~len(laws)] = [weight / total for weight in exact]
            tokens.append(~(len(laws) - 1))
        elif isinstance(entry, Symbol):
            raise LeakError("the sampler returned a coin instead of a token")
        else:
            if hasattr(entry, "item"):
                entry = entry.item()
            if isinstance(entry, bool) or not _whole(entry):
                return Crash("InvalidToken", f"returned {entry!r}, not a token"), {}
            if int(entry) < 0:
                return Crash("InvalidToken", f"returned token {int(entry)}"), {}
            tokens.append(int(entry))
    return tuple(tokens), laws


def _whole(entry: Any) -> bool:
    try:
        return bool(int(entry) == entry)
    except (TypeError, ValueError, OverflowError):  # no number, NaN, infinite
        return False


def _expand(tokens: Tokens, laws: dict[int, list[Fraction]]) -> Iterator[tuple[Tokens, Fraction]]:
    if not laws:
        yield tokens, ONE
        return
    mark, *rest = laws
    remaining = {key: laws[key] for key in rest}
    for index, weight in enumerate(laws[mark]):
        if weight > 0:
            filled = tuple(index if token == mark else token for token in tokens)
            for expanded, factor in _expand(filled, remaining):
                yield expanded, weight * factor


def _check_concrete(call: Callable[[], Any], trail: Trail, result: Any) -> None:
    """Run the path again with ordinary numbers; it must do the same."""
    narrow = any(
        hasattr(draw, "low") and draw.weight is None and draw.high - draw.low < TOO_NARROW
        for draw in trail.draws
    )
    numbers = Concrete(trail)
    if narrow or not numbers.possible:
        if isinstance(result, Crash) and result.kind in ("TypeError", "AttributeError"):
            raise RefusalError(
                f"the sampler raised {result} on a path that cannot be re-run with numbers; not followed"
            )
        return
    again, _ = _run(call, numbers)
    same = (
        again.kind == result.kind
        if isinstance(again, Crash) and isinstance(result, Crash)
        else again == result
    )
    if not same:
        raise LeakError(
            f"with coins as symbols the sampler gave {result}, with the same coins as numbers {again}: it does "
            "something to its coins that the replay cannot follow, or depends on something besides its inputs and coins"
        )

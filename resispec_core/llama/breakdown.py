"""Where the time of a step goes: the components of the paper's Figure 3, in runs that are not mixed with throughput."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from resispec_core.rules import ResiSpec, Rule

COMPONENTS = ("drafting", "target", "verification", "cache")
SHAPING = ("budgeting", "redistribution", "proxy")
"""Inside verification, for the published rule."""


class Stopwatches:
    """Seconds by component. A GPU is synchronised before and after each, so the total is no throughput."""

    def __init__(self, device: Any = "cpu") -> None:
        self._cuda = str(device).startswith("cuda")
        self.reset()

    def reset(self) -> None:
        """Start at zero."""
        self._seconds: dict[str, float] = defaultdict(float)

    def seconds(self) -> dict[str, float]:
        """What has been measured since the last reset."""
        return dict(self._seconds)

    @contextmanager
    def __call__(self, component: str) -> Iterator[None]:
        self._synchronise()
        start = perf_counter()
        try:
            yield
        finally:
            self._synchronise()
            self._seconds[component] += perf_counter() - start

    def watched(self, rule: Rule) -> Rule:
        """The same rule; the published one also times the three parts of its shaping."""
        return TimedResiSpec(rule, self) if isinstance(rule, ResiSpec) else rule

    def _synchronise(self) -> None:
        if self._cuda:
            import torch

            torch.cuda.synchronize()


class TimedResiSpec(ResiSpec):
    """The published rule with a stopwatch around budgeting, redistribution and proxy formulation."""

    def __init__(self, rule: ResiSpec, watches: Stopwatches) -> None:
        super().__init__(rule.redistribution, rule.budget)
        self._watches = watches

    def budget_for(self, *arguments: Any) -> Any:
        with self._watches("budgeting"):
            return super().budget_for(*arguments)

    def fill(self, *arguments: Any) -> Any:
        with self._watches("redistribution"):
            return super().fill(*arguments)

    def formulate(self, *arguments: Any) -> Any:
        with self._watches("proxy"):
            return super().formulate(*arguments)

"""The device, if there is one. The single place that decides whether the GPU tests run, and says why not."""

from __future__ import annotations

from functools import cache
from typing import Any

from resispec_core.gpu import fused
from resispec_core.gpu.array import Decisions
from resispec_core.gpu.checks import Checked
from resispec_core.gpu.config import Layout
from resispec_core.gpu.doctor import why_no_device
from tests.gpu.cases import Nodes
from tests.gpu.pairs import Pair, policy_of


@cache
def unavailable() -> str | None:
    """The one printed reason, or None."""
    return why_no_device()


def on_device(pair: Pair, nodes: Nodes, layout: Layout | None = None) -> Decisions:
    """The fused kernels' answers, on the host."""
    import cupy

    target, draft, target_norm, draft_norm, tokens, coins = (
        None if array is None else cupy.asarray(array) for array in nodes.case.arrays()
    )
    given: Any = Checked(cupy, target, draft, tokens, coins, target_norm, draft_norm, policy_of(nodes))
    budget = pair.budget
    answer = fused.verify(pair.rule, given, pair.redistribution or "proportional", budget, layout)
    return Decisions(*(cupy.asnumpy(field) for field in answer))

"""What the kernels are compiled for, and how a launch is laid out. Pure functions; no device needed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from resispec_core.errors import InputError
from resispec_core.gpu.rows import DTYPES

KERNELS = Path(__file__).parent / "kernels"
RULE_CODES = {
    ("specinfer", ""): 0,
    ("deterministic", ""): 1,
    ("resispec", "proportional"): 2,
    ("resispec", "waterfill"): 3,
    ("resispec", "uniform"): 4,
    ("shaped", ""): 5,
}
DTYPE_CODES = {"float32": 32, "bfloat16": 160, "float16": 16}
ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
REDISTRIBUTIONS = ("proportional", "waterfill", "uniform")
BUDGETS = ("local", "eq13")
RULES = ("specinfer", "single_draft", "deterministic", "resispec", "shaped")
MAX_CLUSTER = 8
"""The largest portable cluster."""
HEADER_BYTES = 1856
"""Shared memory of a block before its row slices (``Shared`` in block.cuh)."""
SLICE_BYTES = 72 * 1024
"""Both slices of a block: three blocks then share a Hopper multiprocessor's 228 kB."""
LARGEST_SLICE_BYTES = 200 * 1024
"""Where the largest cluster still cannot keep to ``SLICE_BYTES``: one block a multiprocessor."""
THREADS = 256

HAS_TARGET_NORM, HAS_DRAFT_NORM, LIST_ALL = 1, 2, 4


@dataclass(frozen=True, order=True)
class KernelConfig:
    """One compiled pair of kernels; everything here is fixed at compile time."""

    rule: str = "specinfer"
    redistribution: str = ""
    budget: str = "local"
    dtype: str = "float32"
    logits: bool = False
    resident: bool = True
    cluster: int = 0
    """Blocks that share a node (2, 4 or 8, compiled in), or 0 for one block."""

    @property
    def name(self) -> str:
        parts = [self.rule, self.redistribution, "" if self.budget == "local" else self.budget, self.dtype]
        parts += ["logits" if self.logits else "", "resident" if self.resident else "streamed"]
        return "-".join(part for part in [*parts, f"cluster{self.cluster}" if self.cluster else ""] if part)

    def defines(self) -> dict[str, int]:
        """The preprocessor choices of common.cuh."""
        return {
            "RS_RULE": RULE_CODES[self.rule, self.redistribution],
            "RS_EQ13": int(self.budget == "eq13"),
            "RS_DTYPE": DTYPE_CODES[self.dtype],
            "RS_LOGITS": int(self.logits),
            "RS_RESIDENT": int(self.resident),
            "RS_CLUSTER": self.cluster,
        }


def kernel_config(
    rule: str, candidates: int, redistribution: str, budget: str, dtype: str, *, logits: bool, resident: bool,
    cluster: int = 0,
) -> KernelConfig:  # fmt: skip
    """The configuration that runs ``rule``: one candidate of ``shaped`` is ``specinfer``'s kernel."""
    published = rule == "resispec"
    if rule == "single_draft" or (rule == "shaped" and candidates == 1):
        rule = "specinfer"
    return KernelConfig(
        rule,
        redistribution if published else "",
        budget if published else "local",
        dtype,
        logits,
        resident,
        cluster,
    )


def configurations(architecture: int) -> Iterator[KernelConfig]:
    """Every configuration used on sm_80 (streamed, resident) or sm_90 (also clusters).

    The cluster size changes one launch attribute and no instruction; 4 stands for 2 and 8.
    """
    layouts = [(False, 0), (True, 0)] + ([(True, 4)] if architecture >= 90 else [])
    rules = [(*key, "local") for key in RULE_CODES]
    rules += [("resispec", redistribution, "eq13") for redistribution in REDISTRIBUTIONS]
    for (rule, redistribution, budget), dtype, logits, (resident, cluster) in product(
        rules, DTYPES, (False, True), layouts
    ):
        yield KernelConfig(rule, redistribution, budget, dtype, logits, resident, cluster)


@dataclass(frozen=True)
class Layout:
    """How one launch splits its rows."""

    cluster: int
    slice: int
    resident: bool
    threads: int = THREADS

    def shared_bytes(self, item_bytes: int, rows: int) -> int:
        """Dynamic shared memory of a stage B block; ``rows``: 2, or 1 where no draft row is read."""
        if not self.resident:
            return HEADER_BYTES
        staged = up_to(self.slice, 8)
        return HEADER_BYTES + (staged * (rows - 1) + self.slice) * item_bytes


def layout(vocabulary: int, dtype: str, *, rows: int, architecture: int) -> Layout:
    """Resident in the smallest cluster (a power of two up to 8) whose slices fit, else streamed by one block."""
    item = ITEM_BYTES[dtype]
    most = MAX_CLUSTER if has_clusters(architecture) else 1
    cluster = 1
    while cluster <= most:
        part = up_to(math.ceil(vocabulary / cluster), 8)
        limit = LARGEST_SLICE_BYTES if cluster == MAX_CLUSTER else SLICE_BYTES
        if part * item * rows <= limit:
            return Layout(cluster, part, resident=True)
        cluster *= 2
    return Layout(1, vocabulary, resident=False)


def up_to(count: int, step: int) -> int:
    """``count`` rounded up to a multiple of ``step``."""
    return -(-count // step) * step


def has_clusters(architecture: int) -> bool:
    """Data-centre parts from sm_90 on: clusters of 8 and 227 kB of shared memory a block."""
    return architecture // 10 in (9, 10)


def check_rule(rule: str, redistribution: str, budget: str) -> None:
    """Refuse an unknown rule or option by name."""
    for what, value, known in (
        ("rule", rule, RULES), ("redistribution", redistribution, REDISTRIBUTIONS), ("budget", budget, BUDGETS)
    ):  # fmt: skip
        if value not in known:
            raise InputError(f"{what} {value!r} is unknown on the GPU path; use {', '.join(known)}")


def arguments(call: dict[str, Any]) -> tuple[Any, ...]:
    """Kernel arguments in the order of RS_PARAMETERS."""
    return tuple(call[name] for name in PARAMETERS)


PARAMETERS = (
    "target", "draft", "target_norm", "draft_norm", "tokens", "coins", "target_stride", "draft_stride",
    "inverse_temperature", "nodes", "vocabulary", "candidates", "flags", "slice", "accepted", "token", "status",
    "list", "listed",
)  # fmt: skip

"""Runs the fused kernels on the current device. The only module that needs one; CuPy is imported when it is called."""

from __future__ import annotations

from functools import cache
from typing import Any

from resispec_core.errors import InputError
from resispec_core.gpu.array import Decisions
from resispec_core.gpu.checks import Checked
from resispec_core.gpu.compile import compiled
from resispec_core.gpu.config import (
    HAS_DRAFT_NORM,
    HAS_TARGET_NORM,
    ITEM_BYTES,
    LIST_ALL,
    KernelConfig,
    Layout,
    arguments,
    kernel_config,
    layout,
)

MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""
STAGE_A_THREADS = 128


def verify(
    rule: str, given: Checked, redistribution: str, budget: str, chosen: Layout | None = None
) -> Decisions:
    """Two launches on the current stream; nothing is copied to the host, nothing synchronises.

    ``chosen`` overrides the layout (the tests do). Raises ``InputError`` for rows the kernels do not take.
    """
    import cupy

    if given.policy.dtype not in ITEM_BYTES:
        raise InputError(
            f"rows are {given.policy.dtype}; the kernels take {', '.join(ITEM_BYTES)} (layer='array' takes it)"
        )
    nodes, vocabulary = given.target.shape
    candidates = given.tokens.shape[1]
    rows = 1 if rule == "deterministic" else 2
    with given.target.device:
        architecture = int(given.target.device.compute_capability)
        plan = chosen or layout(vocabulary, given.policy.dtype, rows=rows, architecture=architecture)
        config = kernel_config(
            rule, candidates, redistribution, budget, given.policy.dtype, logits=given.policy.kind == "logits",
            resident=plan.resident, cluster=plan.cluster if plan.cluster > 1 else 0,
        )  # fmt: skip
        answer = Decisions(
            cupy.empty(nodes, cupy.int64), cupy.empty(nodes, cupy.int64), cupy.empty(nodes, cupy.int32)
        )
        nothing = cupy.empty(1, cupy.float64)
        call = {
            "target": given.target, "draft": given.draft,
            "target_norm": nothing if given.target_norm is None else cupy.ascontiguousarray(given.target_norm),
            "draft_norm": nothing if given.draft_norm is None else cupy.ascontiguousarray(given.draft_norm),
            "tokens": cupy.ascontiguousarray(given.tokens), "coins": cupy.ascontiguousarray(given.coins),
            "target_stride": _stride(given.target), "draft_stride": _stride(given.draft),
            "inverse_temperature": _scalar("float64", given.policy.inverse_temperature),
            "nodes": _scalar("int32", nodes), "vocabulary": _scalar("int32", vocabulary),
            "candidates": _scalar("int32", candidates), "flags": _scalar("int32", flags(config, given)),
            "slice": _scalar("int32", plan.slice), "accepted": answer.accepted, "token": answer.token,
            "status": answer.status, "list": cupy.empty(nodes, cupy.int32), "listed": cupy.zeros(1, cupy.int32),
        }  # fmt: skip
        stage_a, stage_b = _functions(config, architecture, given.target.device.id)
        values = arguments(call)
        stage_a((-(-nodes // STAGE_A_THREADS),), (STAGE_A_THREADS,), values)
        shared = plan.shared_bytes(ITEM_BYTES[config.dtype], rows)
        stage_b((nodes * plan.cluster,), (plan.threads,), values, shared_mem=shared)
    return answer


def flags(config: KernelConfig, given: Checked) -> int:
    """The launch flags; logits whose normaliser is missing force every node to stage B."""
    norms = (given.target_norm, given.draft_norm)[: 1 if config.rule == "deterministic" else 2]
    lazy = config.logits and any(norm is None for norm in norms)
    bits = HAS_TARGET_NORM * (given.target_norm is not None) + HAS_DRAFT_NORM * (given.draft_norm is not None)
    return bits + LIST_ALL * (lazy or given.policy.validate == "all")


def _stride(rows: Any) -> Any:
    return _scalar("int64", rows.strides[0] // rows.itemsize)


def _scalar(dtype: str, value: float) -> Any:
    import numpy as np

    return np.dtype(dtype).type(value)


@cache
def _functions(config: KernelConfig, architecture: int, device: int) -> tuple[Any, Any]:
    """Both kernels, loaded on one device."""
    del device  # part of the key: a module belongs to a context
    from cupy.cuda.function import Module
    from cupy_backends.cuda.api import driver  # type: ignore[import-untyped]

    functions = []
    for stage in ("stage_a", "stage_b"):
        module = Module()
        module.load(compiled(config, stage, architecture).cubin)
        functions.append(module.get_function(stage))
    if config.resident:
        limit = 227 * 1024 if config.cluster else 96 * 1024
        driver.funcSetAttribute(functions[1].ptr, MAX_DYNAMIC_SHARED, limit)
    return functions[0], functions[1]

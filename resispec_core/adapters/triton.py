"""Triton kernels on a CPU, under Triton's own interpreter, as kernels for the tape.

Triton decides when it is imported whether its functions are interpreted, so ``TRITON_INTERPRET=1`` must be in the
environment before that. Nothing here imports Triton or torch until a wrapped kernel is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module, metadata
from typing import Any

import numpy as np

from resispec_core.arrays import Array
from resispec_core.errors import InputError

VARIABLE = "TRITON_INTERPRET"


def interpreted(launch: Callable[..., Any], *, dtype: str = "float32") -> Callable[..., int]:
    """``launch(target, draft, candidates, uniforms) -> token`` on torch tensors, as a kernel for the tape.

    ``launch`` starts the Triton kernel and returns the token: an integer, or a tensor with one element. It gets new
    contiguous CPU tensors every time: rows of shape (V,) in ``dtype`` (a torch type's name), int64 candidates of shape
    (n,), float32 uniforms of shape (coins,). Audit the result with ``tape_audit``, or as ``resispec audit
    FILE:NAME --signature kernel``; the tape's verdicts hold for the interpreter's arithmetic, which is NumPy's.

    Raises ``InputError`` where Triton is missing or was imported without the interpreter. Cost: a few milliseconds a
    call, thousands of calls: give one pair of rows and one candidate. Cannot see: what the compiler does (fused
    multiply-add, fast exponentials), races between blocks, and coins that the kernel draws itself (``tl.rand``).
    """

    @wraps(launch)
    def kernel(target: Array, draft: Array, candidates: Array, uniforms: Array) -> int:
        require_interpreter()
        import torch

        rows = [torch.tensor(np.asarray(row), dtype=getattr(torch, dtype)) for row in (target, draft)]
        ids = torch.tensor(np.asarray(candidates), dtype=torch.int64)
        return int(launch(*rows, ids, torch.tensor(np.asarray(uniforms), dtype=torch.float32)))

    return kernel


def first_config(kernel: Any) -> Any:
    """``kernel`` with only the first of the configurations that ``triton.autotune`` gave it; returns it.

    Choosing between several is done by timing them on a device, which the interpreter has not.
    """
    configs = getattr(kernel, "configs", None)
    if not configs:
        raise InputError(f"{kernel!r} has no configurations; pass the kernel that triton.autotune returned")
    kernel.configs = configs[:1]
    return kernel


def require_interpreter() -> None:
    """``InputError`` unless Triton is installed and its functions are interpreted."""
    try:
        language = import_module("triton.language")
    except ImportError as error:
        raise InputError(f"Triton cannot be imported ({error}); pip install triton") from None
    if type(language.sum).__name__ != "InterpretedFunction":
        raise InputError(
            f"Triton {version()} was imported to compile for a device; set {VARIABLE}=1 in the environment before "
            "Python starts, and its kernels run on this CPU"
        )


def version() -> str | None:
    """The installed Triton; None where there is none."""
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return getattr(sys.modules.get("triton"), "__version__", None)

"""The input policy of the GPU path: what is accepted, and an ``InputError`` that names what is not.

Whole-call mistakes (dtype, shape, device, stride) raise here, before anything runs. Mistakes of one node (a NaN, an
id out of range, a coin outside [0, 1)) are the node's status and never stop the batch.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from resispec_core.errors import InputError
from resispec_core.gpu.config import check_rule
from resispec_core.gpu.numerics import MAX_VOCAB, cast, namespace
from resispec_core.gpu.rows import KINDS, VALIDATE, Policy
from resispec_core.gpu.sequential import MAX_CANDIDATES

ROW_DTYPES = {"float32": "float32", "float16": "float16", "bfloat16": "bfloat16", "float64": "float64"}


class Checked(NamedTuple):
    """Arrays of one namespace, in the form the rules take."""

    xp: Any
    target: Any
    draft: Any
    tokens: Any
    coins: Any
    target_norm: Any
    draft_norm: Any
    policy: Policy


def checked(
    rule: str, target: Any, draft: Any, tokens: Any, coins: Any, *, redistribution: str, budget: str, kind: str,
    temperature: float, target_norm: Any, draft_norm: Any, validate: str,
) -> Checked:  # fmt: skip
    """Validated arrays. torch tensors come in by DLPack, without a copy; rows of a 16-bit type as bit patterns."""
    check_rule(rule, redistribution, budget)
    for what, value, known in (("kind", kind, KINDS), ("validate", validate, VALIDATE)):
        if value not in known:
            raise InputError(f"{what} {value!r} is unknown; use {' or '.join(known)}")
    if not (
        isinstance(temperature, int | float) and math.isfinite(temperature) and 1e-6 <= temperature <= 1e6
    ):
        raise InputError(
            f"temperature is {temperature!r}; the GPU path takes 1e-6 to 1e6 (0 is greedy: use argmax)"
        )
    if kind == "probabilities" and temperature != 1:
        raise InputError(
            f"temperature is {temperature!r} but kind is 'probabilities'; pass logits to rescale them"
        )
    if draft is None:
        if rule != "deterministic":
            raise InputError(f"draft is None; only rule 'deterministic' reads no draft row, not {rule!r}")
        draft = target
    target, dtype = _rows(target, "target")
    draft, draft_dtype = _rows(draft, "draft")
    if draft_dtype != dtype:
        raise InputError(f"target is {dtype} and draft is {draft_dtype}; convert one of them")
    xp = namespace(target)
    nodes, vocabulary = target.shape
    if tuple(draft.shape) != (nodes, vocabulary):
        raise InputError(
            f"draft has shape {tuple(draft.shape)}, target {(nodes, vocabulary)}; they must agree"
        )
    tokens = _small(xp, tokens, "tokens", ("int64", "int32"), "int64")
    coins = _small(xp, coins, "coins", ("float64", "float32"), "float64")
    if tokens.ndim != 2 or tokens.shape[0] != nodes or not 1 <= tokens.shape[1] <= MAX_CANDIDATES:
        raise InputError(
            f"tokens has shape {tuple(tokens.shape)}; expected ({nodes}, b) with 1 <= b <= {MAX_CANDIDATES} candidates"
        )
    candidates = tokens.shape[1]
    if rule == "single_draft" and candidates != 1:
        raise InputError(f"single_draft verifies one candidate, not {candidates}; use specinfer for several")
    if tuple(coins.shape) != (nodes, candidates + 1):
        raise InputError(
            f"coins has shape {tuple(coins.shape)}; expected ({nodes}, {candidates + 1}): "
            "one for each candidate, one to resample"
        )
    target_norm = _norm(xp, target_norm, "target", nodes)
    draft_norm = _norm(xp, draft_norm, "draft", nodes)
    _same_device((target, draft, tokens, coins, target_norm, draft_norm))
    policy = Policy(kind, float(temperature), dtype, validate)
    return Checked(xp, target, draft, tokens, coins, target_norm, draft_norm, policy)


def _rows(array: Any, name: str) -> tuple[Any, str]:
    array, dtype = _imported(array, name)
    if dtype not in ROW_DTYPES:
        raise InputError(f"{name} has dtype {dtype}; rows are float32, bfloat16 or float16")
    if array.ndim != 2 or array.shape[0] == 0 or array.shape[1] == 0:
        raise InputError(
            f"{name} has shape {tuple(array.shape)}; expected (nodes, vocabulary), both at least 1"
        )
    if array.shape[1] > MAX_VOCAB:
        raise InputError(
            f"{name} has {array.shape[1]} tokens; the GPU path's integer sums hold up to {MAX_VOCAB}"
        )
    strides = getattr(array, "strides", None)
    if strides is not None and array.shape[1] > 1 and strides[1] != array.itemsize:
        raise InputError(
            f"{name} is strided along the vocabulary ({strides[1]} bytes between tokens); make the rows contiguous"
        )
    if strides is not None and array.shape[0] > 1 and (strides[0] < 0 or strides[0] % array.itemsize):
        raise InputError(f"{name} has {strides[0]} bytes between rows; copy it to a contiguous array")
    if dtype == "float16" and hasattr(array, "view"):
        array = array.view(namespace(array).uint16)
    return array, dtype


def _imported(array: Any, name: str) -> tuple[Any, str]:
    """The array in its namespace (DLPack for torch) and the name of its dtype."""
    module = type(array).__module__.split(".")[0]
    if module == "torch":
        return _from_torch(array)
    if module not in ("numpy", "cupy") and not hasattr(array, "__array_namespace__"):
        raise InputError(f"{name} is a {type(array).__name__}; expected a CuPy, NumPy or torch array")
    return array, str(array.dtype).rsplit(".", 1)[-1]


def _from_torch(tensor: Any) -> tuple[Any, str]:
    torch = sys.modules["torch"]
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.requires_grad:
        tensor = tensor.detach()
    if dtype in ("bfloat16", "float16"):  # NumPy knows no bfloat16: the bit patterns travel
        tensor = tensor.view(torch.uint16)
    if tensor.device.type == "cpu":
        return np.from_dlpack(tensor), dtype
    if tensor.device.type != "cuda":
        raise InputError(f"a torch tensor on {tensor.device}; the GPU path takes CUDA or CPU tensors")
    import cupy

    return cupy.from_dlpack(tensor), dtype


def _small(xp: Any, array: Any, name: str, allowed: tuple[str, ...], wanted: str) -> Any:
    array, dtype = _imported(array, name)
    if dtype not in allowed:
        raise InputError(f"{name} has dtype {dtype}; expected {' or '.join(allowed)}")
    if namespace(array).__name__ != xp.__name__:
        raise InputError(
            f"{name} is a {namespace(array).__name__} array, the rows are {xp.__name__}; move it to the same device"
        )
    return array if dtype == wanted else cast(xp, array, getattr(xp, wanted))


def _norm(xp: Any, norm: Any, side: str, nodes: int) -> Any:
    if norm is None:
        return None
    norm = _small(xp, norm, f"{side}_norm", ("float64", "float32"), "float64")
    if tuple(norm.shape) != (nodes,):
        raise InputError(
            f"{side}_norm has shape {tuple(norm.shape)}; expected ({nodes},): one sum or log-sum-exp for each row"
        )
    return norm


def _same_device(arrays: tuple[Any, ...]) -> None:
    devices = {str(array.device) for array in arrays if array is not None and hasattr(array, "device")}
    if len(devices) > 1:
        raise InputError(
            f"the arrays are on different devices ({', '.join(sorted(devices))}); move them to one"
        )

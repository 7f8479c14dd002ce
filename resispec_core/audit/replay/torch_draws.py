"""torch's random sources under replay, with their argument checks and error messages."""

# ruff: noqa: ARG001 (the handlers of one table share one signature)
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from resispec_core.audit.replay import draws
from resispec_core.audit.replay.grid import FRACTION_24, FRACTION_53, Grid, half_grid
from resispec_core.audit.replay.torch_shadow import Pending, Shadows
from resispec_core.audit.replay.trail import RefusalError, call_site


def grid_of(dtype: torch.dtype) -> Grid:
    """The values torch's CPU ``rand`` takes in ``dtype``."""
    if dtype == torch.float64:
        return FRACTION_53
    if dtype == torch.float32:
        return FRACTION_24
    return half_grid("float16" if dtype == torch.float16 else "bfloat16")


def _fill(shadows: Shadows, tensor: torch.Tensor, make: Callable[[], Any]) -> torch.Tensor:
    return shadows.write(tensor, [make() for _ in range(tensor.numel())])


def _rand(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
    options = {
        key: value for key, value in kwargs.items() if key in ("dtype", "device") and value is not None
    }
    if "out" in kwargs:
        raise draws.required().refuse(RefusalError(f"torch.rand(out=...) at {call_site()} is not followed"))
    tensor = torch.empty(args[0], **options)
    return _fill(shadows, tensor, lambda: draws.uniform(grid_of(tensor.dtype)))


def _rand_like(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
    options = {key: value for key, value in kwargs.items() if key == "dtype" and value is not None}
    tensor = torch.empty(args[0].shape, dtype=options.get("dtype", args[0].dtype))
    return _fill(shadows, tensor, lambda: draws.uniform(grid_of(tensor.dtype)))


def _uniform_(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
    tensor, low, high = (*args, *(0.0, 1.0)[len(args) - 1 :])[:3]
    return _fill(shadows, tensor, lambda: draws.uniform(grid_of(tensor.dtype)) * (high - low) + low)


def _exponential_(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
    tensor, rate = args[0], args[1] if len(args) > 1 else 1.0
    return _fill(shadows, tensor, lambda: draws.exponential(grid_of(tensor.dtype)) / rate)


def _bernoulli(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
    tensor = args[0]
    in_place = func.overloadpacket.__name__.endswith("_")
    chance: Any = args[1] if len(args) > 1 else kwargs.get("p", 0.5 if in_place else tensor)
    if shadows.holds(chance):
        raise draws.required().refuse(RefusalError(f"bernoulli of a coin at {call_site()}"))
    chances = chance.expand(tensor.shape).reshape(-1).tolist() if isinstance(chance, torch.Tensor) else None
    chances = chances if chances is not None else [chance] * tensor.numel()
    if any(not 0 <= value <= 1 for value in chances):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    found = [float(draws.bernoulli(value, "bernoulli")) for value in chances]
    return shadows.write(tensor if in_place else torch.empty_like(tensor), found)


def _multinomial(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
    tensor, count = args[0], args[1]
    replacement = args[2] if len(args) > 2 else kwargs.get("replacement", False)
    if shadows.holds(tensor):
        raise draws.required().refuse(RefusalError(f"multinomial over coins at {call_site()}"))
    size = tensor.shape[-1] if tensor.dim() else 0
    if tensor.dim() not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not tensor.is_floating_point():
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {tensor.dtype}")
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > size:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    rows = tensor.reshape(-1, size).tolist()
    if any(not (0 <= weight < math.inf) for row in rows for weight in row):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (replacement or count == 1) and any(sum(row) == 0 for row in rows):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    found: list[Any] = []
    for row in rows:
        if replacement or count == 1:
            found += [Pending(row) if sum(w > 0 for w in row) > 1 else _only(row) for _ in range(count)]
            continue
        chosen = draws.ordered(row, count, "multinomial")
        rank = torch.zeros(size)
        rank[chosen] = torch.arange(len(chosen), 0, -1, dtype=torch.float32)
        found += torch.topk(rank, count).indices.tolist()  # zero weights fill up, as in torch's own kernel
    result = torch.empty((*tensor.shape[:-1], count), dtype=torch.int64)
    return shadows.write(result, found)


def _only(row: list[float]) -> int:
    return draws.categorical(row, "multinomial")


def _randint(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
    numbers = [argument for argument in args if isinstance(argument, int)]
    low, high = numbers if len(numbers) == 2 else (0, numbers[0])
    size = args[0].shape if isinstance(args[0], torch.Tensor) else args[len(numbers)]
    tensor = torch.empty(size, dtype=kwargs.get("dtype") or torch.int64)
    return _fill(shadows, tensor, lambda: draws.integer(low, high, "randint"))


def _randperm(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
    order = draws.ordered([1] * args[0], args[0], "randperm")
    return torch.tensor(order, dtype=kwargs.get("dtype") or torch.int64)


SOURCES: dict[str, Callable[..., Any]] = {
    "rand": _rand,
    "rand_like": _rand_like,
    "uniform_": _uniform_,
    "exponential_": _exponential_,
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli,
    "multinomial": _multinomial,
    "randint": _randint,
    "randperm": _randperm,
    "randint_like": _randint,
}

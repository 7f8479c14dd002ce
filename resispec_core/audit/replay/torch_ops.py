"""What torch operations do to coins: arithmetic and comparisons entry by entry, copies on the identifiers, races."""

# ruff: noqa: ARG001 (the handlers of one table share one signature)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from resispec_core.audit.replay import draws
from resispec_core.audit.replay.coin import Symbol
from resispec_core.audit.replay.race import ranking
from resispec_core.audit.replay.torch_shadow import NONE, Shadows
from resispec_core.audit.replay.trail import RefusalError, call_site


def _minimum(a: Any, b: Any) -> Any:
    return a if a <= b else b


def _clamp(value: Any, low: Any = None, high: Any = None) -> Any:
    if low is not None and value < low:
        return low
    return high if high is not None and value > high else value


ENTRYWISE: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "rsub": lambda a, b: b - a,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "log": lambda a: a.log(),
    "log2": lambda a: a.log2(),
    "log10": lambda a: a.log10(),
    "log1p": lambda a: a.log1p(),
    "exp": lambda a: a.exp(),
    "expm1": lambda a: a.expm1(),
    "sqrt": lambda a: a.sqrt(),
    "reciprocal": lambda a: a.reciprocal(),
    "pow": lambda a, b: a**b,
    "abs": abs,
    "floor": lambda a: a.floor(),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "clamp": _clamp,
    "clamp_min": lambda a, b: _clamp(a, b),
    "clamp_max": lambda a, b: _clamp(a, None, b),
    "minimum": _minimum,
    "maximum": lambda a, b: b if _minimum(a, b) is a else a,
    "isnan": lambda _: False,
    "isinf": lambda _: False,
}
COPYING: dict[str, tuple[int, ...]] = {
    "clone": (0,), "_to_copy": (0,), "cat": (0,), "stack": (0,), "index": (0,), "gather": (0,), "index_select": (0,),
    "masked_select": (0,), "repeat": (0,), "flip": (0,), "roll": (0,), "where": (1, 2), "copy_": (0, 1),
    "index_put_": (0, 2), "index_put": (0, 2), "masked_fill": (0, 2), "masked_fill_": (0, 2), "fill_": (0, 1),
    "zero_": (0,), "constant_pad_nd": (0,), "scatter": (0, 3), "scatter_": (0, 3), "take": (0,),
}  # fmt: skip
"""Operations that move elements: positions of the arguments whose elements move."""
HARMLESS = {
    "empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_zeros", "new_ones", "new_full", "detach",
    "alias", "view", "_unsafe_view", "select", "slice", "unsqueeze", "squeeze", "expand", "permute", "transpose", "t",
    "as_strided", "unbind", "split", "split_with_sizes", "diagonal", "_reshape_alias", "unfold", "sym_size",
    "sym_stride", "sym_numel", "lift_fresh", "uniform_", "exponential_", "bernoulli_", "empty_strided",
}  # fmt: skip
"""Views, and operations that read no element."""


def tensors(tree: Any) -> list[torch.Tensor]:
    """Every tensor in nested arguments."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (tuple, list)):
        return [tensor for item in tree for tensor in tensors(item)]
    return []


def copying(shadows: Shadows, func: Any, name: str, moving: tuple[int, ...], args: Any, kwargs: Any) -> Any:
    """Run a copying operation on the data and again on the identifiers."""
    target = args[0] if name.endswith("_") else None
    if target is not None:
        shadows.make(target)

    def marks(position: int, argument: Any) -> Any:
        if position not in moving:
            return argument
        if isinstance(argument, (tuple, list)):
            return [marks(position, item) for item in argument]
        if not isinstance(argument, torch.Tensor):
            return NONE if isinstance(argument, (int, float)) and position > 0 else argument
        found = shadows.of(argument)
        return torch.full(argument.shape, NONE, dtype=torch.int64) if found is None else found

    moved = [marks(position, argument) for position, argument in enumerate(args)]
    if name == "fill_":
        moved[1] = NONE if not isinstance(args[1], torch.Tensor) else moved[1]
    if name == "constant_pad_nd":
        moved[2:] = [NONE]
    result = func(*args, **kwargs)
    options = {key: value for key, value in kwargs.items() if key not in ("dtype", "device", "memory_format")}
    if name == "zero_":
        shadows.make(args[0]).fill_(NONE)
    elif name == "_to_copy":
        shadows.make(result).copy_(moved[0])
    elif target is not None:
        func(*moved, **options)
    else:
        shadows.make(result).copy_(func(*moved, **options))
    return result


def entrywise(shadows: Shadows, func: Any, operation: Any, in_place: bool, args: Any, kwargs: Any) -> Any:
    """Run ``operation`` on every entry that is a coin; the others are torch's own."""
    alpha = kwargs.get("alpha", 1)
    sizes = [argument.shape for argument in args if isinstance(argument, torch.Tensor)]
    shape = torch.broadcast_shapes(*sizes)  # type: ignore[no-untyped-call]
    columns = [shadows.values(argument, shape) if argument is not None else None for argument in args]
    columns += [shadows.values(kwargs[key], shape) for key in ("min", "max") if key in kwargs]
    result = func(*args, **kwargs)
    plain = shadows.values(result) if not in_place else result.reshape(-1).tolist()
    found = []
    for place in range(shape.numel()):
        entries = [None if column is None else column[place] for column in columns]
        if not any(isinstance(entry, Symbol) for entry in entries):
            found.append(plain[place])
            continue
        if alpha != 1:
            entries[1] = entries[1] * alpha
        found.append(operation(*entries))
    return shadows.write(result, found)


def _rows(shadows: Shadows, tensor: torch.Tensor, dim: int) -> tuple[list[list[Any]], torch.Size]:
    shape = tensor.movedim(dim, -1).shape
    shadow = shadows.make(tensor).movedim(dim, -1).reshape(-1, shape[-1])
    data = tensor.movedim(dim, -1).reshape(-1, shape[-1])
    rows = []
    for marks, values in zip(shadow.tolist(), data.tolist(), strict=True):
        rows.append(
            [
                shadows.entries[mark] if mark != NONE else value
                for mark, value in zip(marks, values, strict=True)
            ]
        )
    return rows, shape[:-1]


def _rank_row(row: list[Any], count: int, largest: bool) -> list[int]:
    if any(isinstance(entry, Symbol) for entry in row):
        return ranking(row, count, largest=largest)
    return torch.topk(torch.tensor(row, dtype=torch.float64), count, largest=largest).indices.tolist()


def _argument(largest: bool) -> Callable[..., Any]:
    def answer(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
        tensor, dim, keep = (*args, *[None, False][len(args) - 1 :])[:3]
        dim = kwargs.get("dim", dim)
        if dim is None:
            tensor, dim = tensor.reshape(-1), 0
        rows, shape = _rows(shadows, tensor, dim)
        found = torch.tensor([_rank_row(row, 1, largest)[0] for row in rows], dtype=torch.int64).reshape(
            shape
        )
        return found.unsqueeze(dim) if keep or kwargs.get("keepdim") else found

    return answer


def _topk(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
    tensor, count = args[0], args[1]
    dim = args[2] if len(args) > 2 else kwargs.get("dim", -1)
    largest = args[3] if len(args) > 3 else kwargs.get("largest", True)
    return _ordered(shadows, tensor, count, dim, largest)


def _ordered(shadows: Shadows, tensor: torch.Tensor, count: int, dim: int, largest: bool) -> Any:
    rows, shape = _rows(shadows, tensor, dim)
    order = [_rank_row(row, count, largest) for row in rows]
    indices = torch.tensor(order, dtype=torch.int64).reshape(*shape, count)
    values = torch.empty(indices.shape, dtype=tensor.dtype)
    shadows.write(values, [row[place] for row, places in zip(rows, order, strict=True) for place in places])
    return values.movedim(-1, dim), indices.movedim(-1, dim)


def _sort(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
    tensor = args[0]
    rest = list(args[1:])
    if rest and isinstance(rest[0], bool) and len(rest) == 3:
        rest = rest[1:]
    dim = rest[0] if rest else kwargs.get("dim", -1)
    descending = rest[1] if len(rest) > 1 else kwargs.get("descending", False)
    return _ordered(shadows, tensor, tensor.shape[dim], dim, bool(descending))


def _extreme(largest: bool) -> Callable[..., Any]:
    def answer(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
        if len(args) < 2:
            raise draws.required().refuse(
                RefusalError(f"the {func} of coins is taken at {call_site()}; not followed")
            )
        keep = args[2] if len(args) > 2 else kwargs.get("keepdim", False)
        values, indices = _ordered(shadows, args[0], 1, args[1], largest)
        return (values, indices) if keep else (values.squeeze(args[1]), indices.squeeze(args[1]))

    return answer


def _searchsorted(shadows: Shadows, func: Any, args: Any, kwargs: Any) -> Any:
    edges, wanted = (args[0], args[1]) if "searchsorted" in str(func) else (args[1], args[0])
    right = bool(kwargs.get("right", False)) or kwargs.get("side") == "right"
    shape = wanted.shape if isinstance(wanted, torch.Tensor) else torch.Size([])
    cells = shadows.values(wanted)
    if edges.dim() == 1:
        table = [edges.tolist()] * len(cells)
    else:
        each = shape[-1]
        table = [row for row in edges.reshape(-1, edges.shape[-1]).tolist() for _ in range(each)]
    found = []
    for row, cell in zip(table, cells, strict=True):
        low, high = 0, len(row)
        while low < high:
            middle = (low + high) // 2
            goes_right = cell >= row[middle] if right else cell > row[middle]
            low, high = (middle + 1, high) if goes_right else (low, middle)
        found.append(low)
    kind = torch.int32 if kwargs.get("out_int32") else torch.int64
    return torch.tensor(found, dtype=kind).reshape(shape)


ORDERS: dict[str, Callable[..., Any]] = {
    "argmax": _argument(True),
    "argmin": _argument(False),
    "topk": _topk,
    "sort": _sort,
    "max": _extreme(True),
    "min": _extreme(False),
    "searchsorted": _searchsorted,
    "bucketize": _searchsorted,
}

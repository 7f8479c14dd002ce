"""torch under replay: two modes that see every operation, whoever calls it and however its name was bound.

Coins live in a *shadow* of a tensor's storage: one identifier an element, so that views, slices and in-place writes
alias exactly as the data do. The data themselves hold NaN. Copying operations are run on the identifiers as well;
arithmetic and comparisons go entry by entry; every operation torch tags as drawing random numbers and that is not
answered here is refused by its name, as is every operation on a coin that is not listed.

Imported only when torch is already in the process.
"""

# ruff: noqa: ARG001 (the handlers of one table share one signature)
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from resispec_core.audit.replay import draws
from resispec_core.audit.replay.coin import Symbol
from resispec_core.audit.replay.grid import FRACTION_24, FRACTION_53, Grid, half_grid
from resispec_core.audit.replay.numpy_source import CoinArray
from resispec_core.audit.replay.race import ranking
from resispec_core.audit.replay.trail import LeakError, RefusalError, Trail, call_site

NONE = -1


class Pending:
    """A categorical draw whose index nobody has looked at yet: returned unchanged, it is a whole law at once."""

    def __init__(self, weights: list[Any]) -> None:
        self.weights = weights


class Shadows:
    """The coins in the storages of one run."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._flat: dict[int, tuple[torch.Tensor, Any]] = {}

    def of(self, tensor: Any) -> torch.Tensor | None:
        """The identifiers behind ``tensor``, as a view that writes through; None where it holds no coin."""
        if not self._flat or not isinstance(tensor, torch.Tensor):
            return None
        found = self._flat.get(tensor.untyped_storage()._cdata)
        if found is None:
            return None
        return torch.as_strided(found[0], tensor.size(), tensor.stride(), tensor.storage_offset())

    def make(self, tensor: torch.Tensor) -> torch.Tensor:
        """As ``of``, creating the shadow of a storage that has none."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self._flat:
            length = storage.nbytes() // tensor.element_size()
            self._flat[storage._cdata] = (torch.full((length,), NONE, dtype=torch.int64), storage)
        found = self.of(tensor)
        assert found is not None
        return found

    def holds(self, tensor: Any) -> bool:
        """Whether any element of ``tensor`` is a coin."""
        found = self.of(tensor)
        return found is not None and bool((found != NONE).any())

    def values(self, tensor: Any, like: torch.Size | None = None) -> list[Any]:
        """The elements in order, coins as objects and the rest as numbers."""
        if not isinstance(tensor, torch.Tensor):
            return [tensor] * (like.numel() if like is not None else 1)
        shadow = self.of(tensor)
        if like is not None:
            tensor = tensor.expand(like)
            shadow = None if shadow is None else shadow.expand(like)
        plain = tensor.detach().reshape(-1).tolist()
        if shadow is None:
            return plain
        marks = shadow.reshape(-1).tolist()
        return [
            self.entries[mark] if mark != NONE else value for mark, value in zip(marks, plain, strict=True)
        ]

    def write(self, tensor: torch.Tensor, values: Sequence[Any]) -> torch.Tensor:
        """Put ``values`` into ``tensor``: coins into its shadow over NaN, numbers into the data."""
        marks, numbers = [], []
        empty = math.nan if tensor.is_floating_point() else 0
        for value in values:
            coin = isinstance(value, (Symbol, Pending))
            if coin:
                self.entries.append(value)
            marks.append(len(self.entries) - 1 if coin else NONE)
            numbers.append(empty if coin else value)
        tensor.copy_(torch.tensor(numbers, dtype=tensor.dtype).reshape(tensor.shape))
        if any(mark != NONE for mark in marks) or self.of(tensor) is not None:
            self.make(tensor).copy_(torch.tensor(marks, dtype=torch.int64).reshape(tensor.shape))
        return tensor

    def settle(self, tensor: torch.Tensor) -> None:
        """Decide every pending draw that ``tensor`` holds, wherever else it was copied to."""
        shadow = self.of(tensor)
        if shadow is None:
            return
        for mark in {mark for mark in shadow.reshape(-1).tolist() if mark != NONE}:
            entry = self.entries[mark]
            if not isinstance(entry, Pending):
                continue
            index = draws.categorical(entry.weights, "multinomial")
            for flat, storage in self._flat.values():
                hit = flat == mark
                if bool(hit.any()):
                    data = torch.empty(0, dtype=torch.int64).set_(storage)
                    data[hit] = index
                    flat[hit] = NONE


def grid_of(dtype: torch.dtype) -> Grid:
    """The values torch's CPU ``rand`` takes in ``dtype``."""
    if dtype == torch.float64:
        return FRACTION_53
    if dtype == torch.float32:
        return FRACTION_24
    return half_grid("float16" if dtype == torch.float16 else "bfloat16")


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


class Dispatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Every operator below autograd."""

    def __init__(self, shadows: Shadows) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.shadows = shadows

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        answer = SOURCES.get(name)
        if answer is not None:
            return answer(self.shadows, func, args, kwargs)
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise draws.required().refuse(
                RefusalError(
                    f"torch.{name.rstrip('_')} ({func}) is read at {call_site()}; the replay cannot control it. Use "
                    "rand, rand_like, uniform_, bernoulli, multinomial, exponential_ or randint"
                )
            )
        if name in HARMLESS or not self.shadows._flat or not self._shadowed(args, kwargs):
            return func(*args, **kwargs)
        return self._symbolic(func, name, args, kwargs)

    def _shadowed(self, args: Any, kwargs: Any) -> bool:
        return any(self.shadows.holds(tensor) for tensor in _tensors((args, kwargs)))

    def _symbolic(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        shadows = self.shadows
        moving = COPYING.get(name)
        for position, argument in enumerate(args):
            if moving is None or position not in moving:
                for tensor in _tensors(argument):
                    shadows.settle(tensor)
        if not self._shadowed(args, kwargs):
            return func(*args, **kwargs)
        if moving is not None:
            return _copying(shadows, func, name, moving, args, kwargs)
        base = name[:-1] if name.endswith("_") and name[:-1] in ENTRYWISE else name
        if base in ENTRYWISE and "out" not in kwargs and not kwargs.get("rounding_mode"):
            return _entrywise(shadows, func, ENTRYWISE[base], base is not name, args, kwargs)
        if name in ORDERS:
            return ORDERS[name](shadows, func, args, kwargs)
        if name == "_local_scalar_dense":
            raise draws.required().refuse(
                LeakError(
                    f"a coin in a tensor would be read as a number at {call_site()}; use .item() or compare it"
                )
            )
        raise draws.required().refuse(
            RefusalError(
                f"torch operation {func} meets a coin at {call_site()}; the replay cannot follow it exactly"
            )
        )


def _tensors(tree: Any) -> list[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (tuple, list)):
        return [tensor for item in tree for tensor in _tensors(item)]
    return []


def _copying(shadows: Shadows, func: Any, name: str, moving: tuple[int, ...], args: Any, kwargs: Any) -> Any:
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


def _entrywise(shadows: Shadows, func: Any, operation: Any, in_place: bool, args: Any, kwargs: Any) -> Any:
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


# the sources


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


class Function(TorchFunctionMode):
    """The few calls that turn a tensor into something else."""

    def __init__(self, shadows: Shadows) -> None:
        super().__init__()
        self.shadows = shadows

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in CONVERSIONS and args and self.shadows.of(args[0]) is not None:
            self.shadows.settle(args[0])
            if self.shadows.holds(args[0]):
                return CONVERSIONS[name](self.shadows, args[0])
        return func(*args, **(kwargs or {}))


def _item(shadows: Shadows, tensor: torch.Tensor) -> Any:
    if tensor.numel() != 1:
        raise RuntimeError(f"a Tensor with {tensor.numel()} elements cannot be converted to Scalar")
    return shadows.values(tensor)[0]


def _tolist(shadows: Shadows, tensor: torch.Tensor) -> Any:
    if tensor.dim() == 0:
        return _item(shadows, tensor)
    return [_tolist(shadows, row) if tensor.dim() > 1 else shadows.values(row)[0] for row in tensor.unbind(0)]


def _numpy(shadows: Shadows, tensor: torch.Tensor) -> Any:
    entries = np.empty(tensor.numel(), dtype=object)
    entries[:] = shadows.values(tensor)
    return entries.reshape(tensor.shape).view(CoinArray)


def _bool(shadows: Shadows, tensor: torch.Tensor) -> bool:
    return bool(_item(shadows, tensor))


def _leak(shadows: Shadows, tensor: torch.Tensor) -> Any:
    raise draws.required().refuse(
        LeakError(
            f"a tensor of coins would be read as plain numbers at {call_site()}; use .item(), .tolist() or compare it"
        )
    )


CONVERSIONS: dict[str, Callable[..., Any]] = {
    "item": _item,
    "tolist": _tolist,
    "numpy": _numpy,
    "__bool__": _bool,
    **dict.fromkeys(("__float__", "__int__", "__index__", "__array__", "data_ptr", "__dlpack__"), _leak),
}


def warm_up() -> None:
    """Make torch import what it loads at first use, some of which draws random numbers, before anything is patched."""
    with draws.answering(Trail()):
        shadows = Shadows()
        with Function(shadows), Dispatch(shadows):
            coins = torch.rand(2, 2)
            (coins.clone() * 2 < 3).sum()
            torch.multinomial(torch.tensor([0.5, 0.5, 0.0]), 3)

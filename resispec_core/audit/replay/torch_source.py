"""torch under replay: two modes that see every operation, whoever calls it and however its name was bound.

Every operation torch tags as drawing random numbers and that ``torch_draws`` does not answer is refused by its name, as
is every operation on a coin that ``torch_ops`` does not list. Imported only when torch is already in the process.
"""

# ruff: noqa: ARG001 (the handlers of one table share one signature)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from resispec_core.audit.replay import draws
from resispec_core.audit.replay.numpy_source import CoinArray
from resispec_core.audit.replay.torch_draws import SOURCES
from resispec_core.audit.replay.torch_ops import (
    COPYING,
    ENTRYWISE,
    HARMLESS,
    ORDERS,
    copying,
    entrywise,
    tensors,
)
from resispec_core.audit.replay.torch_shadow import Shadows
from resispec_core.audit.replay.trail import LeakError, RefusalError, Trail, call_site


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
        return any(self.shadows.holds(tensor) for tensor in tensors((args, kwargs)))

    def _symbolic(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        shadows = self.shadows
        moving = COPYING.get(name)
        for position, argument in enumerate(args):
            if moving is None or position not in moving:
                for tensor in tensors(argument):
                    shadows.settle(tensor)
        if not self._shadowed(args, kwargs):
            return func(*args, **kwargs)
        if moving is not None:
            return copying(shadows, func, name, moving, args, kwargs)
        base = name[:-1] if name.endswith("_") and name[:-1] in ENTRYWISE else name
        if base in ENTRYWISE and "out" not in kwargs and not kwargs.get("rounding_mode"):
            return entrywise(shadows, func, ENTRYWISE[base], base is not name, args, kwargs)
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

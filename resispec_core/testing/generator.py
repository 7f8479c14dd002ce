"""A ``numpy.random.Generator`` whose draws Hypothesis chooses: every coin that can fall, the nastiest ones first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from resispec_core.audit.replay.numpy_source import check_weights
from resispec_core.errors import InputError

STEPS = {np.dtype(np.float64): 53, np.dtype(np.float32): 24}
_BITS = np.random.PCG64(0)
"""Demanded by NumPy's constructor; nothing reads it."""


class ChosenGenerator(np.random.Generator):
    """Draws are examples of ``data``. Uniforms lie on the generator's real grid, 0 and the largest value below 1 among
    them; a token is any of positive weight. So a property that holds under it holds for every outcome; frequencies mean
    nothing. Methods that are not here are refused by name.
    """

    def __init__(self, data: Any) -> None:
        super().__init__(_BITS)
        self._data = data

    def __repr__(self) -> str:
        return "ChosenGenerator()"

    def _coin(self, dtype: Any = np.float64) -> float:
        if np.dtype(dtype) not in STEPS:
            raise TypeError(f"Unsupported dtype {np.dtype(dtype)!r} for random")
        top = 2 ** STEPS[np.dtype(dtype)]
        place = st.one_of(st.sampled_from([0, 1, top // 2, top - 1]), st.integers(0, top - 1))
        return float(self._data.draw(place, label="coin")) / top

    def _index(self, count: int, label: str) -> int:
        return int(self._data.draw(st.integers(0, count - 1), label=label))

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        if out is not None:
            out[...] = _filled(np.shape(out), lambda: self._coin(out.dtype), out.dtype)
            return out
        return _filled(size, lambda: self._coin(dtype), dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return low + (high - low) * self.random(size)

    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: str = "zig", out: Any = None
    ) -> Any:
        return -np.log1p(-self.random(size, dtype, out))

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return scale * self.standard_exponential(size)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        # NumPy draws again at u = 0, so the noise is always finite.
        return loc - scale * np.log(-np.log(np.maximum(self.random(size), 2.0**-53)))

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        low, high = (0, low) if high is None else (low, high)
        return _filled(size, lambda: low + self._index(high + endpoint - low, "integer"), dtype)

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        pool = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
        weights = [1] * len(pool) if p is None else check_weights(p, len(pool))
        live = [place for place, weight in enumerate(weights) if weight > 0]
        if size is None:
            return np.take(pool, live[self._index(len(live), "choice")], axis=axis)
        count = int(np.prod(size))
        if not replace and count > len(live):
            raise ValueError("Cannot take a larger sample than population when replace is False")
        found = []
        for _ in range(count):
            place = self._index(len(live), "choice")
            found.append(live[place] if replace else live.pop(place))
        return np.take(pool, np.array(found, dtype=int).reshape(size), axis=axis)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        pool = np.arange(x) if np.ndim(x) == 0 else np.asarray(x)
        return self.choice(pool, pool.shape[axis], replace=False, axis=axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        x[:] = self.permutation(np.asarray(x), axis)


def _filled(size: Any, make: Callable[[], Any], dtype: Any) -> Any:
    if size is None:
        return make()
    found = np.empty(size, dtype=dtype)
    for place in np.ndindex(*found.shape):
        found[place] = make()
    return found


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise InputError(
            f"Generator.{name} is not chosen by Hypothesis here; use random, uniform, choice, integers, exponential, "
            "gumbel, permutation or shuffle"
        )

    return refuse


REFUSED = [
    name
    for name in dir(np.random.Generator)
    if not name.startswith("_") and name not in vars(ChosenGenerator)
]
for _name in REFUSED:
    _refusal: Any = _refused(_name)
    setattr(
        ChosenGenerator,
        _name,
        _refusal if callable(getattr(np.random.Generator, _name)) else property(_refusal),
    )


@st.composite
def generators(draw: st.DrawFn) -> ChosenGenerator:
    """NumPy generators that return whatever Hypothesis chooses (see ``ChosenGenerator``)."""
    return ChosenGenerator(draw(st.data()))

"""NumPy's random sources under replay: a ``Generator`` and a ``RandomState`` that fork.

Both are real subclasses, so ``isinstance`` checks hold. Every public method is either answered exactly or refused by
name; none can reach the underlying bit generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from resispec_core.arrays import Array
from resispec_core.audit.replay import draws
from resispec_core.audit.replay.coin import Symbol
from resispec_core.audit.replay.grid import FRACTION_24, FRACTION_53
from resispec_core.audit.replay.race import ranking
from resispec_core.audit.replay.trail import RefusalError, Trail, call_site

GRIDS = {np.dtype(np.float64): FRACTION_53, np.dtype(np.float32): FRACTION_24}


class CoinArray(np.ndarray):
    """An object array of coins. Arithmetic and comparisons go entry by entry; argmax and sorts are races."""

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """A copy that stays symbolic for any float dtype."""
        if np.issubdtype(np.dtype(dtype), np.floating) and any(
            isinstance(entry, Symbol) for entry in self.flat
        ):
            return self.copy()
        return super().astype(dtype, *args, **kwargs)

    def _rank(self, axis: int | None, count: int | None, largest: bool) -> Any:
        if not any(isinstance(entry, Symbol) for entry in self.flat):
            plain = np.asarray(self, dtype=np.float64)
            return plain.argmax(axis) if largest else plain.argmin(axis)
        if self.ndim == 1 or axis is None:
            wanted = self.size if count is None else count
            order = ranking(list(self.flat), wanted, largest=largest)
            return order[0] if count == 1 else np.array(order)
        moved = np.moveaxis(np.asarray(self), axis, -1)
        rows = moved.reshape(-1, moved.shape[-1])
        found = [
            ranking(list(row), moved.shape[-1] if count is None else count, largest=largest) for row in rows
        ]
        shaped = np.array(found).reshape(*moved.shape[:-1], -1)
        return shaped[..., 0] if count == 1 else np.moveaxis(shaped, -1, axis)

    def argmax(self, axis: Any = None, out: Any = None, **_: Any) -> Any:
        """The winner of the race."""
        return self._rank(axis, 1, True)

    def argmin(self, axis: Any = None, out: Any = None, **_: Any) -> Any:
        """The winner of the race to the bottom."""
        return self._rank(axis, 1, False)

    def argsort(self, axis: Any = -1, *_: Any, **__: Any) -> Any:
        """The order of arrival, ascending in value."""
        if not any(isinstance(entry, Symbol) for entry in self.flat):
            return np.argsort(np.asarray(self, dtype=np.float64), axis=axis, kind="stable")
        try:
            return self._rank(axis, None, False)
        except RefusalError:
            trail = next(entry.trail for entry in self.flat if isinstance(entry, Symbol))
            trail.fault = None
            return np.flip(self._rank(axis, None, True), axis=axis)


def _filled(size: Any, make: Callable[[], Any]) -> Any:
    if size is None:
        return make()
    shape = (size,) if np.ndim(size) == 0 else tuple(size)
    result = np.empty(shape, dtype=object)
    for place in np.ndindex(*shape):
        result[place] = make()
    if all(isinstance(entry, float) for entry in result.flat):
        return result.astype(np.float64)
    return result.view(CoinArray)


def _whole(size: Any, make: Callable[[], int], dtype: Any = np.int64) -> Any:
    if size is None:
        return make()
    shape = (size,) if np.ndim(size) == 0 else tuple(size)
    result = np.empty(shape, dtype=dtype)
    for place in np.ndindex(*shape):
        result[place] = make()
    return result


def check_weights(p: Any, count: int) -> list[Any]:
    """``p`` as NumPy's ``choice`` checks it: same conditions, same messages."""
    row = np.asarray(p)
    if row.ndim != 1:
        raise ValueError("p must be 1-dimensional")
    if row.size != count:
        raise ValueError("a and p must have same size")
    plain = row.astype(np.float64)
    if np.isnan(plain).any():
        raise ValueError("Probabilities contain NaN")
    if (plain < 0).any():
        raise ValueError("Probabilities are not non-negative")
    if abs(plain.sum() - 1) > max(np.sqrt(np.finfo(np.float64).eps), float(np.sqrt(_eps(row)))):
        raise ValueError(
            "Probabilities do not sum to 1. See Notes section of docstring for more information."
        )
    return list(row.tolist())


def _eps(row: Array) -> float:
    return float(np.finfo(row.dtype).eps) if np.issubdtype(row.dtype, np.floating) else 0.0


def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
    """``Generator.choice``: categorical branches; without replacement each draw from what is left."""
    pool = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
    if len(pool) == 0 and size != 0:
        raise ValueError("a cannot be empty unless no samples are taken")
    weights = [1] * len(pool) if p is None else check_weights(p, len(pool))
    if size is None:
        return pool[draws.categorical(weights, "choice")]
    count = int(np.prod(size))
    if replace:
        found = [draws.categorical(weights, "choice") for _ in range(count)]
    else:
        if count > len(pool):
            raise ValueError("Cannot take a larger sample than population when replace is False")
        if count > sum(weight > 0 for weight in weights):
            raise ValueError("Fewer non-zero entries in p than size")
        found = draws.ordered(weights, count, "choice without replacement")
    return pool[np.array(found, dtype=int)].reshape(size)


def _random(size: Any, dtype: Any, out: Any) -> Any:
    kind = np.dtype(dtype if out is None else out.dtype)
    if kind not in GRIDS:
        raise TypeError(f"Unsupported dtype {kind!r} for random")
    trail = draws.required()
    if out is not None and isinstance(trail, Trail):
        raise trail.refuse(RefusalError(f"random(out=...) at {call_site()} writes coins into plain memory"))
    found = _filled(np.shape(out) if out is not None else size, lambda: draws.uniform(GRIDS[kind]))
    if out is not None:
        out[...] = found
        return out
    return found.astype(kind) if isinstance(found, np.ndarray) and found.dtype != object else found


def _binomial(n: Any, p: Any, size: Any = None) -> Any:
    if n != 1 or np.ndim(p) != 0:
        raise draws.required().refuse(
            RefusalError(f"binomial with n = {n} at {call_site()} is not followed; only n = 1")
        )
    return _whole(size, lambda: int(draws.bernoulli(p, "binomial")))


def _multinomial(n: Any, pvals: Any, size: Any = None) -> Any:
    row = np.asarray(pvals)
    if n != 1 or row.ndim != 1 or size is not None:
        raise draws.required().refuse(
            RefusalError(f"multinomial at {call_site()}: only one draw from one row is followed")
        )
    exact = list(row.tolist())
    if any(weight != weight or weight < 0 or weight > 1 for weight in exact):
        raise ValueError("pvals < 0, pvals > 1 or pvals contains NaNs")
    if sum(exact[:-1]) > 1 + 1e-12:
        raise ValueError("sum(pvals[:-1]) > 1.0")
    exact[-1] = max(0, 1 - sum(exact[:-1]))  # NumPy gives the last entry what is left
    found = np.zeros(row.size, dtype=np.int64)
    found[draws.categorical(exact, "multinomial")] = 1
    return found


def _permutation(x: Any, axis: int = 0) -> Any:
    pool = np.arange(x) if np.ndim(x) == 0 else np.asarray(x)
    order = draws.ordered([1] * pool.shape[axis], pool.shape[axis], "permutation")
    return np.take(pool, order, axis=axis)


def _shuffle(x: Any, axis: int = 0) -> None:
    del axis
    order = draws.ordered([1] * len(x), len(x), "shuffle")
    x[:] = np.asarray(x)[order] if isinstance(x, np.ndarray) else [x[place] for place in order]


_BITS = np.random.PCG64(0)
"""Demanded by NumPy's constructor; nothing may read it, and the watch would see it advance."""


class ForkGenerator(np.random.Generator):
    """``numpy.random.Generator`` whose draws fork the replay."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(_BITS)
        del seed

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return _random(size, dtype, out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return _filled(size, lambda: low + (high - low) * draws.uniform())

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        if not shuffle and not replace:
            raise draws.required().refuse(
                RefusalError(f"choice(shuffle=False) at {call_site()} has no stated order")
            )
        return choice(a, size, replace, p) if axis == 0 else _refused("Generator.choice with axis != 0")()

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        low, high = (0, low) if high is None else (low, high)
        return _whole(size, lambda: draws.integer(int(low), int(high) + endpoint, "integers"), dtype)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return _filled(size, lambda: draws.exponential() * scale)

    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: str = "zig", out: Any = None
    ) -> Any:
        return _filled(size, draws.exponential) if out is None else _random(size, dtype, out)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return _filled(size, lambda: draws.gumbel() * scale + loc)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        return _binomial(n, p, size)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        return _multinomial(n, pvals, size)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        return _permutation(x, axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        _shuffle(x, axis)


_LEGACY_BITS = np.random.MT19937(0)


class ForkRandomState(np.random.RandomState):
    """``numpy.random.RandomState``, and the module functions of ``numpy.random``, under replay."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(_LEGACY_BITS)
        del seed

    def seed(self, *_: Any) -> None:
        """Seeding changes nothing: every outcome is visited."""

    def random_sample(self, size: Any = None) -> Any:
        return _random(size, np.float64, None)

    def random(self, size: Any = None) -> Any:
        return _random(size, np.float64, None)

    def rand(self, *shape: int) -> Any:
        return _random(shape or None, np.float64, None)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return _filled(size, lambda: low + (high - low) * draws.uniform())

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
        return choice(a, size, replace, p)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        low, high = (0, low) if high is None else (low, high)
        return _whole(size, lambda: draws.integer(int(low), int(high), "randint"), dtype)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return _filled(size, lambda: draws.exponential() * scale)

    def standard_exponential(self, size: Any = None) -> Any:
        return _filled(size, draws.exponential)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return _filled(size, lambda: draws.gumbel() * scale + loc)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        return _binomial(n, p, size)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        return _multinomial(n, pvals, size)

    def permutation(self, x: Any) -> Any:
        return _permutation(x)

    def shuffle(self, x: Any) -> None:
        _shuffle(x)


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise draws.required().refuse(
            RefusalError(
                f"numpy.random {name} is read at {call_site()}; {draws.required().limit}. Use random, uniform, "
                "choice, integers, exponential, gumbel, multinomial (n = 1), binomial (n = 1) or permutation"
            )
        )

    return refuse


def _refuse_the_rest(fork: type, original: type) -> Sequence[str]:
    refused = [name for name in dir(original) if not name.startswith("_") and name not in vars(fork)]
    for name in refused:
        refusal: Any = _refused(f"{original.__name__}.{name}")
        is_method = callable(getattr(original, name))
        setattr(fork, name, refusal if is_method else property(refusal))
    return refused


REFUSED = {
    "Generator": _refuse_the_rest(ForkGenerator, np.random.Generator),
    "RandomState": _refuse_the_rest(ForkRandomState, np.random.RandomState),
}
"""What each controlled class refuses, by name (tested against the installed NumPy)."""


def replacements() -> dict[str, Any]:
    """What stands in ``numpy.random`` during a replay, by attribute name."""
    state = ForkRandomState()
    found: dict[str, Any] = {"default_rng": ForkGenerator, "RandomState": ForkRandomState}
    for name in np.random.__all__:
        value = getattr(np.random, name)
        if name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64", "SeedSequence"):
            found[name] = _refused(name)
        elif callable(value) and not isinstance(value, type) and name not in found:
            if name in ("sample", "ranf"):
                found[name] = state.random_sample
            elif name in ("get_state", "set_state") or not hasattr(state, name):
                found[name] = _refused(name)
            else:
                found[name] = getattr(state, name)
    return found

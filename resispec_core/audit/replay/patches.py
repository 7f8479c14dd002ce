"""Every global random source of the process, replaced for the length of an audit and put back whatever happens.

Names that other modules bound at import (``from random import random``) are found by identity and replaced too.
Generators that cannot be reached (closures, attributes) are watched: if one advanced, the audit is refused.
"""

from __future__ import annotations

import gc
import math
import os
import random
import secrets
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import compress
from types import ModuleType
from typing import Any

import numpy as np

from resispec_core.audit.replay import draws, numpy_source
from resispec_core.audit.replay.coin import Symbol
from resispec_core.audit.replay.trail import LeakError, RefusalError, call_site

UNTOUCHED = ("resispec_core", "numpy.random.")
"""Modules whose names stay as they are: ours, and NumPy's compiled generators (not ``numpy.random`` itself)."""


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise draws.required().refuse(
            RefusalError(
                f"{name} is read at {call_site()}; the replay cannot control it, so nothing can be concluded"
            )
        )

    return refuse


def _math(name: str) -> tuple[Any, Any]:
    original = getattr(math, name)

    def wrapped(value: Any, *rest: Any) -> Any:
        if isinstance(value, Symbol):
            if name == "log" and rest:
                return value.log() / math.log(*rest)
            return value ** rest[0] if name == "pow" else getattr(value, name)()
        return original(value, *rest)

    return original, wrapped


def _python_methods() -> dict[tuple[Any, str], Any]:
    def below(self: Any, n: int) -> int:
        del self
        return draws.integer(0, n, "random integer")

    def bits(self: Any, k: int) -> int:
        del self
        return draws.integer(0, 1 << k, f"getrandbits({k})")

    refused = {
        (random.SystemRandom, name): _refused(f"random.SystemRandom.{name}")
        for name in ("random", "getrandbits", "randbytes", "_randbelow")
    }
    nothing: Any = lambda *_, **__: None  # noqa: E731
    return {
        (random.Random, "random"): lambda _self: draws.uniform(),
        (random.Random, "getrandbits"): bits,
        (random.Random, "_randbelow"): below,
        (random.Random, "randbytes"): _refused("random.randbytes"),
        (random.Random, "getstate"): _refused("random.getstate"),
        (random.Random, "setstate"): _refused("random.setstate"),
        (random.Random, "seed"): nothing,
        **refused,
    }


def _functions() -> list[tuple[Any, Any]]:
    """(original, replacement) for every module-level function."""
    pairs: list[tuple[Any, Any]] = [
        (random.random, draws.uniform),
        (random.getrandbits, lambda k: draws.integer(0, 1 << k, f"getrandbits({k})")),
        (random.seed, lambda *_, **__: None),
        (random.getstate, _refused("random.getstate")),
        (random.setstate, _refused("random.setstate")),
        (os.urandom, _refused("os.urandom")),
        (uuid.uuid4, _refused("uuid.uuid4")),
        *(
            (getattr(secrets, name), _refused(f"secrets.{name}"))
            for name in secrets.__all__
            if name != "SystemRandom"
        ),
        *(_math(name) for name in ("log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "pow")),
    ]
    if hasattr(os, "getrandom"):
        pairs.append((os.getrandom, _refused("os.getrandom")))
    torch = sys.modules.get("torch")
    if torch is not None:  # seeding changes nothing: every outcome is visited
        pairs += [(getattr(torch, name), lambda *_, **__: None) for name in ("manual_seed", "seed")]
    pairs += [(getattr(np.random, name), new) for name, new in numpy_source.replacements().items()]
    return pairs


_in_control: list[bool] = []


@contextmanager
def controlled() -> Iterator[Watch | None]:
    """All patches in place inside the block; the global generators are as before afterwards, whatever happens.

    Blocks nest: many audits may share one, which saves the search for names (tens of milliseconds each). Gives the
    watch over every generator; None in an inner block. A module that is imported inside gets the true names at the
    end; one that made a generator while it was imported is refused by name, since what it held is lost.
    """
    if _in_control:
        yield None  # an audit inside an audit, or many in one block: the patches stand
        return
    with_torch = "torch" in sys.modules
    if with_torch:
        from resispec_core.audit.replay import torch_source

        torch_source.warm_up()
    functions = _functions()
    stand_ins = {id(old): new for old, new in functions}
    undo: list[tuple[Any, str, Any, bool]] = []
    watch = Watch()
    early = {id(module): module for module in sys.modules.values()}  # held, so that no identity is used again
    late: list[str] = []
    _in_control.append(True)
    try:
        for (owner, name), new in _python_methods().items():
            undo.append((owner, name, vars(owner).get(name), name in vars(owner)))
            setattr(owner, name, new)
        generators: dict[int, Any] = {}
        for module, name, value in _globals(list(sys.modules.values()), stand_ins, FORKS):
            fork = FORKS.get(type(value))
            new = stand_ins[id(value)] if fork is None else generators.setdefault(id(value), fork())
            undo.append((module, name, value, True))
            setattr(module, name, new)
        with one_thread():
            yield watch
        watch.check()
        if "torch" in sys.modules and not with_torch:
            raise RefusalError("the sampler imported torch during the audit; import torch before it")
    finally:
        _in_control.clear()
        for owner, name, value, existed in reversed(undo):
            if existed:
                setattr(owner, name, value)
            else:
                delattr(owner, name)
        late += _put_back_late(early, functions)
        watch.restore()
    if late:
        raise RefusalError(
            f"the sampler imported {', '.join(late)} during the audit, which made a generator at import; import it "
            "before the audit"
        )


FORKS: dict[type, Callable[[], Any]] = {
    np.random.Generator: numpy_source.ForkGenerator,
    np.random.RandomState: numpy_source.ForkRandomState,
}


def _globals(
    modules: list[ModuleType], identities: dict[int, Any], kinds: dict[type, Any]
) -> list[tuple[Any, str, Any]]:
    """(module, name, value) of every module-level name for one of these objects, or for an object of these kinds."""
    found, wanted = [], frozenset(map(id, kinds))
    for module in modules:
        names = getattr(module, "__dict__", None)
        if not isinstance(names, dict) or str(names.get("__name__", "")).startswith(UNTOUCHED):
            continue
        found += [
            (module, name, value)
            for name, value in names.items()
            if id(value) in identities or id(type(value)) in wanted
        ]
    return found


def _put_back_late(early: dict[int, Any], functions: list[tuple[Any, Any]]) -> list[str]:
    """Give modules imported under control the true functions; the names of those that hold a forking generator."""
    modules = [module for module in list(sys.modules.values()) if id(module) not in early]
    originals = {id(new): old for old, new in functions}
    real: dict[type, Any] = {
        numpy_source.ForkGenerator: np.random.default_rng,
        numpy_source.ForkRandomState: np.random.RandomState,
    }
    names = []
    for module, name, value in _globals(modules, originals, real):
        make = real.get(type(value))
        setattr(module, name, originals[id(value)] if make is None else make())
        if make is not None:
            names.append(f"{module.__name__} ({name})")
    return names


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread: rows of a few entries only lose time to a pool."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Watch:
    """The state of every generator in the process, to see that none advanced and to put it back if one did."""

    def __init__(self) -> None:
        self._states: list[tuple[str, Callable[[], Any], Callable[[Any], Any], Any]] = []
        torch = sys.modules.get("torch")
        kinds: list[type] = [np.random.Generator, np.random.RandomState, random.Random]
        if torch is not None:
            kinds.append(torch.Generator)
        self._add("the global random module", random.getstate, random.setstate)
        self._add("the global numpy.random state", np.random.get_state, np.random.set_state)
        if torch is not None:
            self._add("torch's global generator", torch.get_rng_state, torch.set_rng_state)
        things = gc.get_objects()
        wanted = frozenset(map(id, kinds))  # by identity: a metaclass may have its own idea of equality
        for thing in compress(things, map(wanted.__contains__, map(id, map(type, things)))):
            kind = type(thing)
            if kind is np.random.Generator:
                bits = thing.bit_generator
                self._add(
                    "a numpy Generator", partial(getattr, bits, "state"), partial(setattr, bits, "state")
                )
            elif kind is np.random.RandomState:
                self._add("a numpy RandomState", thing.get_state, thing.set_state)
            elif kind is random.Random:
                plain: Any = super(random.Random, thing)
                self._add("a random.Random", plain.getstate, plain.setstate)
            else:
                self._add("a torch.Generator", thing.get_state, thing.set_state)

    def _add(self, name: str, get: Callable[[], Any], put: Callable[[Any], Any]) -> None:
        self._states.append((name, get, put, get()))

    def _changed(self) -> Iterator[tuple[str, Callable[[Any], Any], Any]]:
        for name, get, put, before in self._states:
            if not _same(before, get()):
                yield name, put, before

    def check(self) -> None:
        """Raise where a generator advanced behind the harness."""
        for name, _, _ in self._changed():
            raise LeakError(
                f"{name} was read behind the replay (a generator held in a closure, an attribute or C code); pass the "
                "sampler a generator as an argument or use the global one"
            )

    def restore(self) -> None:
        """Put every generator back."""
        for _, put, before in list(self._changed()):
            put(before)


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(_same(before[key], after[key]) for key in before)
    if isinstance(before, (tuple, list)):
        return len(before) == len(after) and all(map(_same, before, after))
    result = before == after
    return bool(result.all()) if hasattr(result, "all") else bool(result)

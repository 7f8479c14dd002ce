"""How the candidates for one position are drawn from the draft law.

A draw mode is one pure function: the law of the next candidate given those already drawn. Enumeration,
sampling and the recursive rules all read that same function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from resispec_core.arrays import Array, normalise, one_hot, without, zeros
from resispec_core.errors import InputError
from resispec_core.laws import inverse_cdf


class DrawMode(ABC):
    """The law of each candidate given the ones before it."""

    name: ClassVar[str]
    summary: ClassVar[str]
    history_free: ClassVar[bool] = False
    """True where a candidate's law depends on how many were drawn before it, not on which."""

    @abstractmethod
    def conditional(self, draft: Array, drawn: Array, candidates: int) -> Array:
        """The law of candidate ``i`` given ``drawn``, the ``i`` tokens before it.

        ``draft``: law of shape (V,). ``drawn``: integers of shape (..., i). Returns shape (..., V), or
        (V,) where the law does not depend on ``drawn``.
        """

    def support(self, draft: Array) -> int | None:
        """The most candidates this mode can draw from ``draft``; None for any number."""
        del draft
        return None

    def check(self, draft: Array, candidates: int) -> None:
        """Refuse fewer than one candidate, or more than the draft law can give."""
        if candidates < 1:
            raise InputError(f"candidates is {candidates}; at least one token must be drafted")
        most = self.support(draft)
        if most is not None and candidates > most:
            raise InputError(
                f"candidates is {candidates}, but drawing {self.name} from this draft law gives at most "
                f"{most}; ask for {most} or fewer, or widen the draft's filters"
            )

    def tuples(self, draft: Array, candidates: int) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Every candidate tuple of positive weight with its weight; the weights sum to 1. O(V^n)."""
        self.check(draft, candidates)

        def extend(drawn: tuple[int, ...], weight: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
            if len(drawn) == candidates:
                yield drawn, weight
                return
            row = self.conditional(draft, np.array(drawn, dtype=int), candidates)
            for token in np.flatnonzero(row > 0).tolist():
                yield from extend((*drawn, token), weight * row[token])

        yield from extend((), draft.sum())

    def draw(self, draft: Array, candidates: int, coins: Sequence[Any]) -> tuple[int, ...]:
        """The candidates that the uniforms ``coins`` (one each, in [0, 1)) select."""
        self.check(draft, candidates)
        drawn: list[int] = []
        for _, coin in zip(range(candidates), coins, strict=True):
            row = self.conditional(draft, np.array(drawn, dtype=int), candidates)
            drawn.append(inverse_cdf(row, coin))
        return tuple(drawn)

    def sample(self, draft: Array, candidates: int, rng: np.random.Generator) -> tuple[int, ...]:
        """The candidates drawn with the uniforms of ``rng``."""
        return self.draw(draft, candidates, rng.random(candidates).tolist())


class IID(DrawMode):
    """Every candidate is drawn from q, independently (SpecInfer, SpecTr)."""

    name = "iid"
    summary = "independent draws from the draft law"
    history_free = True

    def conditional(self, draft: Array, drawn: Array, candidates: int) -> Array:
        return draft


class WithoutReplacement(DrawMode):
    """Each candidate is drawn from q without the tokens already drawn, renormalised (Sequoia, MCSD)."""

    name = "without-replacement"
    summary = "each draw from the draft law without the tokens already drawn, renormalised"

    def conditional(self, draft: Array, drawn: Array, candidates: int) -> Array:
        rest = np.broadcast_to(draft, (*drawn.shape[:-1], draft.size))
        for index in range(drawn.shape[-1]):
            rest = without(rest, drawn[..., index])
        return normalise(rest, fallback=zeros(rest.shape, like=rest))

    def support(self, draft: Array) -> int:
        return int(np.count_nonzero(draft))


class TopK(DrawMode):
    """The draft's n most likely tokens, in order: no randomness (EAGLE-2, lookup drafts).

    Ties go to the lower token id. A token the draft gives probability zero can be among them when n
    exceeds the support; only V bounds n.
    """

    name = "top-k"
    summary = "the draft law's most likely tokens, deterministically"
    history_free = True

    def conditional(self, draft: Array, drawn: Array, candidates: int) -> Array:
        return one_hot(np.array(top_tokens(draft, drawn.shape[-1] + 1)[-1]), draft.size, like=draft)

    def support(self, draft: Array) -> int:
        return draft.size


class Greedy(DrawMode):
    """One draw from q without its n − 1 most likely tokens, then those tokens (Hu et al. 2502.18779).

    The sampled candidate stands first: verified in this order the recursive rule reaches the ceiling.
    """

    name = "greedy"
    summary = "one draw outside the draft's n-1 most likely tokens, then those tokens"
    history_free = True

    def conditional(self, draft: Array, drawn: Array, candidates: int) -> Array:
        index = drawn.shape[-1]
        top = top_tokens(draft, candidates - 1)
        if index > 0:
            return one_hot(np.array(top[index - 1]), draft.size, like=draft)
        rest = draft.copy()
        rest[top] = 0 * rest[top]
        return normalise(rest, fallback=rest)

    def support(self, draft: Array) -> int:
        return int(np.count_nonzero(draft))


def top_tokens(draft: Array, count: int) -> list[int]:
    """The ``count`` most likely tokens, most likely first; ties go to the lower id."""
    if count >= draft.size or draft.dtype == object:
        return np.argsort(-draft, kind="stable")[:count].tolist()
    if count == 0:
        return []
    edge = np.partition(draft, -count)[-count]
    contenders = np.flatnonzero(draft >= edge)
    return contenders[np.argsort(-draft[contenders], kind="stable")[:count]].tolist()


DRAW_MODES: dict[str, DrawMode] = {
    mode.name: mode for mode in (IID(), WithoutReplacement(), TopK(), Greedy())
}


def draw_mode(name: str | DrawMode) -> DrawMode:
    """The draw mode called ``name``; ``InputError`` with the known names otherwise."""
    if isinstance(name, DrawMode):
        return name
    if name not in DRAW_MODES:
        raise InputError(f"unknown draw mode {name!r}; known: {', '.join(DRAW_MODES)}")
    return DRAW_MODES[name]

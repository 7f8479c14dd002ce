"""The protocol every verification rule follows, ours or yours.

A rule is data to an auditor: how its candidates must be drawn, with what probability it accepts a token,
and what law is owed after a rejection. All three are pure functions of laws, so the same rule can be
enumerated over every path, run on given coins, and compared with a fast twin.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from resispec_core.arrays import Array, divide, one
from resispec_core.drafts import DrawMode, draw_mode
from resispec_core.errors import InputError
from resispec_core.laws import inverse_cdf, law, same_vocabulary


class Outcome(NamedTuple):
    """What one verification returns."""

    token: int
    accepted: int
    """Index of the accepted candidate, or −1 where all were rejected and the token was resampled."""


@dataclass(frozen=True)
class Stage:
    """What a sequential rule sees when it looks at one candidate.

    Arrays have shape (V,) or, for a rule with ``batched = True``, (paths, V).
    """

    target: Array
    """p, the law to keep."""
    draft: Array
    """The law the candidate at hand was drawn from, given those before it (the rule's own draw mode)."""
    residual: Array
    """R, the law still owed when this stage is reached; p at the first stage."""
    index: int
    """0 for the first candidate."""
    candidates: int
    """n."""
    plan: Any = None
    """What the rule's ``plan`` returned for (p, q, n)."""


class Row(NamedTuple):
    """One position, checked, with the rule's plan for it."""

    target: Array
    draft: Array
    mode: DrawMode
    plan: Any


class Rule(ABC):
    """A verifier of n candidates for one position.

    ``name``; ``draws``: names of the draw modes it is meant for, the first the default; ``lossy``: True
    where the rule does not claim to keep the target law, so that a distance is reported, not a failure.
    """

    name: ClassVar[str]
    draws: ClassVar[tuple[str, ...]] = ("iid",)
    lossy: ClassVar[bool] = False
    summary: ClassVar[str] = ""

    def plan(self, target: Array, draft: Array, candidates: int) -> Any:
        """Anything worth computing once from (p, q, n); handed back in every call."""
        del target, draft, candidates

    @classmethod
    def options(cls) -> dict[str, Any]:
        """The keyword options of the rule and their defaults."""
        parameters = inspect.signature(cls).parameters.values()
        return {item.name: item.default for item in parameters}

    def draw_mode(self, draw: str | DrawMode | None = None) -> DrawMode:
        """The draw mode to verify under; ``InputError`` for one the rule is not meant for."""
        mode = draw_mode(self.draws[0] if draw is None else draw)
        if mode.name not in self.draws:
            raise InputError(
                f"rule {self.name!r} is meant for candidates drawn {' or '.join(self.draws)}, not "
                f"{mode.name}; pass mismatched=True to audit that pairing as the fault it is"
            )
        return mode

    def coins(self, candidates: int) -> int:
        """How many uniforms ``verify`` takes for n candidates."""
        return candidates + 1

    def verify(
        self,
        target: Array,
        draft: Array,
        tokens: Sequence[int],
        coins: Sequence[Any],
        draw: str | None = None,
    ) -> Outcome:
        """Run the rule on drafted ``tokens`` with uniform ``coins`` in [0, 1), as many as ``coins`` says.

        Raises ``InputError`` for anything that is not a law, a token or a coin, or for a draw mode the rule is
        not meant for. A candidate is accepted where its coin is *below* the acceptance probability, so one of
        probability zero never is.
        """
        target, draft = law(target, name="target"), law(draft, name="draft")
        same_vocabulary(target, draft)
        mode = self.draw_mode(draw)
        check_tokens(tokens, draft.size)
        check_coins(coins, self.coins(len(tokens)))
        return self.decide(Row(target, draft, mode, self.plan(target, draft, len(tokens))), tokens, coins)

    @abstractmethod
    def decide(self, row: Row, tokens: Sequence[int], coins: Sequence[Any]) -> Outcome:
        """``verify`` on what it has checked and planned."""


class SequentialRule(Rule):
    """Looks at the candidates in order; accepts one, or updates the residual and goes on.

    Write ``accept`` and ``reject``. ``batched = True`` promises that both also work on arrays of shape
    (paths, V), which makes enumeration fast. ``residual_uses_token = False`` promises that ``reject``
    ignores its token; then the law has a closed form at any vocabulary size.
    """

    batched: ClassVar[bool] = False
    residual_uses_token: ClassVar[bool] = True

    @abstractmethod
    def accept(self, stage: Stage) -> Array:
        """Probability of accepting each token, were it the candidate: shape of ``stage.residual``."""

    @abstractmethod
    def reject(self, stage: Stage, token: Array) -> Array:
        """The law owed after ``token`` was rejected. ``token``: an integer, or (paths,) where batched."""

    def decide(self, row: Row, tokens: Sequence[int], coins: Sequence[Any]) -> Outcome:
        """Coin i decides candidate i, the last coin picks the token of a full rejection."""
        drawn = np.asarray(tokens, dtype=int)
        residual = row.target
        for index, token in enumerate(tokens):
            draft = row.mode.conditional(row.draft, drawn[:index], len(tokens))
            stage = Stage(row.target, draft, residual, index, len(tokens), row.plan)
            if coins[index] < self.accept(stage)[token]:
                return Outcome(token, index)
            residual = self.reject(stage, np.array(token))
        return Outcome(inverse_cdf(residual, coins[-1]), -1)


class SetRule(Rule):
    """Selects one of all candidates, then accepts it or resamples.

    Write ``select``, ``accept`` and ``residual``; each gets what ``plan`` returned.
    """

    @abstractmethod
    def select(self, plan: Any, tokens: Sequence[int]) -> Array:
        """Probability of selecting each candidate: shape (n,), sum 1."""

    @abstractmethod
    def accept(self, plan: Any) -> Array:
        """Probability of accepting each token once selected: shape (V,)."""

    @abstractmethod
    def residual(self, plan: Any) -> Array:
        """The law of the token after the selected candidate was rejected: shape (V,)."""

    def selected_law(self, plan: Any) -> Array | None:
        """The law of the selected candidate over the rule's first draw mode, where it has a closed form: (V,).

        A promise: it lets an audit skip the V^n tuples. Tested against ``select`` on small vocabularies.
        """
        return None

    def coins(self, candidates: int) -> int:
        return 3

    def decide(self, row: Row, tokens: Sequence[int], coins: Sequence[Any]) -> Outcome:
        """Three coins: select, accept, resample."""
        plan = row.plan
        chosen = inverse_cdf(self.select(plan, tokens), coins[0])
        if coins[1] < self.accept(plan)[tokens[chosen]]:
            return Outcome(tokens[chosen], chosen)
        return Outcome(inverse_cdf(self.residual(plan), coins[2]), -1)


def check_tokens(tokens: Sequence[int], size: int) -> None:
    """Refuse an empty candidate list or a token id outside the vocabulary."""
    if len(tokens) == 0:
        raise InputError("no candidates given; at least one token must be drafted")
    for place, token in enumerate(tokens):
        if not 0 <= token < size:
            raise InputError(f"candidate {place} is token {token}, outside the vocabulary 0..{size - 1}")


def check_coins(coins: Sequence[Any], needed: int) -> None:
    """Refuse the wrong number of coins or one outside [0, 1)."""
    if len(coins) != needed:
        raise InputError(f"{len(coins)} coins given, {needed} needed")
    for place, coin in enumerate(coins):
        if not 0 <= coin < 1:
            raise InputError(f"coin {place} is {coin}; coins are uniforms in [0, 1)")


def acceptance_ratio(residual: Array, draft: Array) -> Array:
    """``min(1, R/q)``; where q = 0, 1 if R > 0 and else 0 (the limit of "accept if u·q < R")."""
    undrafted = np.where(residual > 0, one(residual), 0 * residual)
    return np.where(draft == 0, undrafted, np.minimum(one(residual), divide(residual, draft)))

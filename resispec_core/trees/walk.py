"""The tree walk: one verification of a drafted tree, from the root to the last accepted node.

The same function serves the joint-law audit, the replay of recorded trees and live decoding: rows come from a
callable or a sequence, randomness from a source of coins, and the rule from ``resispec_core.rules``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from resispec_core.arrays import Array
from resispec_core.errors import InputError
from resispec_core.laws import inverse_cdf, law
from resispec_core.rules.base import Rule
from resispec_core.trees.drafting import Coins, DraftTree, take

Rows: TypeAlias = Callable[[int], tuple[Array, Array | None]]
"""node → (p, q): the target and the draft law after it, shape (V,). q is not read at a leaf and may be None there."""


@dataclass(frozen=True)
class Visit:
    """One node at which a token was chosen."""

    node: int
    candidates: tuple[int, ...]
    """The drafted children that were verified, in order; empty at a leaf."""
    accepted: int
    """Index into ``candidates``, or −1 where the token was resampled or is the bonus token."""
    token: int

    @property
    def how(self) -> str:
        """``accepted``, ``resampled`` or ``bonus``."""
        if self.accepted >= 0:
            return "accepted"
        return "resampled" if self.candidates else "bonus"


@dataclass(frozen=True)
class Walk:
    """What one speculation step yields."""

    visits: tuple[Visit, ...]
    """The nodes looked at, root first; one token each."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """The emitted tokens: every accepted one, then the resampled or bonus token."""
        return tuple(visit.token for visit in self.visits)

    @property
    def path(self) -> tuple[int, ...]:
        """The accepted nodes, root first: the positions whose cache entries are kept. As many as tokens."""
        return tuple(visit.node for visit in self.visits)

    @property
    def accepted_length(self) -> int:
        """Tokens of this step, the bonus or resampled one included (the paper's accepted length)."""
        return len(self.visits)


def walk(
    tree: DraftTree,
    rows: Rows | Sequence[tuple[Any, Any]],
    rule: Rule,
    coins: Coins,
    *,
    draw: str | None = None,
) -> Walk:
    """Verify ``tree`` with ``rule``: siblings under one parent in order, then down the accepted child.

    At a node with drafted children, ``rule.verify`` gets the node's own rows and those children's tokens. Accepted:
    the walk goes on at that child with the child's rows. All rejected: the rule's resampled token ends the step. At a
    node without drafted children (a leaf, or one whose slots are empty) the bonus token is drawn from the target row
    there. Nothing is read from nodes off the path, so no forward pass is needed beyond the one that scored the tree.

    ``rows``: node → (p, q), or a sequence of such pairs by node. ``draw``: how siblings were drawn, by default the
    rule's first mode. ``coins``: ``rule.coins(n)`` uniforms at a node with n drafted children and one at a leaf, in
    the order of the visits.

    Exact when the rule is exact for that draw mode, q is the law the children were drawn from, and whether a slot was
    drafted was decided before its own token was drawn. Tested on whole-sequence laws in ``trees.joint``.
    Cannot detect: rows of another node or context, or slots dropped because of their token.
    Raises ``InputError`` naming the node for unusable rows, tokens or coins. Cost: one ``verify`` a visited node.
    """
    rows_at = rows if callable(rows) else rows.__getitem__
    visits: list[Visit] = []
    node = 0
    while True:
        candidates = tree.children(node)
        target, draft = rows_at(node)
        try:
            if not candidates:
                token = inverse_cdf(law(target, name="target"), take(coins, 1)[0])
                visits.append(Visit(node, (), -1, token))
                return Walk(tuple(visits))
            if draft is None:
                raise InputError(
                    f"{len(candidates)} children were drafted, but no draft row is given to verify them with"
                )
            tokens = [tree.tokens[child] for child in candidates]
            found = rule.verify(target, draft, tokens, take(coins, rule.coins(len(tokens))), draw)
        except InputError as error:
            raise InputError(f"tree node {node}: {error}") from None
        visits.append(Visit(node, candidates, found.accepted, found.token))
        if found.accepted < 0:
            return Walk(tuple(visits))
        node = candidates[found.accepted]

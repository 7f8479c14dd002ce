"""Per-node status codes, shared by the array-level rules and the kernels.

A node is one position of the draft tree: a target row, a draft row, its candidates and its coins. A bad
node never stops its batch and never yields a token: it returns accepted = −1, token = −1 and the reasons.
"""

from __future__ import annotations

from enum import IntFlag


class NodeStatus(IntFlag):
    """Why a node has no token (several reasons may be set), or how its token came about.

    Only what a node needed is checked: a node whose candidates decide it reads two entries per candidate,
    so a bad value elsewhere in its row stays unseen. ``validate="all"`` reads every row of every node.
    """

    OK = 0
    FALLBACK = 1
    """A valid token, drawn from the last non-empty residual: a rejection by rounding alone left none."""
    COIN = 2
    """A coin is not in [0, 1), or is NaN."""
    CANDIDATE = 4
    """A candidate id is outside the vocabulary."""
    TARGET_VALUE = 8
    """The target row holds NaN, a negative or a value above 1.001 (for logits: NaN or +inf)."""
    DRAFT_VALUE = 16
    """The same for the draft row."""
    TARGET_MASS = 32
    """The target row does not sum to one within 1e-3, has no mass, or its normaliser is unusable."""
    DRAFT_MASS = 64
    """The same for the draft row."""
    PENDING = 1024
    """Stage A listed the node and stage B did not run. Never returned by a finished call."""


ERRORS = (
    NodeStatus.COIN
    | NodeStatus.CANDIDATE
    | NodeStatus.TARGET_VALUE
    | NodeStatus.DRAFT_VALUE
    | NodeStatus.TARGET_MASS
    | NodeStatus.DRAFT_MASS
    | NodeStatus.PENDING
)
"""A status with any of these bits carries no token."""

"""Rows as the GPU path takes them, widened to float64 one way only.

A batch holds rows of probabilities or logits in float32, bfloat16 or float16 (the array-level rules also
take float64). NumPy and the array API know no bfloat16, so 16-bit rows may come as their bit patterns
(uint16) with ``dtype`` named; 16-bit values are widened by a table of all 65,536, which needs no bit casts
and is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from resispec_core.gpu.numerics import (
    MASS_MARGIN,
    MAX_ENTRY,
    cast,
    column,
    exponential,
    gather,
    real,
    softmax_bits,
    total,
)
from resispec_core.gpu.status import NodeStatus

KINDS = ("probabilities", "logits")
DTYPES = ("float32", "bfloat16", "float16")
VALIDATE = ("read", "all")
LEAST_SUM, LARGEST_SUM = 1e-30, 1e30
"""Row sums a caller may give; outside, the node's status says so."""


@dataclass(frozen=True)
class Policy:
    """How the numbers of a batch are to be read.

    ``kind``: ``probabilities`` or ``logits``. ``temperature``: divides logits, 1e-6 to 1e6.
    ``dtype``: what 16-bit patterns stand for. ``validate``: ``read`` checks what each node needs, ``all``
    reads and checks every row.
    """

    kind: str = "probabilities"
    temperature: float = 1.0
    dtype: str = "float32"
    validate: str = "read"

    @property
    def inverse_temperature(self) -> float:
        return 1.0 / self.temperature


def widen(xp: Any, raw: Any, dtype: str) -> Any:
    """``raw`` as float64, exactly. ``raw``: float32, float64, or bit patterns of 16-bit values (uint16)."""
    if raw.dtype == xp.uint16:
        device = {"device": raw.device} if xp.__name__ != "cupy" else {}
        table = xp.asarray(half_table(dtype), **device)
        flat = xp.take(table, cast(xp, xp.reshape(raw, (-1,)), xp.int64))
        return xp.reshape(flat, raw.shape)
    return cast(xp, raw, xp.float64)


@cache
def half_table(dtype: str) -> npt.NDArray[np.float64]:
    """The value of every 16-bit pattern, as float64."""
    bits = np.arange(2**16, dtype=np.uint16)
    if dtype == "float16":
        return bits.view(np.float16).astype(np.float64)
    wide = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaN patterns
        return wide.astype(np.float64)


@dataclass(frozen=True)
class Side:
    """One side (target or draft) of a batch: float64 probabilities and what is wrong with them."""

    law: Any
    """(N, V); unusable entries are 0."""
    unusable: Any
    """(N, V) bool."""
    normaliser_unusable: Any
    """(N,) bool."""
    mass_off: Any
    """(N,) bool: the row does not sum to one within the margin, or has no mass."""
    value_flag: NodeStatus
    mass_flag: NodeStatus

    def row_flags(self, xp: Any) -> Any:
        """(N,) status of a whole row."""
        values = xp.any(self.unusable, axis=-1)
        masses = self.mass_off | self.normaliser_unusable
        return _flag(xp, values, self.value_flag) + _flag(xp, masses, self.mass_flag)

    def candidate_flags(self, xp: Any, tokens: Any) -> Any:
        """(N,) status of the entries at the candidates."""
        values = xp.any(gather(xp, self.unusable, tokens), axis=-1)
        return _flag(xp, values, self.value_flag) + _flag(xp, self.normaliser_unusable, self.mass_flag)


def side(xp: Any, raw: Any, norm: Any, policy: Policy, *, target: bool) -> Side:
    """Reads one side. ``raw``: (N, V); ``norm``: (N,) float64 row sums (log-sum-exp for logits) or None."""
    wide = widen(xp, raw, policy.dtype)
    read = _from_logits if policy.kind == "logits" else _from_probabilities
    law, unusable, bad_norm = read(xp, wide, norm, policy)
    unusable = unusable | ~(law <= MAX_ENTRY)
    law = xp.where(unusable, xp.zeros_like(law), law)
    mass = real(xp, total(xp, law))
    off = (mass < 1 - MASS_MARGIN) | (mass > 1 + MASS_MARGIN)
    bad_norm = off & ~off if bad_norm is None else bad_norm
    if target:
        return Side(law, unusable, bad_norm, off, NodeStatus.TARGET_VALUE, NodeStatus.TARGET_MASS)
    return Side(law, unusable, bad_norm, off, NodeStatus.DRAFT_VALUE, NodeStatus.DRAFT_MASS)


def _from_probabilities(xp: Any, wide: Any, norm: Any, policy: Policy) -> tuple[Any, Any, Any]:
    del policy
    if norm is None:
        return wide, ~(wide >= 0), None
    bad_norm = ~((norm >= LEAST_SUM) & (norm <= LARGEST_SUM))
    scale = 1.0 / xp.where(bad_norm, xp.ones_like(norm), norm)
    return wide * column(scale), ~(wide >= 0), bad_norm


def _from_logits(xp: Any, wide: Any, norm: Any, policy: Policy) -> tuple[Any, Any, Any]:
    unusable = ~(wide < math.inf)
    scores = xp.where(unusable, xp.full_like(wide, -math.inf), wide) * policy.inverse_temperature
    if norm is not None:
        bad_norm = ~xp.isfinite(norm)
        shift = xp.where(bad_norm, xp.zeros_like(norm), norm)
        return exponential(xp, scores - column(shift)), unusable, bad_norm
    top = xp.max(scores, axis=-1)
    top = xp.where(top > -math.inf, top, xp.zeros_like(top))
    weights = exponential(xp, scores - column(top))
    bits = softmax_bits(wide.shape[-1])
    mass = real(xp, total(xp, weights, bits), bits)
    return weights * column(1.0 / xp.where(mass > 0, mass, xp.ones_like(mass))), unusable, None


def _flag(xp: Any, where: Any, flag: NodeStatus) -> Any:
    return cast(xp, where, xp.int32) * int(flag)

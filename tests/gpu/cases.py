"""Batches of random nodes, from ordinary rows to the awkward ones, with the law each row stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resispec_core.drafts import top_tokens
from resispec_core.gpu.rows import widen
from tests.shim.build import Case

SHAPES = (
    "dense", "peaked", "zeros", "one-hot target", "one-hot draft", "disjoint", "equal", "near-equal", "subnormal"
)  # fmt: skip
LARGEST_COIN = 1 - 2.0**-53


@dataclass(frozen=True)
class Nodes:
    """A case and, per node, the float64 laws it stands for (rows divided by their exact-enough float64 sum)."""

    case: Case
    dtype: str
    logits: bool
    target_law: np.ndarray
    draft_law: np.ndarray
    mass_gap: np.ndarray
    """|Σp − 1| + |Σq − 1| of the rows as read; 0 where normalisers were given."""


def bits_of(rows: np.ndarray, dtype: str) -> np.ndarray:
    """float64 rows rounded to ``dtype``: float32, or the uint16 patterns of a 16-bit type."""
    if dtype == "float32":
        return rows.astype(np.float32)
    if dtype == "float16":
        return rows.astype(np.float16).view(np.uint16)
    wide = rows.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((wide + 0x7FFF + ((wide >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)).astype(np.uint16)


def pair(rng: np.random.Generator, vocabulary: int, shape: str) -> tuple[np.ndarray, np.ndarray]:
    """One (target, draft) pair of rows of roughly unit mass."""
    concentration = 0.02 if shape == "peaked" else 0.3
    p, q = (rng.dirichlet(np.full(vocabulary, concentration)) for _ in range(2))
    q = 0.5 * p + 0.5 * q if shape in ("dense", "zeros") else q
    spot = int(rng.integers(vocabulary))
    if shape == "zeros":
        p[rng.random(vocabulary) < 0.4] = 0
        q[rng.random(vocabulary) < 0.4] = 0
    elif shape == "one-hot target":
        p = np.eye(1, vocabulary, spot)[0]
    elif shape == "one-hot draft":
        q = np.eye(1, vocabulary, spot)[0]
    elif shape == "disjoint" and vocabulary > 1:
        half = rng.random(vocabulary) < 0.5
        half[:2] = True, False
        p, q = p * half, q * ~half
    elif shape == "equal":
        q = p.copy()
    elif shape == "near-equal":
        q = p * (1 + 1e-6 * rng.standard_normal(vocabulary))
    elif shape == "subnormal":
        p = np.where(rng.random(vocabulary) < 0.5, 1e-40, p)
        q = np.where(rng.random(vocabulary) < 0.5, 3e-41, q)
    for row in (p, q):
        if not row.sum() > 1e-3:
            row[spot] = 1
    return p / p.sum(), q / q.sum()


def random_nodes(
    seed: int,
    count: int,
    vocabulary: int,
    candidates: int,
    dtype: str,
    *,
    logits: bool,
    norms: bool,
    top_k: bool,
) -> Nodes:
    """``count`` nodes, one shape after another; candidates from the draft law (or its top-k)."""
    rng = np.random.default_rng(seed)
    first = int(rng.integers(len(SHAPES)))
    shapes = [SHAPES[(first + node) % len(SHAPES)] for node in range(count)]
    pairs = [pair(rng, vocabulary, shape) for shape in shapes]
    rows = [np.stack(side) for side in zip(*pairs, strict=True)]
    if not logits and not norms and dtype != "float32":
        raise ValueError("16-bit probabilities miss unit mass by more than the margin; give their sums")
    temperature = float(rng.choice([1.0, 0.6])) if logits else 1.0
    raws, laws, given, gap = [], [], [], np.zeros(count)
    for side in rows:
        shift = rng.uniform(-10, 10, (count, 1)) if logits else None
        raw, law, norm, off = stored(side, dtype, norms=norms, temperature=temperature, shift=shift)
        raws.append(raw)
        laws.append(law)
        given.append(norm)
        gap += off
    tokens = np.stack([draw_tokens(rng, row, candidates, top_k) for row in laws[1]])
    coins = rng.random((count, candidates + 1))
    edge = rng.random(coins.shape)
    coins = np.where(edge < 0.06, 0.0, np.where(edge > 0.94, LARGEST_COIN, coins))
    case = Case(raws[0], raws[1], tokens, coins, given[0], given[1], temperature)
    return Nodes(case, dtype, logits, laws[0], laws[1], gap)


def stored(
    rows: np.ndarray, dtype: str, *, norms: bool, temperature: float = 1.0, shift: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """Laws (N, V) as rows of ``dtype``: the raw rows, the laws these stand for, their normalisers, |Σ − 1|.

    With ``shift`` (N, 1) the rows are logits: temperature·log p + shift.
    """
    logits = shift is not None
    if logits:
        with np.errstate(divide="ignore"):
            rows = np.log(rows) * temperature + shift
    raw = bits_of(rows, dtype)
    wide = widen(np, raw, dtype)
    gap = np.zeros(len(rows))
    if logits:
        scores = wide * (1.0 / temperature)
        norm = np.logaddexp.reduce(scores, axis=1)
        law = np.exp(scores - norm[:, None])
    else:
        norm = wide.sum(axis=1)
        law = wide / norm[:, None]
        gap = gap if norms else np.abs(norm - 1)
    law = law / law.sum(axis=1, keepdims=True)
    return np.ascontiguousarray(raw), law, norm if norms else None, gap


def draw_tokens(rng: np.random.Generator, law: np.ndarray, candidates: int, top_k: bool) -> np.ndarray:
    """Candidates as the draft would give them."""
    if top_k:
        return np.array(top_tokens(law, candidates), dtype=np.int64)
    return rng.choice(law.size, candidates, p=law).astype(np.int64)


def tiny_weights_node() -> Nodes:
    """One node (found by a random run) whose water level must give up: the drafted token holds 0.125 at a level of
    1e41 and the undrafted one must get the rest. The published rule with water-filling rejects 2 and returns 1."""
    p, q = np.array([[0.125, 0.875, 0]], np.float32), np.array([[1e-42, 0, 1]], np.float32)
    case = Case(p, q, np.array([[2]]), np.array([[0.5, 0.54]]))
    return Nodes(case, "float32", False, p.astype(np.float64), q.astype(np.float64), np.zeros(1))

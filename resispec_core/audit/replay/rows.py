"""Rows, tokens and generators in the form a sampler takes them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from resispec_core.arrays import Array, is_rational
from resispec_core.audit.replay.coin import Symbol
from resispec_core.audit.replay.numpy_source import ForkGenerator
from resispec_core.audit.replay.outcomes import Tokens
from resispec_core.laws import as_rational

Numbers = Literal["float64", "float32", "rational"]
Library = Literal["numpy", "torch"]


def convert(row: Array, numbers: Numbers, library: Library) -> Any:
    """A validated law in the number system and library the sampler takes."""
    exact = as_rational(row)
    if numbers == "rational":
        return exact if is_rational(row) else as_rational(simple(row))
    plain_row = row.astype(np.float64 if numbers == "float64" else np.float32)
    if library == "torch":
        import torch

        return torch.tensor(plain_row)
    return plain_row


def simple(row: Array) -> Array:
    """A float row as the nearest rationals of small denominator (0.1 becomes 1/10), summing to 1."""
    close = np.array([Fraction(x).limit_denominator(10**6) for x in row.tolist()], dtype=object)
    return close / close.sum()


def exact(row: Any) -> Array:
    """The exact rational law of such a row."""
    values = row.tolist()
    return as_rational(np.array(values, dtype=object))


def copy(row: Any) -> Any:
    """A fresh copy: samplers may write into their rows."""
    return row.clone() if hasattr(row, "clone") else row.copy()


def unchanged(a: Any, b: Any) -> bool:
    """Whether a row the sampler was given is as before; one that now holds coins is not."""
    entries = a.tolist()
    return not any(isinstance(entry, Symbol) for entry in entries) and bool(entries == b.tolist())


def token_list(tokens: Sequence[int], library: Library) -> Any:
    """Token ids as the sampler takes them: a list, or an int64 tensor."""
    if library == "torch":
        import torch

        return torch.tensor(list(tokens), dtype=torch.int64)
    return list(tokens)


def plain_prefix(prefix: Any) -> Tokens:
    """A prefix as a tuple of Python integers."""
    return tuple(int(token) for token in (prefix.tolist() if hasattr(prefix, "tolist") else prefix))


def forked(library: Library) -> Any:
    """The generator a replayed sampler is given."""
    if library == "torch":
        import torch

        return torch.default_generator
    return ForkGenerator()


def nonempty(tokens: Any) -> Any:
    """Refuse a step without tokens as the crash it is: it would never end."""
    if not hasattr(tokens, "shape") and isinstance(tokens, (list, tuple)) and len(tokens) == 0:
        raise ValueError("the step returned no token")
    return tokens

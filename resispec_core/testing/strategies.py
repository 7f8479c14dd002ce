"""Hypothesis strategies for laws and verification cases.

Laws are small integer weights divided by their sum, so that a failing case shrinks to few tokens with small
denominators. The corners where verifiers go wrong (p = q, nearly equal laws, disjoint supports, point masses,
zeros, ties, subnormal masses) are drawn on purpose, not left to luck.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import hypothesis
import numpy as np
from hypothesis import strategies as st

from resispec_core.arrays import Array, as_float, is_rational
from resispec_core.audit.replay.tables import Markov
from resispec_core.drafts import draw_mode
from resispec_core.errors import InputError
from resispec_core.laws import law as checked_law

TINY_MASSES = (5e-324, 1e-310, 1e-300, 1e-160, 2.0**-53, 1e-16)
"""Weights that underflow, vanish beside 1, or turn into infinity when divided by."""

NEARNESS = (50, 10**4, 10**8, 10**12, 2**52, 2**60)
"""A nearly equal law differs by a mass of at most one over one of these."""


DTYPES = ("float64", "float32", "float16")
TEMPERATURES = (1.0, 0.6, 2.0, 0.1)


@dataclass(frozen=True, eq=False)
class VerificationCase:
    """What a verifier is given for one position: two laws over one vocabulary, n, and how the n are drawn.

    ``temperature`` and ``dtype`` are for a sampler that takes logits: ``logits`` gives rows in that type which, divided
    by the temperature, have these laws.
    """

    target: Array
    draft: Array
    candidates: int
    draw: str = "iid"
    temperature: float = 1.0
    dtype: str = "float64"

    def logits(self) -> tuple[Array, Array]:
        """(target, draft) rows of ``temperature``·log p in ``dtype``, shape (V,); −inf where p = 0."""
        with np.errstate(divide="ignore"):
            target, draft = (self.temperature * np.log(as_float(row)) for row in (self.target, self.draft))
        return target.astype(self.dtype), draft.astype(self.dtype)

    def __repr__(self) -> str:
        more = {
            "draw": (self.draw, "iid"),
            "temperature": (self.temperature, 1.0),
            "dtype": (self.dtype, "float64"),
        }
        extra = "".join(f", {name}={value!r}" for name, (value, usual) in more.items() if value != usual)
        return f"VerificationCase({_text(self.target)}, {_text(self.draft)}, candidates={self.candidates}{extra})"


def rational_laws(
    min_size: int = 1, max_size: int = 5, *, max_weight: int = 12, allow_zeros: bool = True
) -> st.SearchStrategy[Array]:
    """Laws of ``Fraction`` over ``min_size`` to ``max_size`` tokens.

    Integer weights up to ``max_weight`` over their sum, which is thus the largest denominator possible:
    ``max_size * max_weight``. ``allow_zeros=False`` gives laws of full support.
    """
    _check_sizes(min_size, max_size)
    weight = st.integers(0 if allow_zeros else 1, max_weight)
    return st.lists(weight, min_size=min_size, max_size=max_size).map(_rational_law)


def float_laws(min_size: int = 1, max_size: int = 5, *, allow_zeros: bool = True) -> st.SearchStrategy[Array]:
    """float64 laws: small ratios (so ties and zeros are common), arbitrary masses, tiny and subnormal ones."""
    _check_sizes(min_size, max_size)
    weight = st.one_of(
        st.integers(0 if allow_zeros else 1, 8).map(float),
        st.floats(0, 1, exclude_min=not allow_zeros),
        st.sampled_from(TINY_MASSES),
    )
    return st.lists(weight, min_size=min_size, max_size=max_size).map(_float_law)


def law_pairs(
    min_size: int = 1, max_size: int = 5, *, rational: bool = True
) -> st.SearchStrategy[tuple[Array, Array]]:
    """Pairs (target, draft) over one vocabulary: unrelated, equal, nearly equal, reversed, of disjoint
    support, and with either a point mass."""
    _check_sizes(min_size, max_size)
    laws = rational_laws if rational else float_laws
    finish = _rational_law if rational else _float_law
    return st.integers(min_size, max_size).flatmap(lambda size: _pairs(size, laws(size, size), finish))


@st.composite
def verification_cases(
    draw: st.DrawFn,
    max_vocab: int = 5,
    max_candidates: int = 3,
    *,
    min_vocab: int = 1,
    draws: str | Sequence[str] = "iid",
    rational: bool = True,
    temperatures: Sequence[float] = (1.0,),
    dtypes: Sequence[str] = ("float64",),
) -> VerificationCase:
    """Cases (target, draft, n) that candidates drawn by the mode called ``draws`` (or one of several) can have.

    n goes up to ``max_candidates``, or to as many as the draft law can give where that is fewer. ``dtypes`` (of
    ``DTYPES``) other than float64 are for float laws, which are then rounded to that type and made to sum to 1 again.
    ``temperatures`` only scale ``VerificationCase.logits``.
    """
    dtype = draw(st.sampled_from(_known(dtypes, DTYPES, "dtypes")))
    if rational and dtype != "float64":
        raise InputError(f"dtypes holds {dtype!r} for rational laws, which have none; pass rational=False")
    name = draw(st.sampled_from([draws] if isinstance(draws, str) else list(draws)))
    target, draft = draw(law_pairs(min_vocab, max_vocab, rational=rational))
    if dtype != "float64":
        target, draft = (checked_law(row.astype(dtype)) for row in (target, draft))
    most = draw_mode(name).support(draft)
    limit = max_candidates if most is None else min(max_candidates, most)
    count = draw(st.integers(1, limit))
    return VerificationCase(target, draft, count, name, draw(st.sampled_from(list(temperatures))), dtype)


@st.composite
def markov_tables(
    draw: st.DrawFn, min_size: int = 2, max_size: int = 3, *, max_weight: int = 6
) -> tuple[Markov, Markov]:
    """Pairs (target, draft) of Markov tables in rationals: models for ``step`` samplers, whose rows depend on the token
    before. Their entries have denominators up to ``max_size * max_weight``."""
    _check_sizes(min_size, max_size)
    size = draw(st.integers(min_size, max_size))
    row = rational_laws(size, size, max_weight=max_weight)
    target, draft = (Markov(draw(row), [draw(row) for _ in range(size)]) for _ in range(2))
    return target, draft


@st.composite
def draft_trees(
    draw: st.DrawFn, max_nodes: int = 6, vocabulary: int = 3, *, distinct: bool = False
) -> tuple[tuple[int, int], ...]:
    """Trees of drafted tokens as (parent, token) for every node, parents first, −1 for the root.

    ``distinct``: no two siblings with one token, as in drawing without replacement; otherwise they may repeat.
    """
    if max_nodes < 1 or vocabulary < 1:
        raise InputError(f"max_nodes is {max_nodes} and vocabulary {vocabulary}; both are at least 1")
    nodes: list[tuple[int, int]] = []
    for _ in range(draw(st.integers(1, max_nodes))):
        parent = draw(st.integers(-1, len(nodes) - 1))
        free = [token for token in range(vocabulary) if not distinct or (parent, token) not in nodes]
        if free:
            nodes.append((parent, draw(st.sampled_from(free))))
    return tuple(nodes)


def target_tv(report: Any, label: str = "total variation") -> Any:
    """Tell Hypothesis to look for cases with a larger total variation than ``report`` has; returns ``report``.

    ``hypothesis.target`` with the report's figure: call it once an example and label.
    """
    hypothesis.target(float(report.total_variation), label=label)
    return report


@st.composite
def _pairs(
    draw: st.DrawFn, size: int, laws: st.SearchStrategy[Array], finish: Callable[[list[Any]], Array]
) -> tuple[Array, Array]:
    """Two laws of the same size in a drawn relation; the first relation is the one shrinking ends at."""
    relation = draw(
        st.sampled_from(
            ("unrelated", "equal", "near", "reversed", "disjoint", "one-hot draft", "one-hot target")
        )
    )
    first = draw(laws)
    if relation == "equal":
        return first, first.copy()
    if relation == "reversed":
        return first, first[::-1].copy()
    second = draw(laws)
    if relation == "near":
        share: Any = Fraction(1, draw(st.sampled_from(NEARNESS)))
        share = share if is_rational(first) else float(share)
        return first, finish((first * (1 - share) + second * share).tolist())
    if relation == "disjoint" and size > 1:
        split = draw(st.integers(1, size - 1))
        zero = first[:1] * 0
        left = np.concatenate([first[:split], np.repeat(zero, size - split)]).tolist()
        right = np.concatenate([np.repeat(zero, split), second[split:]]).tolist()
        left[0] += not any(left)
        right[-1] += not any(right)
        return finish(left), finish(right)
    if relation.startswith("one-hot"):
        place = draw(st.integers(0, size - 1))
        point = finish([int(token == place) for token in range(size)])
        return (first, point) if relation == "one-hot draft" else (point, second)
    return first, second


def _rational_law(weights: list[Any]) -> Array:
    """The law proportional to ``weights``; without any mass, a point mass on token 0."""
    exact = [Fraction(weight) for weight in weights]
    total = sum(exact)
    if total == 0:
        exact[0] = total = Fraction(1)
    law = np.empty(len(exact), dtype=object)
    law[:] = [weight / total for weight in exact]
    return law


def _float_law(weights: list[Any]) -> Array:
    """The same in float64; the sum is 1 to within rounding, as for a softmax."""
    law = np.array(weights, dtype=np.float64)
    if law.sum() == 0:
        law[0] = 1.0
    result: Array = law / law.sum()
    return result


def _known(values: Sequence[str], known: Sequence[str], name: str) -> list[str]:
    for value in values:
        if value not in known:
            raise InputError(f"{name} holds {value!r}; known: {', '.join(known)}")
    return list(values)


def _check_sizes(min_size: int, max_size: int) -> None:
    if not 1 <= min_size <= max_size:
        raise InputError(
            f"min_size is {min_size} and max_size is {max_size}; a law has at least one token, "
            "so pass 1 <= min_size <= max_size"
        )


def _text(law: Array) -> str:
    if is_rational(law):
        return f"parse_law('{','.join(map(str, law))}')"
    return f"law({law.tolist()})"

"""Hypothesis strategies for laws and verification cases.

Laws are small integer weights divided by their sum, so that a failing case shrinks to few tokens with small
denominators. The corners where verifiers go wrong (p = q, nearly equal laws, disjoint supports, point masses,
zeros, ties, subnormal masses) are drawn on purpose, not left to luck.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from resispec_core.arrays import Array, is_rational
from resispec_core.drafts import draw_mode
from resispec_core.errors import InputError

TINY_MASSES = (5e-324, 1e-310, 1e-300, 1e-160, 2.0**-53, 1e-16)
"""Weights that underflow, vanish beside 1, or turn into infinity when divided by."""

NEARNESS = (50, 10**4, 10**8, 10**12, 2**52, 2**60)
"""A nearly equal law differs by a mass of at most one over one of these."""


@dataclass(frozen=True, eq=False)
class VerificationCase:
    """What a verifier is given for one position: two laws over one vocabulary, and n."""

    target: Array
    draft: Array
    candidates: int

    def __repr__(self) -> str:
        return f"VerificationCase({_text(self.target)}, {_text(self.draft)}, candidates={self.candidates})"


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
    draws: str = "iid",
    rational: bool = True,
) -> VerificationCase:
    """Cases (target, draft, n) that candidates drawn by the mode called ``draws`` can have.

    n goes up to ``max_candidates``, or to as many as the draft law can give where that is fewer.
    """
    target, draft = draw(law_pairs(min_vocab, max_vocab, rational=rational))
    most = draw_mode(draws).support(draft)
    limit = max_candidates if most is None else min(max_candidates, most)
    return VerificationCase(target, draft, draw(st.integers(1, limit)))


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

"""Property tests for verifiers: assertions, a pytest plugin, and Hypothesis strategies.

The assertions need nothing but the package; the strategies need Hypothesis (``pip install 'resispec-core[test]'``)
and import it when they are first asked for. Nothing in ``resispec_core`` imports this package on its own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resispec_core.testing.assertions import assert_exact, assert_exact_sampler, assert_not_refuted
    from resispec_core.testing.generator import ChosenGenerator, generators
    from resispec_core.testing.strategies import (
        VerificationCase,
        draft_trees,
        float_laws,
        law_pairs,
        markov_tables,
        rational_laws,
        target_tv,
        verification_cases,
    )

_PLACES = {
    "assertions": ("assert_exact", "assert_exact_sampler", "assert_not_refuted"),
    "generator": ("ChosenGenerator", "generators"),
}

__all__ = [
    "ChosenGenerator",
    "VerificationCase",
    "assert_exact",
    "assert_exact_sampler",
    "assert_not_refuted",
    "draft_trees",
    "float_laws",
    "generators",
    "law_pairs",
    "markov_tables",
    "rational_laws",
    "target_tv",
    "verification_cases",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = next((place for place, names in _PLACES.items() if name in names), "strategies")
    return getattr(import_module(f"{__name__}.{place}"), name)

"""Property tests for verifiers: Hypothesis strategies for laws, pairs of laws and verification cases.

Needs the ``test`` extra (``pip install 'resispec-core[test]'``); nothing in ``resispec_core`` imports this
package on its own.
"""

from resispec_core.testing.strategies import (
    VerificationCase,
    float_laws,
    law_pairs,
    rational_laws,
    verification_cases,
)

__all__ = ["VerificationCase", "float_laws", "law_pairs", "rational_laws", "verification_cases"]

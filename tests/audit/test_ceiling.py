"""The ceiling against the linear program it solves."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from resispec_core.audit import acceptance_ceiling, ceiling
from resispec_core.drafts import draw_mode
from resispec_core.testing.strategies import verification_cases


def transport_optimum(p, tuples):
    """Largest probability that the output is among the candidates, over joint laws with both marginals."""
    size, cells = p.size, [(k, y) for k in range(len(tuples)) for y in range(p.size)]
    gain = [-float(y in tuples[k][0]) for k, y in cells]
    rows = np.zeros((len(tuples) + size, len(cells)))
    for column, (k, y) in enumerate(cells):
        rows[k, column] = 1
        rows[len(tuples) + y, column] = 1
    sides = np.concatenate([[float(weight) for _, weight in tuples], p])
    return -linprog(gain, A_eq=rows, b_eq=sides).fun


@pytest.mark.parametrize("draw", ["iid", "top-k", "greedy"])
def test_the_ceiling_is_the_optimal_transport_value(draw):
    mode = draw_mode(draw)

    @settings(max_examples=60)
    @given(verification_cases(4, 3, draws=draw))
    def check(case):
        tuples = list(mode.tuples(case.draft, case.candidates))
        best = transport_optimum(case.target.astype(float), tuples)
        # HiGHS solves to a feasibility of 1e-7 a constraint at worst.
        assert abs(float(ceiling(case.target, case.draft, case.candidates, mode)) - best) < 1e-6

    check()


@settings(max_examples=200)
@given(verification_cases(6, 3))
def test_no_set_of_tokens_gives_a_smaller_bound_than_the_prefixes(case):
    bound = acceptance_ceiling(case.target, case.draft, case.candidates)
    for chosen in product([False, True], repeat=case.target.size):
        inside = np.array(chosen)
        value = 1 + case.target[inside].sum() - case.draft[inside].sum() ** case.candidates
        assert bound <= value


@pytest.mark.parametrize("size", [1, 49_152, 152_064])
def test_real_vocabularies(size):
    rng = np.random.default_rng(size)
    p, q = rng.dirichlet(np.full(size, 0.01), size=2) if size > 1 else (np.ones(1), np.ones(1))
    values = [acceptance_ceiling(p, q, n) for n in (1, 2, 3)]
    assert values[0] == pytest.approx(np.minimum(p, q).sum(), abs=size * 2.3e-16)
    assert values == sorted(values)

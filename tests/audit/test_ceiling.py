"""The ceiling against the linear program it solves."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from resispec_core import inclusion
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


@pytest.mark.parametrize("draw", ["iid", "without-replacement", "top-k", "greedy"])
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


def missing(draft, inside, candidates):
    """P(some draw without replacement falls outside), by listing the draws."""
    total = 0
    for drawn in permutations(np.flatnonzero(inside).tolist(), candidates):
        weight, left = 1, 1
        for token in drawn:
            weight, left = weight * draft[token] / left, left - draft[token]
        total += weight
    return 1 - total


WITHOUT = draw_mode("without-replacement")


def listed_minimum_is_the_ceiling(examples):
    @settings(max_examples=examples, report_multiple_bugs=False)
    @given(verification_cases(5, 4, draws="without-replacement"))
    def check(case):
        """Every subset, not only prefixes: the proof that prefixes suffice is in proofs/without_replacement.md."""
        p, q, n = case.target, case.draft, case.candidates
        bounds = []
        for chosen in product([False, True], repeat=p.size):
            # A set without enough drafted tokens cannot hold all draws; tokens of q = 0 only add to p(H).
            inside = np.array(chosen) & (q > 0)
            bounds.append(p[inside].sum() + missing(q, inside, n))
        assert ceiling(p, q, n, WITHOUT) == min(bounds)

    check()


def test_no_set_of_tokens_gives_a_smaller_bound_without_replacement():
    listed_minimum_is_the_ceiling(300)


def test_a_wrong_sum_over_sets_is_noticed(monkeypatch):
    whole = inclusion._listed
    for fault in (
        lambda draft, n: whole(draft, n - 1) if n > 3 else 0 * draft[0],
        lambda draft, n: np.append(whole(draft, n)[1:], 0),
    ):
        monkeypatch.setattr(inclusion, "_listed", fault)
        with pytest.raises(AssertionError):
            listed_minimum_is_the_ceiling(300)


def exact_rational(law):
    law = np.array([Fraction(x) for x in law.tolist()], dtype=object)
    return law / law.sum()


def quadrature_meets_the_listed_sums(sizes):
    rng = np.random.default_rng(3)
    for size, candidates in sizes:
        for spread in (0.02, 0.2, 2):
            # 1e-200: the heavy tokens then hold all but a mass far below eps.
            draft = np.maximum(rng.dirichlet(np.full(size, spread)), 1e-200)
            draft /= draft.sum()
            listed = inclusion.missing_by_prefix(exact_rational(draft), candidates).astype(float)
            found = inclusion.missing_by_prefix(draft, candidates)
            assert np.abs(found - listed).max() < inclusion.QUADRATURE_ERROR + 16 * size * 2.3e-16


def test_the_quadrature_keeps_its_stated_error():
    quadrature_meets_the_listed_sums([(3, 3), (4, 3), (12, 3), (60, 3), (8, 5), (10, 6), (6, 6)])


def test_a_coarse_quadrature_is_noticed(monkeypatch):
    whole = inclusion._nodes

    def coarse(candidates, rest):
        nodes, weights = whole(candidates, rest)
        return nodes[::4], 4 * weights[::4]

    def cut(candidates, rest):
        nodes, weights = whole(candidates, rest)
        return nodes[:-20], weights[:-20]

    for fault in (coarse, cut):
        monkeypatch.setattr(inclusion, "_nodes", fault)
        with pytest.raises(AssertionError):
            quadrature_meets_the_listed_sums([(12, 3)])


def test_too_many_rational_sets_give_no_ceiling():
    draft = np.full(800, Fraction(1, 800), dtype=object)
    assert ceiling(draft, draft, 3, WITHOUT) is None
    assert ceiling(draft, draft, 2, WITHOUT) == 1


@pytest.mark.parametrize("candidates", [1, 2, 3, 5])
def test_without_replacement_at_real_vocabularies(candidates):
    rng = np.random.default_rng(candidates)
    p, q = np.maximum(rng.dirichlet(np.full(49_152, 0.01), size=2), 1e-30)
    p, q = p / p.sum(), q / q.sum()
    found = ceiling(p, q, candidates, WITHOUT)
    # Repeats only waste draws: candidates drawn without replacement contain those drawn independently.
    assert acceptance_ceiling(p, q, candidates) - 1e-12 <= found <= 1
    if candidates == 1:
        assert found == pytest.approx(np.minimum(p, q).sum(), abs=q.size * 2.3e-16)

"""Levels found by their leading bits, and two running sums in one pass: the plain NumPy calls are the oracle."""

from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resispec_core.arrays import running_sums

search = import_module("resispec_core.audit.certify.search")


@st.composite
def searches(draw):
    """A sorted table and many levels over a few octaves, the ends of float64 among them, with ties between them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    octaves = draw(st.sampled_from((0.01, 1.0, 5.0, 60.0)))
    top = draw(st.sampled_from((0.0, -30.0, -1000.0, 990.0)))
    table = 2.0 ** (top - octaves * rng.random(draw(st.sampled_from((1, 3, 40, 2000)))))
    levels = 2.0 ** (top - octaves * rng.random(draw(st.sampled_from((1, 300, 5000)))))
    levels = np.concatenate([levels, rng.choice(table, 20), np.nextafter(rng.choice(table, 20), np.inf)])
    edges = draw(st.lists(st.sampled_from((0.0, 5e-324, 2.2e-308, 1.0, 2.0**1000, np.inf)), max_size=3))
    table = np.sort(np.concatenate([table, edges]))
    extra = draw(st.lists(st.sampled_from((0.0, 5e-324, 2.2e-308, 1.0, 2.0**1000)), max_size=2))
    return table, rng.permutation(np.concatenate([levels, extra]))


@settings(max_examples=300)
@given(searches())
def test_levels_are_counted_as_searchsorted_counts_them(case):
    table, levels = case
    assert np.array_equal(search.counts_below(table, levels), np.searchsorted(table, levels))


def test_no_levels_and_no_table():
    none = np.zeros(0)
    assert search.counts_below(np.ones(3), none).size == 0
    assert np.array_equal(search.counts_below(none, np.ones(2)), [0, 0])


def _cells_start_too_high(level):
    return (int(level.view(np.int64)) >> search.SHIFT) + 3


def _no_cell_is_unclear(_mask):
    return np.zeros(0, dtype=int)


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [(search, "_cell", _cells_start_too_high), (search.np, "flatnonzero", _no_cell_is_unclear)],
)
def test_a_fault_in_the_cells_is_noticed(monkeypatch, module, name, fault):
    rng = np.random.default_rng(4)
    table, levels = np.sort(rng.random(200)), rng.random(20_000)
    wanted = np.searchsorted(table, levels)
    assert np.array_equal(search.counts_below(table, levels), wanted)
    monkeypatch.setattr(module, name, fault)
    assert not np.array_equal(search.counts_below(table, levels), wanted)


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_running_sums_are_those_of_cumsum_bit_for_bit(size):
    first, second = np.random.default_rng(size).random((2, size)) * [[1.0], [1e-300]]
    for values, sums in zip((first, second), running_sums(first, second), strict=True):
        assert np.array_equal(sums, np.concatenate([[0.0], np.cumsum(values)]))


def test_running_sums_of_rationals_are_exact():
    thirds = np.array([Fraction(1, 3), Fraction(1, 6)], dtype=object)
    sums, _ = running_sums(thirds, thirds)
    assert sums.tolist() == [0, Fraction(1, 3), Fraction(1, 2)]

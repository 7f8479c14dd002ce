"""What each dtype may be off by, what is refused beyond it, and extreme but legal rows."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resispec_core import InputError, law, law_from_logits
from resispec_core.laws import as_rational, same_vocabulary
from resispec_core.testing.strategies import float_laws, rational_laws

DTYPES = (np.float64, np.float32, np.float16)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 1000, 49_152])
def test_a_softmax_in_its_own_dtype_is_accepted(dtype, size):
    """The tolerance is derived for a softmax in that dtype; an honest one must never trip over it."""
    rng = np.random.default_rng(size)
    for _ in range(5):
        scores = rng.normal(scale=3, size=size).astype(dtype)
        weights = np.exp(scores - scores.max())
        row = (weights / weights.sum(dtype=dtype)).astype(dtype)
        accepted = law(row)
        assert accepted.dtype == np.float64
        assert abs(accepted.sum() - 1) <= (8 + 2 * math.log2(size)) * np.finfo(float).eps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_off_by_more_than_rounding_is_refused_and_the_gap_is_named(dtype, sign):
    eps = float(np.finfo(dtype).eps)
    row = np.array([0.5, 0.25, 0.125, 0.125], dtype=dtype)
    allowed = (8 + 2 * math.log2(4)) * eps + 4 * float(np.finfo(dtype).smallest_subnormal)
    row[0] += dtype(sign * 8 * eps)
    law(row)
    row[0] += dtype(sign * 8 * eps)
    off = float(row.astype(float).sum()) - 1
    assert abs(off) > allowed
    with pytest.raises(InputError) as refused:
        law(row, name="target")
    message = str(refused.value)
    assert message.startswith("target: probabilities sum to ")
    assert f"off by {off:+.3g} (allowed for {np.dtype(dtype)} and V = 4: {allowed:.3g})" in message
    assert "divide the row by its sum, or pass logits to law_from_logits" in message


def test_low_precision_rows_keep_their_proportions():
    row = np.array([0.5, 0.3, 0.2], dtype=np.float32)
    wide = row.astype(float)
    assert law(row).tolist() == (wide / wide.sum()).tolist()


def test_float64_is_kept_bit_for_bit():
    row = np.array([0.7, 0.2, 0.1])
    assert row.sum() != 1
    assert law(row).tolist() == row.tolist()


@settings(max_examples=300)
@given(rational_laws(1, 6))
def test_rationals_are_kept_exactly_in_every_spelling(row):
    for spelling in (row, list(row), tuple(map(str, row))):
        assert law(spelling).tolist() == row.tolist()


@settings(max_examples=300)
@given(float_laws(1, 6))
def test_as_rational_is_exact_up_to_the_sum(row):
    exact = as_rational(row)
    total = sum(map(Fraction, row.tolist()))
    assert exact.sum() == 1
    assert [x * total for x in exact] == [Fraction(x) for x in row.tolist()]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (np.array([1, 0]).astype(np.complex128), "entry 0 is .* expected a float"),
        (np.array([1.0, 0.0], dtype=np.longdouble), "convert to float64 first"),
        (None, "expected a sequence of probabilities, got None"),
        (0.5, "expected a sequence of probabilities, got 0.5"),
        ([[1, 0]], r"entry 0 is \[1, 0\]"),
        ([0.5, "x"], "expected one row of numbers"),
        (["1/0"], "entry 0 is '1/0'"),
        (np.zeros((0,)), "at least one probability, got shape"),
        (np.array([1e308, 1e308]), "off by"),
    ],
)
def test_other_unusable_rows_are_refused(row, words):
    with pytest.raises(InputError, match=words):
        law(row)


def test_integers_are_rationals():
    assert law([0, 1]).tolist() == [0, 1]
    assert law(np.array([0, 1])).dtype == object


def test_pairs_of_different_kind_are_refused_with_a_remedy():
    with pytest.raises(InputError, match="map or pad the draft's ids first"):
        same_vocabulary(law([1.0]), law([0.5, 0.5]))
    with pytest.raises(InputError, match=r"use as_rational\(...\) on the float one"):
        same_vocabulary(law([1.0]), law([1]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("temperature", [1.0, 0.01, 1e-300])
def test_extreme_logits_neither_warn_nor_overflow(dtype, temperature):
    largest = np.finfo(dtype).max
    row = law_from_logits(
        np.array([largest, -largest, largest, -np.inf], dtype=dtype), temperature=temperature
    )
    assert row.tolist() == [0.5, 0, 0.5, 0]


def test_a_high_temperature_is_uniform_over_what_is_not_masked():
    row = law_from_logits(np.array([3.0, -5.0, -np.inf]), temperature=1e300)
    assert row.tolist() == [0.5, 0.5, 0]


@settings(max_examples=200)
@given(
    st.lists(st.integers(-6, 6).map(float) | st.just(-math.inf), min_size=1, max_size=8),
    st.integers(1, 9),
)
def test_top_k_keeps_k_tokens_and_their_ties(logits, k):
    row = np.array(logits)
    if np.isneginf(row).all():
        row[0] = 0.0
    kept = np.flatnonzero(law_from_logits(row, top_k=k) > 0)
    edge = sorted(row.tolist(), reverse=True)[: min(k, row.size)][-1]
    assert kept.tolist() == np.flatnonzero((row >= edge) & ~np.isneginf(row)).tolist()


@settings(max_examples=200)
@given(float_laws(1, 8), st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9, 1.0]))
def test_top_p_keeps_the_smallest_head_that_reaches_p(row, top_p):
    with np.errstate(divide="ignore"):
        logits = np.log(row)
    kept = law_from_logits(logits, top_p=top_p) > 0
    head = np.sort(row)[::-1].cumsum()
    # The kept mass reaches top_p, and without its lightest token would not (rounding of the softmax aside).
    assert row[kept].sum() >= top_p - 64 * np.finfo(float).eps
    assert head[kept.sum() - 2] < top_p + 64 * np.finfo(float).eps or kept.sum() == 1
    assert row[kept].max() == row.max()


@pytest.mark.parametrize(
    "filters",
    [
        {"top_k": 7},
        {"top_p": 0.5},
        {"min_p": 0.2},
        {"temperature": 0.7, "top_k": 9, "top_p": 0.7, "min_p": 0.1},
    ],
)
def test_filters_on_float32_rows_with_many_ties_agree_with_transformers(filters):
    """Integer logits in float32: long runs of ties at every edge.

    transformers works in float32, whose cumulative sums may land on either side of 1 − top_p; rows where a
    float64 cumulative sum is within 1e-5 of it (64 terms · eps of float32) are left out, and counted.
    """
    import torch
    from transformers.generation import logits_process as warpers

    order = [
        ("temperature", warpers.TemperatureLogitsWarper),
        ("top_k", warpers.TopKLogitsWarper),
        ("top_p", warpers.TopPLogitsWarper),
        ("min_p", warpers.MinPLogitsWarper),
    ]
    rng = np.random.default_rng(11)
    compared = 0
    for _ in range(100):
        logits = rng.integers(-3, 4, size=64).astype(np.float32)
        scores = torch.tensor(logits)[None]
        for name, warper in order:
            if name in filters:
                scores = warper(filters[name])(None, scores)
        expected = scores.softmax(-1)[0].numpy()
        found = law_from_logits(logits, **filters)
        if "top_p" in filters and near_the_edge(logits, filters):
            continue
        compared += 1
        # Which of several tied tokens top-p drops is the sort's choice; the multiset of masses is not.
        np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=64 * 1.2e-7, atol=1e-30)
        if "top_p" not in filters:
            np.testing.assert_allclose(found, expected, rtol=64 * 1.2e-7, atol=1e-30)
    assert compared >= 80


def near_the_edge(logits, filters):
    before = {name: value for name, value in filters.items() if name in ("temperature", "top_k")}
    ascending = np.sort(law_from_logits(logits, **before)).cumsum()
    return (abs(ascending - (1 - filters["top_p"])) < 1e-5).any()

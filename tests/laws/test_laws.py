"""One place refuses a bad row, and says which entry and what to do."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resispec_core import InputError, audit, law, law_from_logits, parse_law
from resispec_core.laws import inverse_cdf
from resispec_core.testing.strategies import float_laws, rational_laws


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([0.5, float("nan"), 0.5], "token 1 has probability nan"),
        ([0.5, float("inf")], "token 1 has probability inf"),
        ([0.6, -0.1, 0.5], "token 1 has probability -0.1"),
        ([0.5, 0.4], "off by -0.1"),
        ([0.0, 0.0], "all 2 entries are zero"),
        (np.array([[0.5, 0.5]]), "expected one row"),
        ([], "at least one probability"),
        (["1/3", "1/3"], "off by -1/3"),
        (["1/3", "x"], "entry 1 is 'x'"),
        ("1/3,2/3", "see parse_law"),
        (np.array([0.5, 0.4], dtype=np.float32), "allowed for float32"),
    ],
)
def test_bad_probabilities_are_refused(row, words):
    with pytest.raises(InputError, match=words):
        law(row)


@pytest.mark.parametrize(
    ("logits", "words"),
    [
        ([1.0, np.nan], "token 1 has logit nan"),
        ([np.inf, 0.0], "token 0 has logit inf"),
        ([-np.inf, -np.inf], "all 2 tokens are masked"),
        ([[0.0]], "expected one row"),
        ([1, 2], "is not a logit dtype"),
    ],
)
def test_bad_logits_are_refused(logits, words):
    with pytest.raises(InputError, match=words):
        law_from_logits(np.array(logits))


@pytest.mark.parametrize(
    "filters",
    [{"temperature": -1}, {"temperature": np.nan}, {"top_k": 0}, {"top_p": 0}, {"top_p": 1.5}, {"min_p": 2}],
)
def test_bad_filters_are_named(filters):
    with pytest.raises(InputError, match=f"{next(iter(filters))} is"):
        law_from_logits(np.zeros(3), **filters)


def test_pairs_must_fit():
    with pytest.raises(InputError, match="target has 2 tokens and draft has 3"):
        audit("specinfer", [0.5, 0.5], [0.5, 0.25, 0.25])
    with pytest.raises(InputError, match="both be rational or both be float"):
        audit("specinfer", [0.5, 0.5], ["1/2", "1/2"])


def test_low_precision_rows_are_widened_and_normalised():
    row = np.full(3, 1 / 3, dtype=np.float16)
    assert law(row).dtype == np.float64
    assert law(row).sum() == pytest.approx(1, abs=3e-16)
    half = np.array([0.1, 0.9])
    assert law(half).tolist() == half.tolist()


def test_decimals_are_read_exactly():
    assert parse_law("0.1, 0.9").tolist() == [Fraction(1, 10), Fraction(9, 10)]
    with pytest.raises(InputError, match="off by -1/1000"):
        parse_law("0.333,0.333,0.333")


def test_greedy_is_a_point_mass_on_the_first_maximum():
    assert law_from_logits(np.array([1.0, 3.0, 3.0]), temperature=0).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"temperature": 0.6},
        {"top_k": 5},
        {"top_p": 0.8},
        {"min_p": 0.1},
        {"temperature": 1.3, "top_k": 20, "top_p": 0.9, "min_p": 0.05},
    ],
)
def test_filters_agree_with_transformers(filters):
    import torch
    from transformers.generation import logits_process as warpers

    order = [
        ("temperature", warpers.TemperatureLogitsWarper),
        ("top_k", warpers.TopKLogitsWarper),
        ("top_p", warpers.TopPLogitsWarper),
        ("min_p", warpers.MinPLogitsWarper),
    ]
    rng = np.random.default_rng(7)
    for _ in range(50):
        logits = rng.normal(scale=3, size=64)
        logits[rng.integers(64)] = -np.inf
        logits[0] = logits[1]
        scores = torch.tensor(logits)[None]
        for name, warper in order:
            if name in filters:
                scores = warper(filters[name])(None, scores)
        expected = scores.softmax(-1)[0].numpy()
        # Both work in float64: a softmax of 64 terms differs by a few roundings an entry.
        np.testing.assert_allclose(
            law_from_logits(logits, **filters), expected, rtol=64 * 2.3e-16, atol=1e-300
        )


def test_topk_keeps_ties_at_the_edge():
    assert np.count_nonzero(law_from_logits(np.array([2.0, 1.0, 1.0, 0.0]), top_k=2)) == 3


@settings(max_examples=500)
@given(st.one_of(rational_laws(), float_laws()), st.sampled_from([0.0, 0.25, 0.5, 1 - 2**-53, 1 - 2**-24]))
def test_inverse_cdf_never_returns_an_impossible_token(row, coin):
    assert row[inverse_cdf(row, coin)] > 0


def test_inverse_cdf_survives_a_sum_below_the_coin():
    row = np.array([0.5, 0.5 - 2**-40, 0.0])
    assert inverse_cdf(row, 1 - 2**-53) == 1


def test_a_row_divided_by_a_running_sum_is_a_law():
    row = np.full(50_000, 1 / 50_000) * (1 + 5e-12)
    assert abs(law(row).sum() - 1) < 1e-15
    with pytest.raises(InputError, match="off by"):
        law(row * (1 + 1e-10))

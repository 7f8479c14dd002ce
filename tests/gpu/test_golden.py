"""The golden outputs, on every layer that runs here."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.device import on_device, unavailable
from tests.gpu.golden import INPUTS, for_pair, stored
from tests.gpu.pairs import PAIRS, Pair, array_level
from tests.gpu.test_pairs import assert_same_bits, launch, on_cpu
from tests.shim import build

every = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
each = pytest.mark.parametrize("name", list(INPUTS))


@each
@every
def test_array_level(pair: Pair, name: str) -> None:
    inputs, answers = stored()
    assert_same_bits(array_level(pair, for_pair(pair, inputs[name])), answers[name, pair.name])


@pytest.mark.skipif(build.unavailable() is not None, reason=str(build.unavailable()))
@each
@every
def test_kernel_on_the_cpu(pair: Pair, name: str) -> None:
    inputs, answers = stored()
    nodes = for_pair(pair, inputs[name])
    assert_same_bits(on_cpu(pair, nodes, launch(130, 1, 2, 64), seed=9), answers[name, pair.name])


@pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
@each
@every
def test_device(pair: Pair, name: str) -> None:
    """Only a GPU can confirm this one: the CPU's bits, on the device."""
    inputs, answers = stored()
    nodes = for_pair(pair, inputs[name])
    assert_same_bits(on_device(pair, nodes), answers[name, pair.name])
    for layout in (launch(130, 0, 0, 64), launch(130, 1, 0, 256)):
        assert_same_bits(on_device(pair, nodes, layout), answers[name, pair.name])


def test_the_comparison_sees_one_wrong_token() -> None:
    """Planted fault: one token of one node moved by one."""
    inputs, answers = stored()
    pair = PAIRS[0]
    given = array_level(pair, inputs["float32-probabilities"])
    token = given.token.copy()
    token[5] += 1
    with pytest.raises(AssertionError, match="token differs at nodes \\[5\\]"):
        assert_same_bits(given._replace(token=token), answers["float32-probabilities", pair.name])


def test_the_golden_nodes_reach_every_branch() -> None:
    """Acceptances at every candidate, and full rejections, are among them."""
    _, answers = stored()
    accepted = np.concatenate([answer.accepted for answer in answers.values()])
    assert set(accepted.tolist()) == {-1, 0, 1, 2}

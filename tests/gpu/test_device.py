"""The pairs once more on a device: the same bits as the CPU predicts. Skipped, with the reason, where there is none."""

from __future__ import annotations

import pytest

from tests.gpu.cases import random_nodes
from tests.gpu.device import on_device, unavailable
from tests.gpu.pairs import PAIRS, Pair, array_level
from tests.gpu.test_pairs import assert_same_bits

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))


@pytest.mark.parametrize("vocabulary", [1, 33, 4_099, 49_152, 152_064])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_the_device_returns_the_predicted_bits(pair: Pair, vocabulary: int) -> None:
    for dtype, logits in (("float32", False), ("bfloat16", True), ("float16", True)):
        candidates = 1 if pair.rule == "single_draft" else min(4, vocabulary)
        nodes = random_nodes(
            vocabulary,
            18,
            vocabulary,
            candidates,
            dtype,
            logits=logits,
            norms=not logits,
            top_k=pair.draw == "top-k",
        )
        assert_same_bits(on_device(pair, nodes), array_level(pair, nodes))

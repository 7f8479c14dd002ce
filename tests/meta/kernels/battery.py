"""The fixed cases a kernel must survive under one build: the array-level answers, in every thread order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from resispec_core.gpu.config import KERNELS, KernelConfig
from tests.gpu.cases import LARGEST_COIN, Nodes, bits_of, random_nodes, tiny_weights_node
from tests.gpu.pairs import Pair, array_level
from tests.gpu.test_pairs import assert_same_bits, launch
from tests.shim import build

SCHEDULES = ((0, -1), (5, 0), (6, 1))
"""(seed, warp held back)."""


def nodes_for(config: KernelConfig, vocabulary: int, count: int, seed: int) -> Nodes:
    """Random nodes; the last three hold a negative entry, a wrong id and NaN.

    In the first half the candidates are over-drafted tokens, repeated or not, and the coins are as high as they go,
    so that also the published rule rejects them all and reads its rows.
    """
    top_k = config.rule == "deterministic"
    nodes = random_nodes(
        seed, count, vocabulary, 3, config.dtype, logits=config.logits, norms=False, top_k=top_k
    )
    case = nodes.case
    case.target[-1, vocabulary // 2] = bits_of(np.array([np.nan]), config.dtype)[0]
    tokens, coins = case.tokens.copy(), case.coins.copy()
    tokens[-2, 1] = vocabulary
    case.target[-3, vocabulary // 3] = bits_of(np.array([-0.5]), config.dtype)[0]
    half = max(count // 2, 2)
    coins[:half, :-1] = LARGEST_COIN
    for node in range(half):
        by_excess = np.argsort(nodes.target_law[node] - nodes.draft_law[node])
        tokens[node] = by_excess[[0, 0, 0]] if node % 2 else by_excess[[0, 1, 1]]
    coins[:half:3, -1], coins[1:half:3, -1] = 0.0, LARGEST_COIN
    coins[half, :] = 0.0
    return replace(nodes, case=replace(case, tokens=tokens, coins=coins))


def survive(config: KernelConfig, flavour: str, kernels: Path = KERNELS) -> None:
    """Raises ``ShimError`` or ``AssertionError`` where the kernels misbehave."""
    pair = Pair("battery", config.rule, "iid", config.redistribution, config.budget)
    few = flavour == "tsan"
    count = 8 if few else 30
    batches = [
        nodes_for(config, vocabulary, count, seed)
        for vocabulary, seed in (((101, 3),) if few else ((20, 2), (101, 3), (200, 4)))
    ]
    if config.redistribution == "waterfill" and config.dtype == "float32" and not config.logits:
        batches.append(tiny_weights_node())
    for nodes in batches:
        vocabulary = nodes.target_law.shape[1]
        for validate in ("read", "all"):
            given = replace(nodes, case=replace(nodes.case, validate=validate))
            expected = array_level(pair, given)
            for shuffle, hold in SCHEDULES[: 2 if few else 3]:
                layout = launch(vocabulary, config.resident, config.cluster, 64)
                answer = build.run(
                    config, given.case, layout, flavour=flavour, seed=shuffle, hold=hold, kernels=kernels
                )
                assert_same_bits(answer, expected)

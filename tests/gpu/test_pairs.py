"""The same tape gives the same tokens: reference, array-level twin, kernels on the CPU (and a device, if any)."""

from __future__ import annotations

import math
from dataclasses import replace

import array_api_strict
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resispec_core.gpu.config import ITEM_BYTES, Layout, kernel_config, up_to
from tests.gpu.cases import LARGEST_COIN, random_nodes, tiny_weights_node
from tests.gpu.pairs import PAIRS, Pair, array_level, compare, threshold_of
from tests.shim import build

pytestmark = pytest.mark.skipif(build.unavailable() is not None, reason=str(build.unavailable()))

EXAMPLES, NODES = 40, 16
"""9 pairs × 40 examples × 16 nodes = 5,760 nodes, and the large vocabularies below."""
LAYOUTS = {"float32": ((0, 0), (1, 0), (1, 2)), "float16": ((0, 0), (1, 2)), "bfloat16": ((1, 0), (1, 2))}


@st.composite
def batches(draw: st.DrawFn, pair: Pair):
    """Nodes, and a launch to run them with."""
    dtype = draw(st.sampled_from(list(ITEM_BYTES)))
    logits = draw(st.booleans())
    vocabulary = draw(st.one_of(st.integers(1, 40), st.sampled_from([64, 127, 255, 257, 1000, 4099])))
    most = 1 if pair.rule == "single_draft" else 8
    candidates = draw(st.integers(1, min(most, vocabulary) if pair.draw == "top-k" else most))
    norms = draw(st.booleans()) or (dtype != "float32" and not logits)
    nodes = random_nodes(
        draw(st.integers(0, 2**32 - 1)), NODES, vocabulary, candidates, dtype, logits=logits, norms=norms,
        top_k=pair.draw == "top-k",
    )  # fmt: skip
    resident, cluster = draw(st.sampled_from(LAYOUTS[dtype]))
    return (
        nodes,
        launch(vocabulary, resident, cluster, draw(st.sampled_from([32, 64, 96]))),
        draw(st.integers(0, 9)),
    )


def launch(vocabulary: int, resident: int, cluster: int, threads: int) -> Layout:
    part = up_to(math.ceil(vocabulary / cluster), 8) if cluster else vocabulary
    return Layout(max(cluster, 1), part, bool(resident), threads)


def on_cpu(pair: Pair, nodes, layout: Layout, seed: int = 0, hold: int = -1):
    config = kernel_config(
        pair.rule, nodes.case.tokens.shape[1], pair.redistribution, pair.budget, nodes.dtype, logits=nodes.logits,
        resident=layout.resident, cluster=layout.cluster if layout.cluster > 1 else 0,
    )  # fmt: skip
    return build.run(config, nodes.case, layout, seed=seed, hold=hold)


def assert_same_bits(left, right) -> None:
    for a, b, field in zip(left, right, left._fields, strict=True):
        differ = np.flatnonzero(np.asarray(a) != np.asarray(b))
        assert differ.size == 0, f"{field} differs at nodes {differ.tolist()}: {left} {right}"


def assert_pair(pair: Pair, nodes, answers) -> list[str]:
    """No wrong token, none of probability zero; returns the decisions that rounding explains."""
    close = []
    assert (answers.status <= 1).all(), f"status {answers.status}"
    for node in range(len(answers.token)):
        token, accepted = int(answers.token[node]), int(answers.accepted[node])
        assert nodes.target_law[node, token] > 0, (
            f"{pair.name}: token {token} of probability zero at node {node}"
        )
        parting = compare(pair, nodes, node, accepted, token)
        if parting is not None:
            assert parting.within, parting.text
            close.append(parting.text)
    return close


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_same_tape_same_tokens(pair: Pair) -> None:
    """Array-level and kernel agree bit for bit; both agree with the reference outside rounding of a threshold."""
    close: list[str] = []
    seen = 0

    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    @given(batch=batches(pair))
    def check(batch) -> None:
        nonlocal seen
        nodes, layout, seed = batch
        answers = array_level(pair, nodes)
        assert_same_bits(on_cpu(pair, nodes, layout, seed, hold=seed % 3 - 1), answers)
        seen += len(answers.token)
        close.extend(assert_pair(pair, nodes, answers))

    check()
    print(f"{pair.name}: {seen} nodes, {len(close)} decided within rounding of a threshold")
    for line in close[:20]:
        print("  " + line)
    assert seen >= EXAMPLES * NODES
    # One coin in eight is 0 or the largest: on thresholds that are 0 or 1 up to rounding these are close by design.
    assert len(close) <= seen // 25, "too many decisions hide behind the rounding bound"


@pytest.mark.parametrize("vocabulary", [49_152, 152_064])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_real_vocabularies(pair: Pair, vocabulary: int) -> None:
    """The sizes of real tokenizers, one dtype each, nine shapes of row."""
    dtype = {49_152: "float32", 152_064: "bfloat16"}[vocabulary]
    candidates = 1 if pair.rule == "single_draft" else 3
    nodes = random_nodes(
        vocabulary, 9, vocabulary, candidates, dtype, logits=vocabulary == 152_064, norms=True,
        top_k=pair.draw == "top-k",
    )  # fmt: skip
    answers = array_level(pair, nodes)
    assert_same_bits(on_cpu(pair, nodes, launch(vocabulary, 1, 2, 64), seed=3), answers)
    assert_pair(pair, nodes, answers)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_the_standard_namespace_gives_the_same_bits(pair: Pair) -> None:
    """The array-level rules keep to the array API: array-api-strict runs them."""
    candidates = 1 if pair.rule == "single_draft" else 4
    for dtype, logits in (("float32", False), ("bfloat16", True), ("float16", True)):
        nodes = random_nodes(
            7, 18, 129, candidates, dtype, logits=logits, norms=not logits, top_k=pair.draw == "top-k"
        )
        strict = array_level(pair, nodes, array_api_strict)
        assert_same_bits(strict, array_level(pair, nodes))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_results_ignore_batch_block_cluster_and_order(pair: Pair) -> None:
    """One node alone, any block or cluster size, any thread order: the same bits."""
    candidates = 1 if pair.rule == "single_draft" else 3
    nodes = random_nodes(
        11, 9, 517, candidates, "float32", logits=False, norms=False, top_k=pair.draw == "top-k"
    )
    answers = array_level(pair, nodes)
    for resident, cluster, threads, seed, hold in (
        (0, 0, 32, 0, -1), (0, 0, 256, 4, 3), (1, 0, 128, 5, 0), (1, 2, 64, 6, 1), (1, 4, 32, 7, 0)
    ):  # fmt: skip
        layout = launch(517, resident, cluster, threads)
        assert_same_bits(on_cpu(pair, nodes, layout, seed, hold), answers)
    alone = random_nodes(
        11, 9, 517, candidates, "float32", logits=False, norms=False, top_k=pair.draw == "top-k"
    )
    for node in range(3):
        case = build.Case(*(a[node : node + 1] for a in (alone.case.target, alone.case.draft, alone.case.tokens,
                                                         alone.case.coins)))  # fmt: skip
        single = type(nodes)(case, "float32", False, nodes.target_law, nodes.draft_law, nodes.mass_gap)
        for whole, one in zip(answers, array_level(pair, single), strict=True):
            assert one[0] == whole[node]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_decision_past_its_threshold_is_refused(pair: Pair) -> None:
    """Planted fault: a candidate accepted with a coin 1e-9 above its threshold, or rejected 1e-9 below it."""
    candidates = 1 if pair.rule == "single_draft" else 3
    nodes = random_nodes(
        13, 12, 33, candidates, "float32", logits=False, norms=True, top_k=pair.draw == "top-k"
    )
    refused = 0
    for node in range(12):
        edges = ((coin, threshold_of(pair, nodes, node, coin)) for coin in range(candidates))
        coin, edge = next(
            ((c, e) for c, e in edges if e > 1e-6), (0, 1.0)
        )  # those before it are never accepted
        for side in (1, -1) if edge < 1 - 1e-6 else ():
            coins = nodes.case.coins.copy()
            coins[node, :coin], coins[node, coin] = LARGEST_COIN, edge + side * 1e-9
            moved = replace(nodes, case=replace(nodes.case, coins=coins))
            right = array_level(pair, moved)
            assert_pair(pair, moved, right)
            told = compare(pair, moved, node, coin if side > 0 else -1, int(nodes.case.tokens[node, coin]))
            assert told is not None
            assert (told.coin, told.within) == (coin, False), told.text
            refused += 1
    assert refused >= 2


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_token_beside_the_drawn_one_is_refused(pair: Pair) -> None:
    """Planted fault."""
    candidates = 1 if pair.rule == "single_draft" else 2
    nodes = random_nodes(
        13, 45, 33, candidates, "float32", logits=False, norms=True, top_k=pair.draw == "top-k"
    )
    answers = array_level(pair, nodes)
    told = [
        compare(pair, nodes, node, -1, (int(answers.token[node]) + 1) % 33)
        for node in np.flatnonzero(answers.accepted < 0).tolist()
    ]
    assert all(parting is not None for parting in told)
    assert any(parting is not None and not parting.within for parting in told)


@pytest.mark.parametrize("budget", ["local", "eq13"])
def test_the_water_level_gives_up_where_tiny_weights_hold_too_little(budget: str) -> None:
    pair, nodes = Pair("regression", "resispec", "iid", "waterfill", budget), tiny_weights_node()
    answers = array_level(pair, nodes)
    assert (answers.accepted.tolist(), answers.token.tolist()) == ([-1], [1])
    assert assert_pair(pair, nodes, answers) == []
    for resident, cluster in LAYOUTS["float32"]:
        assert_same_bits(on_cpu(pair, nodes, launch(3, resident, cluster, 64)), answers)

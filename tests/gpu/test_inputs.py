"""What the GPU path refuses, in words, and what it reports a node at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from resispec_core import gpu
from resispec_core.errors import InputError
from resispec_core.gpu import NodeStatus
from resispec_core.gpu.config import KernelConfig, kernel_config
from tests.gpu.cases import LARGEST_COIN
from tests.gpu.test_pairs import assert_same_bits, launch
from tests.shim import build

P = np.array([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]], np.float32)
Q = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]], np.float32)
TOKENS = np.array([[0, 1], [1, 2]])
COINS = np.array([[0.75, 0.5, 0.1], [0.25, 0.5, 0.9]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": P.astype(np.int32)}, "target has dtype int32; rows are float32"),
        ({"target": P[0]}, r"target has shape \(3,\); expected \(nodes, vocabulary\)"),
        ({"target": [[0.5, 0.5]]}, "target is a list; expected a CuPy, NumPy or torch array"),
        ({"target": np.asfortranarray(P)}, "target is strided along the vocabulary"),
        ({"draft": Q.astype(np.float16)}, "target is float32 and draft is float16"),
        ({"draft": Q[:, :2]}, "draft is strided|draft has shape"),
        ({"draft": None}, "only rule 'deterministic' reads no draft row"),
        ({"target": np.zeros((1, 2**18 + 1), np.float32)}, "integer sums hold up to 262144"),
        ({"tokens": TOKENS.astype(np.float64)}, "tokens has dtype float64; expected int64 or int32"),
        ({"tokens": np.zeros((2, 9), np.int64)}, "1 <= b <= 8"),
        ({"coins": COINS[:, :2]}, r"coins has shape \(2, 2\); expected \(2, 3\)"),
        ({"target_norm": np.ones(3)}, r"target_norm has shape \(3,\); expected \(2,\)"),
        ({"kind": "odds"}, "kind 'odds' is unknown"),
        ({"temperature": 0.0, "kind": "logits"}, "temperature is 0.0"),
        ({"temperature": 0.5}, "pass logits to rescale them"),
        ({"layer": "fused"}, "layer 'fused' needs CuPy"),
        ({"layer": "turbo"}, "layer 'turbo' is unknown"),
        ({"validate": "some"}, "validate 'some' is unknown"),
        ({"rule": "typical"}, "rule 'typical' is unknown on the GPU path"),
        ({"rule": "resispec", "redistribution": "even"}, "redistribution 'even' is unknown"),
        ({"rule": "single_draft"}, "single_draft verifies one candidate, not 2"),
    ],
)
def test_unusable_calls_are_refused_by_name(change: dict, message: str) -> None:
    call = {"rule": "specinfer", "target": P, "draft": Q, "tokens": TOKENS, "coins": COINS} | change
    with pytest.raises(InputError, match=message):
        gpu.verify(**call)


def broken(name: str):
    """A case of three nodes of which the middle one is broken, and the status it must have."""
    target, draft = np.repeat(P[:1], 3, 0), np.repeat(Q[:1], 3, 0)
    tokens = np.zeros((3, 1), np.int64)
    coins = np.full((3, 2), LARGEST_COIN)
    norms = None
    if name == "NaN":
        target[1, 2] = np.nan
    elif name == "negative":
        draft[1, 2] = -0.25
    elif name == "infinite":
        target[1, 0] = np.inf
    elif name == "mass":
        target[1] *= 0.9
    elif name == "empty":
        target[1] = 0
    elif name == "id":
        tokens[1] = 3
    elif name == "negative id":
        tokens[1] = -1
    elif name == "wide id":
        tokens[1] = 2**32
    elif name == "coin":
        coins[1, 0] = 1.0
    elif name == "NaN coin":
        coins[1, 1] = np.nan
    elif name == "norm":
        norms = np.array([1.0, 0.0, 1.0])
    return build.Case(target, draft, tokens, coins, norms), {
        "NaN": NodeStatus.TARGET_VALUE, "negative": NodeStatus.DRAFT_VALUE | NodeStatus.DRAFT_MASS,
        "infinite": NodeStatus.TARGET_VALUE, "mass": NodeStatus.TARGET_MASS, "empty": NodeStatus.TARGET_MASS,
        "id": NodeStatus.CANDIDATE, "negative id": NodeStatus.CANDIDATE, "wide id": NodeStatus.CANDIDATE,
        "coin": NodeStatus.COIN, "NaN coin": NodeStatus.COIN, "norm": NodeStatus.TARGET_MASS,
    }[name]  # fmt: skip


NAMES = (
    "NaN",
    "negative",
    "infinite",
    "mass",
    "empty",
    "id",
    "negative id",
    "wide id",
    "coin",
    "NaN coin",
    "norm",
)


@pytest.mark.parametrize("validate", ["read", "all"])
@pytest.mark.parametrize("name", NAMES)
def test_a_broken_node_says_why_and_stops_nobody(name: str, validate: str) -> None:
    case, expected = broken(name)
    answer = gpu.specinfer(
        case.target, case.draft, case.tokens, case.coins, target_norm=case.target_norm, validate=validate
    )
    assert NodeStatus(int(answer.status[1])) & expected
    assert (answer.accepted[1], answer.token[1]) == (-1, -1)
    assert answer.status[[0, 2]].tolist() == [0, 0]
    assert answer.token[[0, 2]].tolist() == [2, 2]
    if build.unavailable() is None:
        given = build.Case(*case.arrays()[:2], case.tokens, case.coins, case.target_norm, None, 1.0, validate)
        assert_same_bits(build.run(KernelConfig(), given, launch(3, 1, 0, 32)), answer)


def test_masked_and_infinite_logits() -> None:
    logits = np.log(P[:1])
    draft = np.log(Q[:1])
    logits[0, 1] = -np.inf
    answer = gpu.specinfer(logits, draft, np.array([[1]]), np.array([[0.0, 0.9]]), kind="logits")
    assert (answer.accepted[0], answer.token[0], answer.status[0]) == (-1, 2, 0)
    for value, flag in ((np.inf, NodeStatus.TARGET_VALUE), (-np.inf, NodeStatus.TARGET_MASS)):
        row = np.full((1, 3), value, np.float32)
        status = gpu.specinfer(row, draft, np.array([[1]]), np.array([[0.0, 0.9]]), kind="logits").status
        assert NodeStatus(int(status[0])) & flag


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_torch_tensors_come_in_without_a_copy(dtype: torch.dtype) -> None:
    target, draft = torch.tensor(P).to(dtype), torch.tensor(Q).to(dtype).requires_grad_()
    answer = gpu.specinfer(target, draft, torch.tensor(TOKENS), torch.tensor(COINS))
    plain = gpu.specinfer(P, Q, TOKENS, COINS)
    assert_same_bits(answer, plain)


def test_rows_of_a_padded_tensor_are_taken_as_they_lie() -> None:
    padded = np.zeros((2, 8), np.float32)
    padded[:, :3] = P
    assert_same_bits(gpu.shaped(padded[:, :3], Q, TOKENS, COINS), gpu.shaped(P, Q, TOKENS, COINS))
    if build.unavailable() is None:
        config = kernel_config("shaped", 2, "", "local", "float32", logits=False, resident=True)
        answer = build.run(config, build.Case(padded[:, :3], Q, TOKENS, COINS), launch(3, 1, 0, 32))
        assert_same_bits(answer, gpu.shaped(P, Q, TOKENS, COINS))

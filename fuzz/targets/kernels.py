"""The reference against its twins: array level, and the CUDA source compiled for the host (tests/shim).

Half of the cases spell out small rows entry by entry, so that a search can change one of them and a failure shrinks;
the other half name a seed of tests/gpu/cases.py, for vocabularies up to 1000 in every shape of row. A derandomised
sample of the second kind once missed a fault of the water level that fresh seeds found within minutes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from fuzz.target import Case, Target
from resispec_core.drafts import top_tokens
from resispec_core.errors import InputError
from resispec_core.gpu.config import ITEM_BYTES
from resispec_core.testing.strategies import law_pairs
from tests.gpu.cases import LARGEST_COIN, Nodes, random_nodes, stored
from tests.gpu.pairs import PAIRS, Pair, array_level
from tests.gpu.test_pairs import LAYOUTS, assert_pair, assert_same_bits, launch, on_cpu
from tests.shim import build

BY_NAME = {pair.name: pair for pair in PAIRS}
SIZES = (1, 2, 3, 5, 8, 17, 33, 40, 64, 127, 255, 257, 1000)
NODES = 16
NEVER_DRAFTED = 1e-300
"""The twins' exp of a logit 708 below the rest is 0; the reference keeps a subnormal mass. No draft gets there."""
CANDIDATES = (1, 2, 3, 8)
"""Each number of candidates is a build of its own: a second, a few megabytes. tests/gpu tries all from 1 to 8."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A rule of PAIRS, rows in a dtype, candidates and coins, and a launch."""
    pair = draw(st.sampled_from(PAIRS))
    dtype = draw(st.sampled_from(list(ITEM_BYTES)))
    logits = draw(st.booleans())
    case: Case = {
        "pair": pair.name,
        "dtype": dtype,
        "logits": logits,
        "norms": draw(st.booleans()) or (dtype != "float32" and not logits),
        "layout": [*draw(st.sampled_from(LAYOUTS[dtype])), draw(st.sampled_from([32, 64, 96]))],
        "schedule": [draw(st.integers(0, 9)), draw(st.integers(-1, 1))],
    }
    most = 1 if pair.rule == "single_draft" else 8
    if draw(st.booleans()):
        case["vocabulary"] = draw(st.sampled_from(SIZES))
        most = min(most, case["vocabulary"]) if pair.draw == "top-k" else most
        case["candidates"] = draw(st.sampled_from([n for n in CANDIDATES if n <= most]))
        case["seed"] = draw(st.integers(0, 2**32 - 1))
        return case
    target, draft = draw(law_pairs(1, 12, rational=False))
    most = min(most, target.size) if pair.draw == "top-k" else most
    n = draw(st.sampled_from([n for n in CANDIDATES if n <= most]))
    coin = st.one_of(st.sampled_from([0.0, LARGEST_COIN, 0.5]), st.floats(0, LARGEST_COIN))
    case["target"], case["draft"] = target.tolist(), draft.tolist()
    case["temperature"] = draw(st.sampled_from([1.0, 0.6])) if logits else 1.0
    case["shift"] = [draw(st.integers(-10, 10)), draw(st.integers(-10, 10))] if logits else None
    case["picks"] = draw(st.lists(st.integers(0, 11), min_size=n, max_size=n))
    case["coins"] = draw(st.lists(coin, min_size=n + 1, max_size=n + 1))
    return case


def check(case: Case) -> None:
    """Array level and kernel agree bit for bit, and with the reference outside rounding of a threshold."""
    reason = build.unavailable()
    if reason is not None:
        raise InputError(f"the target 'kernels' builds the CUDA source for this machine, but {reason}")
    pair = BY_NAME[case["pair"]]
    nodes = nodes_of(case, pair)
    answers = array_level(pair, nodes)
    seed, hold = case["schedule"]
    kernel = on_cpu(pair, nodes, launch(nodes.case.target.shape[1], *case["layout"]), seed, hold)
    assert_same_bits(kernel, answers)
    assert_pair(pair, nodes, answers)


def nodes_of(case: Case, pair: Pair) -> Nodes:
    """The batch that a case describes."""
    top_k = pair.draw == "top-k"
    if "seed" in case:
        return random_nodes(
            case["seed"], NODES, case["vocabulary"], case["candidates"], case["dtype"], logits=case["logits"],
            norms=case["norms"], top_k=top_k,
        )  # fmt: skip
    temperature = case["temperature"]
    sides: list[Any] = []
    for place, name in enumerate(("target", "draft")):
        shift = np.array([[float(case["shift"][place])]]) if case["logits"] else None
        rows = np.array([case[name]])
        sides.append(stored(rows, case["dtype"], norms=case["norms"], temperature=temperature, shift=shift))
    (target, p, target_norm, off), (draft, q, draft_norm, off_too) = sides
    live = np.flatnonzero(q[0] > NEVER_DRAFTED)
    tokens = (
        top_tokens(q[0], len(case["picks"])) if top_k else [live[pick % live.size] for pick in case["picks"]]
    )
    given = build.Case(
        target, draft, np.array([tokens], np.int64), np.array([case["coins"]]), target_norm, draft_norm, temperature
    )  # fmt: skip
    return Nodes(given, case["dtype"], case["logits"], p, q, off + off_too)


TARGET = Target("kernels", cases, check)

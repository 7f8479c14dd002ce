"""Tree attention: every node's row is the row of its own context, step after step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_oracle import log_laws

from resispec_core.errors import InputError
from resispec_core.llama import models, scorer
from resispec_core.llama.scorer import TreeScorer, tree_mask
from resispec_core.trees import ABSENT, DraftTree, Topology, complete

PROMPT = [3, 1, 4, 1, 5, 9, 2]


@pytest.fixture(scope="module")
def model(tiny: Path) -> Any:
    return models.load_model(models.find_model(tiny))


def random_tree(rng: np.random.Generator, nodes: int = 9) -> DraftTree:
    parents = [-1, *sorted(int(rng.integers(i)) for i in range(1, nodes))]
    return DraftTree(Topology(tuple(parents)), (ABSENT, *(int(t) for t in rng.integers(0, 16, nodes - 1))))


def worst_error(model: Any, seed: int = 5, *, by_level: bool = False) -> float:
    """The largest error of any log-probability over three steps on random trees, against the hand-written loop."""
    rng = np.random.default_rng(seed)
    context, worst = list(PROMPT), 0.0
    scoring = TreeScorer(model, context)
    for _ in range(3):
        tree = random_tree(rng)
        if by_level:  # as a draft does: the last level is never scored
            levels = tree.topology.levels[:-1]
            rows = dict(
                item for level in levels for item in zip(level, scoring.logits(tree, level), strict=True)
            )
        else:
            rows = dict(enumerate(scoring.logits(tree, range(9))))
        for node, row in rows.items():
            exact = log_laws(model, [*context, *tree.prefix(node)])[-1]
            own = row.astype(np.float64)
            worst = max(worst, np.abs(own - own.max() - np.log(np.exp(own - own.max()).sum()) - exact).max())
        path = tree.topology.path(int(rng.integers(9)))
        tokens = [*(tree.tokens[node] for node in path[1:]), int(rng.integers(16))]
        scoring.keep(path, tokens)
        context += tokens
        assert scoring.context_length == len(context)
    return float(worst)


# float32, 5 layers, sums of up to 48 terms, logits of size ~10: 1e-4 is a hundred times what rounding does.
CLOSE = 1e-4


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("by_level", [False, True])
def test_rows_are_those_of_the_nodes_own_context(model: Any, seed: int, by_level: bool) -> None:
    assert worst_error(model, seed, by_level=by_level) < CLOSE


def test_a_wrong_mask_is_caught(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def causal(topology: Topology, length: int, lead: int, held: Any, new: int) -> np.ndarray:
        size = length + lead + len(held)
        return np.tri(size, dtype=bool)[size - lead - new :]

    monkeypatch.setattr(scorer, "tree_mask", causal)  # siblings see one another, as in a plain sequence
    assert worst_error(model) > 1000 * CLOSE


@pytest.mark.parametrize("shift", [1, -1])
def test_shifted_positions_are_caught(model: Any, monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    run = models.hidden_states
    # Nodes alone: a shift of everything would not change attention, which sees only distances.
    monkeypatch.setattr(
        models,
        "hidden_states",
        lambda model, tokens, cache, *, mask, positions: run(
            model, tokens, cache, mask=mask, positions=positions + shift * (positions > len(PROMPT))
        ),
    )
    assert worst_error(model) > 1000 * CLOSE


def test_positions_by_slot_instead_of_depth_are_caught(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Topology, "depths", property(lambda self: tuple(range(1, len(self) + 1))))
    assert worst_error(model) > 1000 * CLOSE


@pytest.mark.parametrize("fault", ["off by one", "rejected branch kept", "nothing kept"])
def test_a_wrong_gather_is_caught(model: Any, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    import torch

    def gathered(part: Any, length: int, wanted: Any) -> Any:
        if fault == "off by one":
            wanted = (wanted + 1).clamp(max=part.shape[-2] - 1)
        if fault == "rejected branch kept":
            wanted = torch.arange(length, length + len(wanted))  # the first slots instead of the path's
        if fault == "nothing kept":
            wanted = torch.full_like(wanted, length)
        return torch.cat([part[..., :length, :], part[..., wanted, :]], dim=-2)

    monkeypatch.setattr(scorer, "_gathered", gathered)
    assert max(worst_error(model, seed) for seed in range(4)) > 1000 * CLOSE


def test_the_mask_of_a_small_tree() -> None:
    #       0        two cached context tokens, one context token of this pass, then the nodes 0, 1, 2, 3
    #      1 2
    #      3
    topology = Topology((-1, 0, 0, 1))
    assert tree_mask(topology, 2, 1, [0, 1, 2, 3], 4).astype(int).tolist() == [
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0, 1, 0],
        [1, 1, 1, 1, 1, 0, 1],
    ]
    assert tree_mask(topology, 2, 0, [0, 1, 3], 1).astype(int).tolist() == [[1, 1, 1, 1, 1]]
    with pytest.raises(InputError, match="node 3 is scored before its ancestor 1"):
        tree_mask(topology, 2, 0, [0, 3], 1)


def test_misuse_is_refused(model: Any) -> None:
    with pytest.raises(InputError, match="the prompt has no token"):
        TreeScorer(model, [])
    scoring = TreeScorer(model, PROMPT)
    tree = DraftTree(complete(3, 2), (ABSENT, 1, 2, 3, 4, 5, 6))
    scoring.logits(tree, [0, 1])
    with pytest.raises(InputError, match="the root is scored first, and once a step"):
        scoring.logits(tree, [0])
    with pytest.raises(InputError, match=r"path \[0, 2, 1\]: only \[0, 1\] were scored"):
        scoring.keep([0, 2, 1], [2, 1, 1])


def test_a_shared_model_serves_two_scorers(make_llama: Callable[..., Path], model: Any) -> None:
    tree = DraftTree(Topology((-1, 0)), (ABSENT, 4))
    first, second = TreeScorer(model, PROMPT), TreeScorer(model, PROMPT[:4])
    alone = TreeScorer(model, PROMPT).logits(tree, [0, 1])
    second.logits(tree, [0, 1])
    assert np.array_equal(first.logits(tree, [0, 1]), alone)

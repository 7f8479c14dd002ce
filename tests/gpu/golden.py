"""Golden inputs and outputs: what every layer and every device must return, bit for bit.

``python -m tests.gpu.golden`` writes golden.npz anew from the array-level rules; do that only when the arithmetic is
meant to change, and say so in the changelog.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from resispec_core.gpu.array import Decisions
from tests.gpu.cases import Nodes, random_nodes
from tests.gpu.pairs import PAIRS, Pair, array_level
from tests.shim.build import Case

PATH = Path(__file__).with_suffix(".npz")
INPUTS = {
    "float32-probabilities": ("float32", False, False),
    "bfloat16-logits": ("bfloat16", True, False),
    "float16-probabilities": ("float16", False, True),
}
FIELDS = ("target", "draft", "target_norm", "draft_norm", "tokens", "coins")


def stored() -> tuple[dict[str, Nodes], dict[tuple[str, str], Decisions]]:
    """The inputs by name, and the answers by (input, pair)."""
    with np.load(PATH, allow_pickle=False) as file:
        data = {name: file[name] for name in file.files}
    inputs = {}
    for name, (dtype, logits, _) in INPUTS.items():
        arrays = {field: data.get(f"{name}/{field}") for field in FIELDS}
        case = Case(**arrays, temperature=float(data[f"{name}/temperature"]))
        inputs[name] = Nodes(case, dtype, logits, *[np.empty(0)] * 3)
    answers = {
        (name, pair.name): Decisions(*(data[f"{name}/{pair.name}/{field}"] for field in Decisions._fields))
        for name in INPUTS
        for pair in PAIRS
    }
    return inputs, answers


def for_pair(pair: Pair, nodes: Nodes) -> Nodes:
    """The nodes as one rule takes them: a single candidate where it verifies one."""
    if pair.rule != "single_draft":
        return nodes
    case = nodes.case
    one = Case(case.target, case.draft, np.ascontiguousarray(case.tokens[:, :1]),
               np.ascontiguousarray(case.coins[:, [0, -1]]), case.target_norm, case.draft_norm,
               case.temperature)  # fmt: skip
    return Nodes(one, nodes.dtype, nodes.logits, *[np.empty(0)] * 3)


def main() -> None:
    data = {}
    for seed, (name, (dtype, logits, norms)) in enumerate(INPUTS.items(), start=20):
        nodes = random_nodes(seed, 27, 130, 3, dtype, logits=logits, norms=norms, top_k=False)
        for field in FIELDS:
            value = getattr(nodes.case, field)
            if value is not None:
                data[f"{name}/{field}"] = value
        data[f"{name}/temperature"] = np.float64(nodes.case.temperature)
        for pair in PAIRS:
            for field, value in array_level(pair, for_pair(pair, nodes))._asdict().items():
                data[f"{name}/{pair.name}/{field}"] = value
    np.savez_compressed(PATH, **data)


if __name__ == "__main__":
    main()

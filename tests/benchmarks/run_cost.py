"""What a run costs a position: processor seconds, bytes on disk, and memory against the number of positions.

    python tests/benchmarks/run_cost.py

Rows are synthetic (Zipf laws over V tokens in random order, the draft a noisy copy), since cost depends on V and hardly
on the law. Times are processor times of one core, so that other work on the machine does not count; they are still
those of one machine. Written to docs/runs.md by hand.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np

from resispec_core.llama.positions import Position
from resispec_core.llama.store import LogitsStore
from resispec_core.llama.writer import StoreWriter
from resispec_core.runs import Plan, audit_store, in_process
from resispec_core.runs.store import parts

RULES = ("resispec", "specinfer", "shaped", "optimal")


def make_store(folder: Path, width: int, positions: int) -> LogitsStore:
    """Shards of ten rows."""
    rng = np.random.default_rng(width)
    settings = {
        "target": {"id": "T"},
        "draft": {"id": "D"},
        "libraries": {},
        "tokenizer_sha256": "0" * 64,
        "vocabulary_size": width,
        "dtype": "float16",
        "prompts": [{"name": "p", "text": "t", "token_ids": [1] * (positions + 1)}],
    }
    text = " about eight tokens of text before this position"
    planned = [Position(0, place + 1, text, 1, " word") for place in range(positions)]
    writer = StoreWriter(folder, settings, planned, [f"t{token}" for token in range(width)])
    zipf = -1.1 * np.log(np.arange(1, width + 1))
    while writer.done < positions:
        count = min(10, positions - writer.done)
        target = np.stack([rng.permutation(zipf) for _ in range(count)])
        draft = target + rng.normal(0, 1, target.shape)
        made = [rows - np.log(np.exp(rows).sum(axis=1, keepdims=True)) for rows in (target, draft)]
        writer.append(*(rows.astype(np.float16) for rows in made))
    return LogitsStore.open(folder)


def measure(width: int, positions: int, rule: str, candidates: int, folder: Path) -> dict[str, float]:
    """One rule over a store, in this process."""
    store = make_store(folder / "store", width, positions)
    with in_process() as pool:
        start = time.process_time()
        audit_store(store, Plan((rule,), candidates), folder / "run", pool)
        seconds = time.process_time() - start
    size = sum(file.stat().st_size for file in parts(folder / "run"))
    return {
        "seconds": seconds / positions,
        "bytes": size / positions,
        "store_bytes": 4 * width,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
    }


def index_bytes(positions: int, folder: Path) -> float:
    """Memory of a store's index, bytes a position, in the process that deals the positions out."""
    make_store(folder / "store", 8, positions)
    tracemalloc.start()
    store = LogitsStore.open(folder / "store")
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held / len(store)


def main() -> None:
    if len(sys.argv) > 1:
        width, positions, rule, candidates = sys.argv[1:]
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(int(width), int(positions), rule, int(candidates), Path(folder))))
        return
    cases = [(49152, 10, rule, 3) for rule in RULES] + [(131072, 10, rule, 3) for rule in RULES]
    cases += [(49152, 30, "optimal", 3), (49152, 300, "optimal", 3)]
    for case in cases:
        done = subprocess.run(
            (sys.executable, __file__, *map(str, case)), capture_output=True, text=True, check=True
        )
        print(*case, done.stdout.strip(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        print("index, bytes a position:", index_bytes(2000, Path(folder)))


if __name__ == "__main__":
    main()

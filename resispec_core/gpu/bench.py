"""How fast the kernels are, as ratios in one run: `python -m resispec_core.gpu.bench [--json FILE]`.

On a device, for each (rule, V, dtype, nodes, b): the median time by CUDA events after warm-up, rotating over inputs
larger than the L2 cache; the bytes of the rows read over that time against the device's own measured copy rate; and
the ratio to the array-level version under CuPy and to eager torch. Without a device it prints what it would run, and
times the array layer under NumPy and, in a checkout with g++, the kernels on the CPU's fibers. Those are no GPU
figures and say nothing about one: a fiber switch costs what a GPU does for free.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from resispec_core.gpu import array, eager, fused
from resispec_core.gpu.checks import Checked
from resispec_core.gpu.config import ITEM_BYTES, kernel_config, layout
from resispec_core.gpu.doctor import report, why_no_device
from resispec_core.gpu.rows import Policy

VOCABULARIES = (32_000, 128_256, 152_064)
RULES = ("specinfer", "resispec", "shaped")
NODES = (1, 64, 512)
CANDIDATES = (2, 4)
DTYPES = ("float32", "bfloat16")
REPEATS = 10
L2_FACTOR = 2
TIME_LIMIT = 270.0
"""Seconds; cases left when it is over are reported as not run."""


class Case(NamedTuple):
    rule: str
    vocabulary: int
    dtype: str
    nodes: int
    candidates: int


def cases() -> Iterator[Case]:
    """Every combination on the list."""
    for case in product(RULES, VOCABULARIES, DTYPES, NODES, CANDIDATES):
        yield Case(*case)


def inputs(case: Case, seed: int) -> dict[str, Any]:
    """Host arrays: a draft at overlap about one half with the target, coins high enough to read every row."""
    rng = np.random.default_rng(seed)
    rows = rng.exponential(size=(2, case.nodes, case.vocabulary)) ** 4
    rows /= rows.sum(axis=-1, keepdims=True)
    raw = rows.astype(np.float32)
    if case.dtype == "bfloat16":
        raw = (raw.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        sums = (raw.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64).sum(axis=-1)
    else:
        sums = raw.astype(np.float64).sum(axis=-1)
    tokens = np.repeat((rows[0] - rows[1]).argmin(axis=-1)[:, None], case.candidates, axis=1)
    coins = np.full((case.nodes, case.candidates + 1), 1 - 2.0**-53)
    coins[:, -1] = rng.random(case.nodes)
    return {
        "target": raw[0], "draft": raw[1], "tokens": tokens, "coins": coins, "target_norm": sums[0],
        "draft_norm": sums[1],
    }  # fmt: skip


def row_bytes(case: Case) -> int:
    """One read of both rows of every node."""
    return 2 * case.nodes * case.vocabulary * ITEM_BYTES[case.dtype]


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    """The whole benchmark as JSON. Ctrl-C keeps what was timed and sets ``interrupted``."""
    why = why_no_device()
    result: dict[str, Any] = {"doctor": report(), "gpu": why is None, "why_not": why, "interrupted": False}
    try:
        (_without_device if why else _on_device)(result, progress)
    except KeyboardInterrupt:
        result["interrupted"] = True
    return result


def _given(case: Case, host: dict[str, Any], xp: Any) -> Checked:
    """The inputs in ``xp``, in the form the rules take (bfloat16 as its bit patterns)."""
    put = {name: xp.asarray(value) for name, value in host.items()}
    return Checked(xp, policy=Policy(dtype=case.dtype), **put)


def _array_level(case: Case, given: Any) -> Any:
    return array.verify(
        case.rule, given.target, given.draft, given.tokens, given.coins, target_norm=given.target_norm,
        draft_norm=given.draft_norm, policy=given.policy,
    )  # fmt: skip


def _without_device(result: dict[str, Any], progress: Callable[[str], None]) -> None:
    """CPU times of one small case a rule, labelled as such."""
    result["would_run"] = [case._asdict() for case in cases()]
    timed = result["cpu_times_not_gpu_figures"] = []
    shim = _shim()
    for rule in RULES:
        case = Case(rule, VOCABULARIES[0], "float32", 4, 2)
        host = inputs(case, 1)
        given = _given(case, host, np)
        row = {**case._asdict(), "numpy_seconds": _best(partial(_array_level, case, given))}
        if shim is not None:
            plan = layout(case.vocabulary, case.dtype, rows=2, architecture=90)
            config = kernel_config(
                rule, 2, "proportional" if rule == "resispec" else "", "local", case.dtype, logits=False,
                resident=plan.resident, cluster=plan.cluster if plan.cluster > 1 else 0,
            )  # fmt: skip
            stored = shim.Case(**host)
            shim.build(config)
            row["kernel_on_cpu_seconds"] = _best(partial(shim.run, config, stored, plan))
        progress(f"CPU only, no GPU figure: {row}")
        timed.append(row)


def _shim() -> Any:
    """The fiber shim of a checkout, or None."""
    try:
        shim = importlib.import_module("tests.shim.build")
    except ImportError:
        return None
    return None if shim.unavailable() else shim


def _best(call: Callable[[], Any], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _on_device(result: dict[str, Any], progress: Callable[[str], None]) -> None:
    import cupy

    timed = result["timed"] = []
    left = result["not_run"] = [case._asdict() for case in cases()]
    result["engines"] = _engines()
    cache = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["l2CacheSize"]
    rate = result["copy_bytes_per_second"] = _copy_rate(cupy, 8 * cache)
    started = time.monotonic()
    for case in cases():
        if time.monotonic() - started > TIME_LIMIT:
            break
        copies = max(2, min(8, -(-L2_FACTOR * cache // row_bytes(case))))
        given = [_given(case, inputs(case, seed), cupy) for seed in range(copies)]
        kernel = _events(cupy, [partial(fused.verify, case.rule, g, "proportional", "local") for g in given])
        level = _events(cupy, [partial(_array_level, case, g) for g in given[:2]], repeats=2)
        row = {
            **case._asdict(), "seconds": kernel, "bytes_over_time": row_bytes(case) / kernel,
            "of_copy_rate": row_bytes(case) / kernel / rate, "array_level_ratio": level / kernel,
            "eager_torch_ratio": _eager(case, kernel), "inputs": copies,
        }  # fmt: skip
        progress(str(row))
        timed.append(row)
        del left[0]


def _copy_rate(cupy: Any, size: int) -> float:
    """Bytes read per second by a device-to-device copy of ``size`` bytes (it writes as many)."""
    source, sink = cupy.zeros(size, cupy.uint8), cupy.empty(size, cupy.uint8)
    return 2 * size / _events(cupy, [lambda: cupy.copyto(sink, source)])


def _events(cupy: Any, calls: list[Callable[[], Any]], repeats: int = REPEATS) -> float:
    """Median seconds of one call by CUDA events, after a warm-up of each, in rotation."""
    for call in calls:
        call()
    times = []
    for turn in range(repeats * len(calls)):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        calls[turn % len(calls)]()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) / 1e3)
    return statistics.median(times)


def _eager(case: Case, kernel: float) -> float | None:
    """Eager torch over the kernel, where torch has CUDA and the rule is written in it."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available() or case.rule == "shaped":
        return None
    host = inputs(case, 1)
    rows = [torch.from_numpy(host[name]).cuda() for name in ("target", "draft")]
    rows = [row if case.dtype == "float32" else row.view(torch.bfloat16) for row in rows]
    tokens, coins = torch.from_numpy(host["tokens"]), torch.from_numpy(host["coins"]).cuda()

    def call() -> None:
        eager.verify(case.rule, rows[0], rows[1], tokens, coins)
        torch.cuda.synchronize()

    call()
    return _best(call, 2) / kernel


def _engines() -> dict[str, str]:
    """Serving engines found here. Their kernels are not timed yet: none could be tried without a GPU."""
    found = {}
    for name in ("vllm", "sglang", "flashinfer", "tensorrt_llm"):
        if importlib.util.find_spec(name):
            found[name] = "installed, not timed"
    return found


def table(result: dict[str, Any]) -> list[str]:
    """A short table for a reader."""
    if not result["gpu"]:
        lines = [
            result["why_not"],
            f"Would run {len(result['would_run'])} cases; on this CPU (no GPU figures):",
        ]
        for row in result["cpu_times_not_gpu_figures"]:
            fibers = row.get("kernel_on_cpu_seconds")
            text = "not run (no checkout or no g++)" if fibers is None else f"{fibers:.3f} s"
            lines.append(
                f"  {row['rule']:<10} V={row['vocabulary']} {row['dtype']} nodes={row['nodes']} b={row['candidates']}: "
                f"NumPy array level {row['numpy_seconds']:.4f} s, kernel on CPU fibers {text}"
            )
        return lines
    rate = result.get("copy_bytes_per_second")
    lines = [] if rate is None else [f"copy rate {rate / 1e12:.2f} TB/s"]
    for row in result["timed"]:
        ratio = row["eager_torch_ratio"]
        lines.append(
            f"  {row['rule']:<10} V={row['vocabulary']:<7} {row['dtype']:<9} nodes={row['nodes']:<4} "
            f"b={row['candidates']}: {row['seconds'] * 1e6:9.1f} us, {row['of_copy_rate']:.2f} of copy rate, "
            f"array level {row['array_level_ratio']:.1f}x, eager torch {'-' if ratio is None else f'{ratio:.1f}x'}"
        )
    why = "interrupted" if result["interrupted"] else "time limit"
    return [*lines, f"{len(result['not_run'])} cases not run ({why})"] if result["not_run"] else lines


def main(arguments: list[str] | None = None) -> int:
    """Run, print the table, and write JSON where asked."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and (arguments[0] != "--json" or len(arguments) != 2):
        print("usage: python -m resispec_core.gpu.bench [--json FILE]", file=sys.stderr)
        return 2
    result = run(lambda line: print(line, file=sys.stderr))
    print("\n".join(table(result)))
    if arguments:
        Path(arguments[1]).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 130 if result["interrupted"] else 0


if __name__ == "__main__":
    sys.exit(main())

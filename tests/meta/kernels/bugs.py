"""Bugs planted in the kernels: text replacements, the configuration that shows them, and the build that must."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from resispec_core.gpu.config import KERNELS, KernelConfig


class Bug(NamedTuple):
    """``old`` occurs exactly once in ``file``; ``build``: plain, asan or tsan."""

    name: str
    file: str
    old: str
    new: str
    build: str
    config: KernelConfig = KernelConfig("specinfer")


STREAMED = KernelConfig("specinfer", resident=False)
CLUSTER = KernelConfig("specinfer", cluster=2)
PUBLISHED = KernelConfig("resispec", "proportional")
WATER = KernelConfig("resispec", "waterfill")
SHAPED = KernelConfig("shaped")
HALF_LOGITS = KernelConfig("specinfer", dtype="float16", logits=True)

BUGS = (
    Bug("reduction read before the barrier", "block.cuh",
        "    __syncthreads();\n    for (int k = 0; k < K; ++k) {\n        v[k] = b.shared->warp",
        "    for (int k = 0; k < K; ++k) {\n        v[k] = b.shared->warp", "tsan"),
    Bug("candidates read before the barrier", "stage_b.cu",
        "    __syncthreads();\n    Answer answer", "    Answer answer", "tsan", STREAMED),
    Bug("slices read before they are staged", "stage_b.cu",
        "        b.q = staged_draft;\n    }\n    __syncthreads();", "        b.q = staged_draft;\n    }", "tsan"),
    Bug("reduction buffers not alternated", "block.cuh",
        "    b.phase ^= 1;\n}\n\ntemplate <int K, class TERMS>", "}\n\ntemplate <int K, class TERMS>", "tsan"),
    Bug("draw totals read before the barrier", "block.cuh",
        "    __syncthreads();\n    i64 mass = 0", "    i64 mass = 0", "tsan"),
    Bug("block leaves the cluster early", "stage_b.cu",
        "    cluster_barrier();  // no block leaves", "    // no block leaves", "plain", CLUSTER),
    Bug("cluster sums read before the cluster barrier", "block.cuh",
        "    cluster_barrier();\n    for (int k = 0; k < K; ++k) {\n        v[k] = cluster_read",
        "    for (int k = 0; k < K; ++k) {\n        v[k] = cluster_read", "tsan", CLUSTER),
    Bug("barrier for one lane only", "block.cuh",
        "    __syncthreads();\n    i64 mass = 0", "    if (b.lane == 0) __syncthreads();\n    i64 mass = 0", "plain"),
    Bug("two barriers where threads differ", "block.cuh",
        "    __syncthreads();\n    i64 mass = 0",
        "    if (b.warp == 0) {\n        __syncthreads();\n    } else {\n        __syncthreads();\n    }\n"
        "    i64 mass = 0",
        "plain"),
    Bug("warps without work exit", "stage_b.cu",
        "    b.target = {call.inverse_temperature",
        "    if (b.begin >= b.end) return;\n    b.target = {call.inverse_temperature", "plain"),
    Bug("shuffle in a divergent branch", "block.cuh",
        "            if (b.lane >= offset) prefix += lower;\n        }",
        "            if (b.lane >= offset) prefix += lower;\n        }\n"
        "        if (b.lane < 16) prefix += 0 * __shfl_sync(RS_ALL, prefix, 0);", "plain"),
    Bug("vote on half a warp", "block.cuh", "__ballot_sync(RS_ALL,", "__ballot_sync(0xffffu,", "plain"),
    Bug("reduction tree starts a level late", "block.cuh",
        "    for (int k = 0; k < K; ++k)\n        for (int offset = RS_WARP / 2;",
        "    for (int k = 0; k < K; ++k)\n        for (int offset = RS_WARP / 4;", "plain"),
    Bug("last warp left out of the sum", "block.cuh",
        "for (int w = 1; w < b.warps; ++w) v[k]", "for (int w = 1; w < b.warps - 1; ++w) v[k]", "plain"),
    Bug("row sum runs one entry too far", "block.cuh",
        "    for (int i = b.begin + b.lane; i < b.end; i += RS_WARP) {\n        i64 t[K];",
        "    for (int i = b.begin + b.lane; i <= b.end; i += RS_WARP) {\n        i64 t[K];", "plain"),
    Bug("staging runs one entry too far", "stage_b.cu",
        "i < count; i += (int)blockDim.x) to[i]", "i <= count; i += (int)blockDim.x) to[i]", "asan"),
    Bug("vector loads of unaligned rows", "stage_b.cu",
        "const bool aligned = ((u64)from & 15ull) == 0ull &&", "const bool aligned = ", "asan"),
    Bug("every warp writes the answer", "stage_b.cu",
        "if (b.rank == 0 && threadIdx.x == 0)", "if (b.rank == 0 && b.lane == 0)", "tsan"),
    Bug("every block writes the answer", "stage_b.cu",
        "if (b.rank == 0 && threadIdx.x == 0)", "if (threadIdx.x == 0)", "tsan", CLUSTER),
    Bug("cluster sum reads its own block only", "block.cuh",
        "cluster_read(&b.shared->block[b.phase][k], r));", "cluster_read(&b.shared->block[b.phase][k], b.rank));",
        "plain", CLUSTER),
    Bug("cluster sum reads a block that is not there", "block.cuh",
        "for (int r = 1; r < b.ranks; ++r) v[k]", "for (int r = 1; r <= b.ranks; ++r) v[k]", "plain", CLUSTER),
    Bug("prefix of the lower blocks forgotten", "block.cuh",
        "    before += lower_blocks;\n", "    before += 0 * lower_blocks;\n", "plain", CLUSTER),
    Bug("prefix comparison not strict", "block.cuh",
        "before + prefix > target", "before + prefix >= target", "plain"),
    Bug("coin scaled by half", "block.cuh", "<< 11, (u64)mass", "<< 10, (u64)mass", "plain"),
    Bug("tiny terms count nothing", "common.cuh",
        "return whole > 1 ? whole : 1;", "return whole;", "plain"),
    Bug("acceptance not strict", "scalars.cuh",
        "    if (c.coin[0] * c.q[0] < c.p[0]) return 0;\n    for",
        "    if (c.coin[0] * c.q[0] <= c.p[0]) return 0;\n    for",
        "plain"),
    Bug("residual of the wrong stage", "stage_b.cu",
        "const double further = scale + mass;", "const double further = scale + 1.0;", "plain"),
    Bug("first rejected token left in the residual", "stage_b.cu",
        "for (int j = 0; j <= last; ++j) is = is ||", "for (int j = 1; j <= last; ++j) is = is ||", "plain", PUBLISHED),
    Bug("redistribution forgets the budget's scale", "stage_b.cu",
        "smaller(r.held[i] * missing / room, 1.0)", "smaller(missing / room, 1.0)", "plain", PUBLISHED),
    Bug("water level never raised", "level.cuh",
        "if (!over && deficit <= vocabulary && deficit", "if (!over && deficit <= goal && deficit", "plain", WATER),
    Bug("full level not noticed", "level.cuh",
        "at_full = true;\n            height = most", "high = most", "plain", WATER),
    Bug("horizon search stops at any root", "stage_b.cu",
        "if (end <= near) low = horizon;", "if (end <= near) return horizon;", "plain", SHAPED),
    Bug("half exponent off by one", "common.cuh", "(u64)(exponent + 1008u)", "(u64)(exponent + 1007u)", "plain",
        HALF_LOGITS),
    Bug("exp with a wrong coefficient", "common.cuh", "v = v * r + 0.5;", "v = v * r + 0.25;", "plain", HALF_LOGITS),
    Bug("a negative entry passes for a probability", "common.cuh",
        "    return x >= 0.0;\n", "    return x == x;\n", "plain"),
    Bug("resampling coin not loaded", "stage_b.cu", "if (t <= n) b.shared->c.coin[t]", "if (t < n) b.shared->c.coin[t]",
        "plain"),
    Bug("threads past the last node", "stage_a.cu", "    if (node >= call.nodes) return;\n", "", "asan"),
    Bug("list counter without an atomic", "stage_a.cu",
        "call.list[atomicAdd(call.listed, 1)]", "call.list[(*call.listed)++]", "tsan"),
    Bug("id checked against the wrong end", "stage_a.cu",
        "c.id[i] >= call.vocabulary", "c.id[i] > call.vocabulary", "plain"),
)  # fmt: skip


def plant(bug: Bug, folder: Path) -> Path:
    """A copy of the kernels with one bug in it."""
    for source in KERNELS.iterdir():
        (folder / source.name).write_text(source.read_text())
    text = (folder / bug.file).read_text()
    assert text.count(bug.old) == 1, f"{bug.name}: the text to replace occurs {text.count(bug.old)} times"
    (folder / bug.file).write_text(text.replace(bug.old, bug.new))
    return folder

"""The fault museum: published faults of speculative sampling, each rebuilt small, each caught by an engine.

Every exhibit is our own few lines modelled on a public report; ``url`` is the report. ``faulty`` is the law that the
faulty code has (where the report's arithmetic gives one); controls are exact rules that were once called biased.
``python tests/meta/faults/write_table.py`` writes the table in docs/faults.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from samplers import pick, ratio, residual, sampler, softmax

from resispec_core.audit import Verdict, contract
from resispec_core.audit.replay import replay_step, replay_verify
from resispec_core.audit.tape import tape_audit


@dataclass
class Seen:
    """What an engine said about one exhibit."""

    engine: str
    flagged: bool
    detail: str
    cost: str
    law: list[float] | None = None
    size: float | None = None
    notes: list[str] = field(default_factory=list)


@dataclass
class Exhibit:
    """One fault (or control)."""

    name: str
    title: str
    url: str
    kind: str
    look: Callable[[], Seen]
    faulty: list[float] | None = None
    tolerance: float = 1e-4
    """Of the stated law: half a unit of its last printed digit, with room for its rounding."""
    control: bool = False


EXHIBITS: list[Exhibit] = []


def exhibit(name, title, url, kind, **options):
    def add(look):
        EXHIBITS.append(Exhibit(name, title, f"https://github.com/{url}", kind, look, **options))
        return look

    return add


def replayed(sample, p, horizon=1, rows=None):
    """Replay of ``sample(rng) -> tokens`` against a target with the same law p at every position (or ``rows``)."""
    rows = [p] * horizon if rows is None else rows

    def target(prefix):
        return np.array(rows[min(len(prefix), len(rows) - 1)], dtype=float)

    report = replay_step(
        lambda target, draft, prefix, rng: sample(rng),
        target,
        target,
        horizon=horizon,
        extend="target",
        numbers="float64",
    )
    size = len(rows[0])
    keys = list(np.ndindex(*[size] * horizon))
    return Seen(
        "replay",
        report.verdict is Verdict.BIASED,
        str(report),
        f"{report.paths} paths",
        [float(report.law.get(key, 0)) for key in keys],
        float(report.total_variation),
        report.notes,
    )


def checked(finding):
    """A contract finding."""
    return Seen("contract", not finding.holds, str(finding), "1 check")


def taped(kernel, p, q, **options):
    """A tape measurement."""
    report = tape_audit(kernel, p, q, **options)
    return Seen(
        "tape",
        report.verdict is Verdict.BIASED,
        str(report),
        f"{report.calls} calls",
        report.law.tolist(),
        report.total_variation,
    )


# draft law mismatch


@exhibit(
    "HF-32867", "assistant drafts greedily, scored as if sampled", "huggingface/transformers/issues/32867",
    "draft law", faulty=[0.8333, 0, 0.1667],
)  # fmt: skip
def _():
    p, q = [0.5, 0.3, 0.2], [0.6, 0.3, 0.1]
    return replayed(sampler(p, q, draft=lambda rng: 0), p)


@exhibit(
    "RTP-1311",
    "top-1 drafter reports the full softmax",
    "alibaba/rtp-llm/pull/1311",
    "draft law",
    faulty=[0.8, 0.2, 0, 0],
)
def _():
    p, q = [0.7, 0.3, 0, 0], [0.3, 0.2, 0.1, 0.4]
    return replayed(sampler(p, q, draft=lambda rng: int(np.argmax(q))), p)


@exhibit(
    "HF-47932", "raw logits returned for tokens drawn after top-k", "huggingface/transformers/issues/47932",
    "draft law", faulty=[0.5714, 0.4286, 0, 0],
)  # fmt: skip
def _():
    p, q = [0.5, 0.5, 0, 0], [0.4, 0.3, 0.2, 0.1]
    return replayed(sampler(p, q, draft=lambda rng: pick([0.4, 0.3, 0, 0], rng)), p)


@exhibit(
    "DSPEC-31", "drawn in bfloat16, verified in float32", "deepseek-ai/DeepSpec/issues/31", "draft law",
    faulty=[0.1966, 0.3039, 0.4996], tolerance=2e-4,
)  # fmt: skip
def _():
    p, q = [0.2, 0.3, 0.5], softmax([8.03, 8, 7])
    return replayed(sampler(p, q, draft=lambda rng: pick(softmax([8, 8, 7]), rng)), p)


@exhibit(
    "VLLM-37639", "draft logits of later steps are stale", "vllm-project/vllm/pull/37639", "draft law",
    faulty=[0.7833, 0.15, 0.0667],
)  # fmt: skip
def _():
    p = [0.5, 0.3, 0.2]
    return replayed(sampler(p, [0.1, 0.6, 0.3], draft=lambda rng: pick([0.6, 0.3, 0.1], rng)), p)


# draw mode


@exhibit(
    "APPLE-6", "beam candidate judged with the draft ratio", "apple/ml-recurrent-drafter/issues/6", "draw mode",
    faulty=[0, 1],
)  # fmt: skip
def _():
    return replayed(sampler([0.5, 0.5], [0.6, 0.4], draft=lambda rng: 1), [0.5, 0.5])


@exhibit(
    "LCPP-5625a", "ranked tree candidates tested with p/q", "ggml-org/llama.cpp/pull/5625", "draw mode",
    faulty=[0.3, 0.5, 0.2],
)  # fmt: skip
def _():
    p, q = np.array([0.3, 0.3, 0.4]), np.array([0.5, 0.3, 0.2])

    def sample(rng):
        owed = p
        for x in [[0, 1], [1, 0]][rng.integers(2)]:
            if rng.random() < ratio(owed, q)[x]:
                return [x]
            owed = residual(owed, q)
        return [pick(owed, rng)]

    return replayed(sample, p)


@exhibit(
    "EAGLE-74", "which q belongs to the second candidate (a trap, not a shown defect)", "SafeAILab/EAGLE/issues/74",
    "draw mode", faulty=[0.1, 0.2, 0.3434, 0.3566],
)  # fmt: skip
def _():
    p, q = [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]

    def verify(target, draft, candidates, rng):
        for x in candidates:
            if rng.random() < ratio(target, draft)[x]:
                return x
            target = residual(target, draft)
        return pick(target, rng)

    report = replay_verify(verify, p, q, 2, draw="without-replacement", numbers="float64")
    law = [float(report.law.get((x,), 0)) for x in range(4)]
    size = float(report.total_variation)
    return Seen("replay", report.verdict is Verdict.BIASED, str(report), f"{report.paths} paths", law, size)


# target law mismatch


def exact_for(wrong, right, q=None):
    """A right rule on a wrong target row."""
    return replayed(sampler(wrong, [1 / len(wrong)] * len(wrong) if q is None else q), right)


@exhibit(
    "VLLM-9834",
    "target scored with default parameters",
    "vllm-project/vllm/issues/9834",
    "target law",
    faulty=[0.6, 0.3, 0.1],
)
def _():
    return exact_for([0.6, 0.3, 0.1], softmax(np.log([0.6, 0.3, 0.1]) / 0.5))


@exhibit(
    "MLC-2940",
    "top-p not set in batch verification",
    "mlc-ai/mlc-llm/pull/2940",
    "target law",
    faulty=[0.5, 0.3, 0.15, 0.05],
)
def _():
    return exact_for([0.5, 0.3, 0.15, 0.05], [0.625, 0.375, 0, 0], q=[0.625, 0.375, 0, 0])


@exhibit(
    "SGL-10617",
    "logit bias skipped in verification",
    "sgl-project/sglang/issues/10617",
    "target law",
    faulty=[0.5, 0.2, 0.3],
)
def _():
    return exact_for([0.5, 0.2, 0.3], [5 / 7, 2 / 7, 0])


@exhibit(
    "VLLM-42744",
    "min-p reaches only the bonus token",
    "vllm-project/vllm/issues/42744",
    "target law",
    faulty=[0.6, 0.3, 0.1],
)
def _():
    return exact_for([0.6, 0.3, 0.1], [2 / 3, 1 / 3, 0])


@exhibit(
    "SGL-33643",
    "penalty counts see the last accepted token only",
    "sgl-project/sglang/pull/33643",
    "target law",
)
def _():
    def commit(counts, tokens):
        counts = np.array(counts)
        counts[tokens[-1]] += 1
        return counts

    return checked(contract.state_after_step(commit, [0, 0], [0, 1, 0, 1]))


@exhibit("VLLM-44297", "grammar mask missing on the bonus row", "vllm-project/vllm/pull/44297", "target law")
def _():
    raw = np.log([0.4, 0.3, 0.3])
    masked = np.where([True, True, False], raw, -np.inf)
    used = [softmax(raw), softmax(masked), softmax(raw)]
    return checked(contract.rows_filtered([raw, masked, masked], used))


@exhibit(
    "MISTRAL-2424",
    "the filtered law's argmax is returned",
    "EricLBuehler/mistral.rs/pull/2424",
    "target law",
    faulty=[1, 0, 0],
)
def _():
    return replayed(lambda rng: [int(np.argmax([0.5, 0.3, 0.2]))], [0.5, 0.3, 0.2])


# accept rule

P, Q = [0.5, 0.3, 0.2], [0.7, 0.2, 0.1]


@exhibit(
    "RTP-1295", "two chances to accept", "alibaba/rtp-llm/pull/1295", "accept rule", faulty=[0.6, 0.25, 0.15]
)
def _():
    return replayed(sampler(P, Q, accept=1 - (1 - np.array(P)) * (1 - ratio(np.array(P), Q))), P)


@exhibit(
    "ASC-13730",
    "uniform replaced by the constant 0",
    "vllm-project/vllm-ascend/issues/13730",
    "accept rule",
    faulty=[0.7, 0.2, 0.1],
)
def _():
    return replayed(sampler(P, Q, accept=[1, 1, 1]), P)


@exhibit(
    "SGL-35771",
    "inclusive comparison accepts p = 0 at coin 0",
    "sgl-project/sglang/issues/35771",
    "accept rule",
)
def _():
    def kernel(p, q, candidates, uniforms):
        total = 0.0
        for x in candidates:
            total += p[x]
            if uniforms[0] <= total:
                return int(x)
            p[x] = 0
        return int(np.argmax(np.cumsum(p / p.sum()) > uniforms[1]))

    return taped(kernel, [0, 1, 0], [0.1, 0.2, 0.7], candidates=2, draw="top-k", coins=2)


@exhibit(
    "LATT-243", "first draft never compared", "ohdearquant/lattice/issues/243", "accept rule", faulty=[1, 0]
)
def _():
    return replayed(sampler([0.1, 0.9], [1, 0], accept=[1, 1]), [0.1, 0.9])


@exhibit(
    "VLLM-5131",
    "typical acceptance (lossy by design)",
    "vllm-project/vllm/pull/5131",
    "lossy",
    faulty=[0.2, 0.5, 0.3],
)
def _():
    p = np.array([0.6, 0.3, 0.1])
    entropy = -float((p * np.log(p)).sum())

    def sample(rng):
        x = pick([0.2, 0.5, 0.3], rng)
        return [x if p[x] > min(0.09, 0.3 * math.exp(-entropy)) else int(np.argmax(p))]

    return replayed(sample, p)


@exhibit("SPECO-19", "training accepts lossy settings silently", "verl-project/verl-SpeCo/pull/19", "lossy")
def _():
    return checked(contract.refuses(lambda: {"acceptance": "typical", "threshold": 0.09}, "a lossy setting"))


# residual


@exhibit(
    "HF-28508",
    "residual through a softmax",
    "huggingface/transformers/pull/28508",
    "residual",
    faulty=[0.5623, 0.2689, 0.1689],
)
def _():
    return replayed(sampler(P, Q, owed=softmax(np.maximum(np.array(P) - Q, 0))), P)


@exhibit(
    "SPECRL-14",
    "redrawn from the plain target",
    "ShopeeLLM/Spec-RL/issues/14",
    "residual",
    faulty=[0.6, 0.26, 0.14],
)
def _():
    return replayed(sampler(P, Q, owed=P), P)


@exhibit(
    "ASC-2881",
    "target zeroed in place before the test",
    "vllm-project/vllm-ascend/pull/2881",
    "residual",
    faulty=[0, 0.6, 0.4],
)
def _():
    def verify(target, draft, candidates, rng):
        x = candidates[0]
        owed = target
        owed[x] = 0
        return x if rng.random() < target[x] else pick(owed, rng)

    report = replay_verify(verify, P, [1.0, 0, 0], draw="top-k", numbers="float64")
    law = [float(report.law.get((x,), 0)) for x in range(3)]
    size = float(report.total_variation)
    return Seen(
        "replay",
        report.verdict is Verdict.BIASED,
        str(report),
        f"{report.paths} paths",
        law,
        size,
        report.notes,
    )


@exhibit("VLLM-46665", "log(1 − ratio) loses small terms", "vllm-project/vllm/pull/46665", "residual")
def _():
    found = float(np.log(np.float32(1) - np.float32(1e-9)))
    return checked(contract.accurate(found, math.log1p(-1e-9), 1e-6, "the log residual"))


# degenerate laws


@exhibit("JM-5", "0/0 when draft and target agree", "jaymody/speculative-sampling/issues/5", "degenerate")
def _():
    def owed():
        with np.errstate(invalid="ignore"):
            return residual(np.array([1.0, 0, 0]), np.array([1.0, 0, 0]))

    return checked(contract.returns_law(owed, "the residual of equal laws"))


@exhibit("MTPLX-82", "NaN total slips past '<= 0'", "youssofal/MTPLX/issues/82", "degenerate")
def _():
    def normalise():
        row = np.array([np.nan, 0.5, 0.5])
        total = row.sum()
        return np.ones(3) / 3 if total <= 0 else row / total

    return checked(contract.returns_law(normalise, "the normalised row"))


@exhibit(
    "VLLM-21876",
    "NaN row returns an index outside the vocabulary",
    "vllm-project/vllm/pull/21876",
    "degenerate",
)
def _():
    def kernel():
        padded = np.array([np.nan] * 3 + [-np.inf])
        best, index = -np.inf, 3
        for token, score in enumerate(padded):
            if score > best:
                best, index = score, token
        return index

    return checked(contract.refuses(kernel, "a target row of NaN"))


@exhibit(
    "COLI-369", "one NaN or +inf logit emits token 0 for ever", "JustVugg/colibri/issues/369", "degenerate"
)
def _():
    def decode():
        with np.errstate(invalid="ignore"):
            row = softmax([0, 1, np.inf, 2])
        return next((token for token in range(4) if row[token] > 0.5), 0)

    return checked(contract.refuses(decode, "an infinite logit"))


# shared randomness and seeds


@exhibit(
    "VLLM-54282", "draft and correction share Gumbel noise", "vllm-project/vllm/pull/54282", "shared randomness",
    faulty=[0.1, 0.413, 0.486], tolerance=1.5e-3,
)  # fmt: skip
def _():
    p, q = np.array([0.1, 0.45, 0.45]), np.array([0.5, 0.4, 0.1])

    def sample(rng):
        noise = rng.gumbel(size=3)
        x = int(np.argmax(np.log(q) + noise))
        if rng.random() < ratio(p, q)[x]:
            return [x]
        with np.errstate(divide="ignore"):
            return [int(np.argmax(np.log(residual(p, q)) + noise))]

    return replayed(sample, p)


@exhibit(
    "FI-424",
    "one uniform for accept and correction",
    "flashinfer-ai/flashinfer/pull/424",
    "shared randomness",
    faulty=[0.3, 0.25, 0.45],
)
def _():
    p, q = np.array([0.3, 0.4, 0.3]), np.array([0.7, 0.2, 0.1])

    def sample(rng):
        x, coin = pick(q, rng), rng.random()
        if coin < ratio(p, q)[x]:
            return [x]
        return [int(np.searchsorted(np.cumsum(residual(p, q)), coin, side="right"))]

    return replayed(sample, p)


@exhibit(
    "FD-5568",
    "all tokens of a step share a seed",
    "PaddlePaddle/FastDeploy/pull/5568",
    "shared randomness",
    faulty=[0.5, 0, 0, 0.5],
)
def _():
    def sample(rng):
        coin = rng.random()
        return [int(coin >= 0.5), int(coin >= 0.5)]

    return replayed(sample, [0.5, 0.5], horizon=2)


@exhibit("VLLM-6038", "per-request seed ignored", "vllm-project/vllm/issues/6038", "seeds")
def _():
    shared = np.random.default_rng(0)
    return checked(
        contract.seeds_per_row(lambda seeds: np.array([shared.integers(2, size=32) for _ in seeds]))
    )


@exhibit(
    "VLLM-10863", "unseeded rows lose their noise in a mixed batch", "vllm-project/vllm/pull/10863", "seeds"
)
def _():
    def sample(seeds):
        noise = np.zeros((len(seeds), 32, 3))
        for row, seed in enumerate(seeds):
            if seed is not None:
                noise[row] = np.random.default_rng(seed).gumbel(size=(32, 3))
        rows = [row for row, seed in enumerate(seeds) if seed is None]
        noise[rows][:] = np.random.default_rng(1).gumbel(size=(len(rows), 32, 3))  # written into a copy
        return np.argmax(np.log([0.5, 0.3, 0.2]) + noise, axis=-1)

    return checked(contract.seeds_per_row(sample))


# rows and positions


@exhibit(
    "HF-28166",
    "wrong index in the compared probabilities",
    "huggingface/transformers/pull/28166",
    "rows",
    faulty=[0.1, 0.9],
)
def _():
    second = [0.1, 0.9]
    return replayed(sampler(second, second), [0.9, 0.1])


@exhibit(
    "VLLM-47066",
    "padding overwrites another request's draft law",
    "vllm-project/vllm/pull/47066",
    "rows",
    faulty=[0.875, 0.125],
)
def _():
    return replayed(sampler([0.5, 0.5], [0.2, 0.8], draft=lambda rng: pick([0.8, 0.2], rng)), [0.5, 0.5])


@exhibit(
    "LUCID-3", "rejected drafts stay in the sequence", "lucidrains/speculative-decoding/issues/3", "rows"
)
def _():
    def sample(rng):
        drafted = [pick([1, 0], rng) for _ in range(3)]
        return [*drafted, 1]  # p(0) = 0: all rejected, and kept

    return replayed(sample, [0, 1], horizon=2)


def chain(count_passes):
    """A chain of three drafted tokens over position-dependent rows; ``count_passes(mask)`` says how many to keep."""
    rows = [np.array(row) for row in ([0.1, 0.3, 0.6], [0.5, 0.2, 0.3], [0.25, 0.5, 0.25], [0.2, 0.2, 0.6])]
    q = np.array([0.5, 0.3, 0.2])

    def sample(rng):
        drafted = [pick(q, rng) for _ in range(3)]
        passed = [bool(rng.random() < ratio(p, q)[x]) for p, x in zip(rows, drafted, strict=False)]
        kept = count_passes(passed)
        last = rows[kept] if kept == 3 else residual(rows[kept], q)
        return [*drafted[:kept], pick(last, rng)]

    return sample, rows


@exhibit("VLLM-2658", "accepted count sums past the first rejection", "vllm-project/vllm/pull/2658", "rows")
def _():
    sample, rows = chain(sum)
    return replayed(sample, None, horizon=3, rows=rows)


# vocabularies


@exhibit(
    "ASC-16166", "reduced draft vocabulary not mapped", "vllm-project/vllm-ascend/pull/16166", "vocabulary",
    faulty=[0.3, 0, 0, 0.38, 0.04, 0.28],
)  # fmt: skip
def _():
    p, ids, small = [0.3, 0.1, 0.1, 0.2, 0.1, 0.2], [0, 3, 5], [0.5, 0.3, 0.2]
    return replayed(sampler(p, [*small, 0, 0, 0], draft=lambda rng: ids[pick(small, rng)]), p)


@exhibit(
    "RTP-1311m",
    "map skipped because the sizes are equal",
    "alibaba/rtp-llm/pull/1311",
    "vocabulary",
    faulty=[0.15, 0.1, 0.75],
)
def _():
    p, ids, small = [0.3, 0.3, 0.4], [2, 0, 1], [0.6, 0.3, 0.1]
    return replayed(sampler(p, small, draft=lambda rng: ids[pick(small, rng)]), p)


@exhibit(
    "VLLM-13175",
    "ids from the padded part of the output layer",
    "vllm-project/vllm/issues/13175",
    "vocabulary",
    faulty=[0.4, 0.3, 0.2, 0.1],
)
def _():
    return exact_for([0.4, 0.3, 0.2, 0.1], [4 / 9, 3 / 9, 2 / 9, 0])


# sampling primitives


@exhibit("PT-48841", "multinomial returns items of weight zero", "pytorch/pytorch/issues/48841", "primitive")
def _():
    def kernel(p, q, candidates, uniforms):
        return int(np.searchsorted(np.cumsum(p), uniforms[0]))

    return taped(kernel, [0, 1], [0.5, 0.5], coins=1)


@exhibit(
    "PT-50034",
    "draws without replacement fill up with zero weights",
    "pytorch/pytorch/issues/50034",
    "primitive",
)
def _():
    torch = __import__("torch")
    return replayed(lambda rng: torch.multinomial(torch.tensor([0.5, 0.5, 0]), 3)[2:], [0.5, 0.5, 0])


@exhibit(
    "PT-192577",
    "exponential noise of 0 makes 0/0 win the argmax",
    "pytorch/pytorch/issues/192577",
    "primitive",
)
def _():
    def kernel(p, q, candidates, uniforms):
        with np.errstate(divide="ignore", invalid="ignore"):
            return int(np.argmax(p / -np.log1p(-uniforms)))

    return taped(kernel, [0, 1], [0.5, 0.5], coins=2)


@exhibit("ENERGON-260", "CDF search takes the lower bound", "NVIDIA/Megatron-Energon/pull/260", "primitive")
def _():
    def kernel(p, q, candidates, uniforms):
        return int(np.searchsorted(np.cumsum(p), uniforms[0]))

    return taped(kernel, [0, 0.3, 0.7], [0.4, 0.3, 0.3], coins=1)


@exhibit(
    "FI-3774",
    "ties at the top-k edge let extra tokens in",
    "flashinfer-ai/flashinfer/pull/3774",
    "primitive",
    faulty=[0.5, 0.25, 0.25],
)
def _():
    raw = np.array([0.5, 0.25, 0.25])
    return exact_for(np.where(raw >= np.sort(raw)[-2], raw, 0), [2 / 3, 1 / 3, 0])


@exhibit("MEG-7182", "cumulative sum in bfloat16 stalls", "NVIDIA/Megatron-LM/pull/7182", "primitive")
def _():
    torch = __import__("torch")
    total = torch.tensor(0.0, dtype=torch.bfloat16)
    for _ in range(1000):
        total = total + torch.tensor(0.001, dtype=torch.bfloat16)
    return checked(contract.accurate(float(total), 1.0, 1e-3, "the end of the CDF"))


@exhibit("VLLM-51367", "coarse uniforms cut the Gumbel tail", "vllm-project/vllm/pull/51367", "primitive")
def _():
    size, grid = 129280, 2**24
    noise = np.arange(1, grid) / grid  # u = 0 gives −∞ and never wins
    head = 18 - np.log(-np.log(noise[::64]))
    # P(some tail token has noise above the head's): the tail's best of size − 1 draws, on the same grid.
    needed = np.exp(-np.exp(-head))
    below = np.minimum(np.floor(needed * grid), grid - 1) + 1
    found = float(np.mean(1 - (below / grid) ** (size - 1)))
    exact = (size - 1) / (size - 1 + math.exp(18))
    return checked(contract.accurate(found, exact, 0.01, "the mass of the tail"))


# controls


@exhibit(
    "MLXSWIFT-459",
    "accept if equal to a target draw",
    "ml-explore/mlx-swift-lm/pull/459",
    "control",
    control=True,
)
def _():
    p, q = [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]

    def sample(rng):
        x, y = pick(q, rng), pick(p, rng)
        return [x if x == y else y]

    return replayed(sample, p)


@exhibit("MLXCEL-992a", "sample, then match", "lablup/mlxcel/pull/992", "control", control=True)
def _():
    p, q = [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]

    def sample(rng):
        y = pick(p, rng)
        return [y, pick(p, rng)] if pick(q, rng) == y else [y]

    return replayed(sample, p, horizon=2)


@exhibit(
    "MLXCEL-992b",
    "compare with the target's argmax and emit it",
    "lablup/mlxcel/pull/992",
    "accept rule",
    faulty=[0, 1, 0],
)
def _():
    return replayed(
        lambda rng: [1 if pick([0.6, 0.3, 0.1], rng) == 1 else int(np.argmax([0.2, 0.5, 0.3]))],
        [0.2, 0.5, 0.3],
    )


@exhibit(
    "EAGLE-221", "top-k tree with a target-only test", "SafeAILab/EAGLE/issues/221", "control", control=True
)
def _():
    def verify(target, draft, candidates, rng):
        for x in candidates:
            if rng.random() < target[x]:
                return x
            target[x] = 0 * target[x]
            target = target / target.sum()
        return pick(target, rng)

    report = replay_verify(verify, [0.15, 0.5, 0.05, 0.3], [0.3, 0.4, 0.2, 0.1], 2, draw="top-k")
    return Seen("replay", report.exit_code != 0, str(report), f"{report.paths} paths", notes=report.notes)


@exhibit(
    "MCSD-5",
    "the final draw uses p, which was updated in place",
    "NJUNLP/MCSD/issues/5",
    "control",
    control=True,
)
def _():
    def verify(target, draft, candidates, rng):
        for x in candidates:
            if rng.random() < min(1, target[x] / draft[x]):
                return x
            target[:] = residual(target, draft)
            draft[x] = 0 * draft[x]
            draft[:] = draft / draft.sum()
        return pick(target, rng)

    report = replay_verify(verify, [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], 2, draw="without-replacement")
    return Seen("replay", report.exit_code != 0, str(report), f"{report.paths} paths", notes=report.notes)


@exhibit(
    "FEIF-29",
    "which prefix target row n conditions on",
    "feifeibear/LLMSpeculativeSampling/issues/29",
    "control",
    control=True,
)
def _():
    table = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])
    return checked(
        contract.causal_rows(lambda drafts: np.array([table[token] for token in [0, *drafts]]), [1, 2], 3)
    )


NOT_REPRODUCIBLE = {
    "LCPP-27972": "reported log-probabilities, not the law of the tokens",
    "MLXLM-1109": "state of a recurrent model, not the rule",
}
"""Cases of the collection that are outside what a verifier's law can show."""

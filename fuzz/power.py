"""What each engine of the suite sees, beside five decision rules used to test samplers today: all in one run.

``python -m fuzz.power`` prints docs/power.md (``--write`` puts it there; ten seconds of CPU). Seeds are fixed; only
the column of seconds changes from run to run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from resispec_core import audit, rules
from resispec_core.arrays import divide
from resispec_core.audit import Verdict
from resispec_core.audit.replay import replay_verify
from resispec_core.audit.sequential import log_e_values
from resispec_core.audit.tape import tape_audit

PAGE = Path(__file__).parents[1] / "docs" / "power.md"
DRAWS = 100_000
"""Samples that each of today's rules gets."""
RUNS, NULL_RUNS = 200, 1000
DETECTED = 0.9
"""Share of runs in which a bias counts as seen."""
LEVEL = 0.01
"""α of both χ² tests and of the sequential test."""
SEQUENTIAL_DRAWS = 10**8
FACTOR = 20.0
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
SMALLEST = 18
"""ε down to 10^−18 are tried."""
STEPS = (10, 100, 1_000, 10_000, 100_000)


# The fault: a single-draft verifier that accepts with min(1, (1 + ε)·p/q) and then resamples from (p − q)+.


def pair(size: int, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """A target and a draft law of moderate overlap over ``size`` tokens."""
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.standard_normal(size)
    rows = logits, logits + 0.7 * rng.standard_normal(size)
    p, q = (np.exp(row) / np.exp(row).sum() for row in rows)
    return p, q


def lenient_law(p: np.ndarray, q: np.ndarray, epsilon: float) -> np.ndarray:
    """The law that the lenient verifier has, in float64."""
    accepted = np.minimum(q, (1 + epsilon) * p)
    owed = np.maximum(p - q, 0)
    return accepted + (1 - accepted.sum()) * owed / owed.sum()


def lenient_rule(epsilon: Fraction) -> rules.Rule:
    """The same as a rule, for the white-box audit."""

    class Lenient(rules.SpecInfer):
        name = "lenient"

        def accept(self, stage: Any) -> Any:
            return np.minimum(divide(stage.residual * (1 + epsilon), stage.draft), 1)

    return Lenient()


def lenient_sampler(epsilon: Any) -> Callable[..., Any]:
    """The same as somebody's function, for the replay."""

    def verify(target: Any, draft: Any, candidates: Any, rng: Any) -> Any:
        (x,) = candidates
        if rng.random() * draft[x] < (1 + epsilon) * target[x]:
            return x
        owed = np.maximum(target - draft, 0)
        return rng.choice(len(target), p=owed / owed.sum())

    return verify


def lenient_kernel(epsilon: float) -> Callable[..., Any]:
    """The same as a function of its uniforms, for the tape."""

    def kernel(target: Any, draft: Any, candidates: Any, uniforms: Any) -> int:
        (x,) = candidates
        if uniforms[0] * draft[x] < (1 + epsilon) * target[x]:
            return int(x)
        cumulative = np.cumsum(np.maximum(target - draft, 0))
        return int(np.searchsorted(cumulative, float(uniforms[1]) * cumulative[-1], side="right"))

    return kernel


SMALL = ("1/10", "2/10", "3/10", "4/10"), ("4/10", "3/10", "2/10", "1/10")
"""The pair on which the exact engines run, in rationals."""


# Today's rules. Each takes laws of shape (V,) and says for ``runs`` runs whether the sampler is called wrong.

Rule = Callable[[np.ndarray, np.ndarray, int, np.random.Generator], np.ndarray]


def ratio_20(law: np.ndarray, target: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Wrong unless, from 10 to 100,000 draws, the distance to the target falls 20 × more than that to random laws."""
    references = rng.random((100, target.size))
    references /= references.sum(axis=1, keepdims=True)
    counts, before, to_target, to_random = np.zeros((runs, target.size)), 0, [], []
    for place in STEPS:
        counts += rng.multinomial(place - before, law, size=runs)
        before = place
        found = counts / place
        to_target.append(np.linalg.norm(found - target, axis=1))
        to_random.append(np.mean([np.linalg.norm(found - row, axis=1) for row in references], axis=0))
    return to_target[0] / to_target[-1] <= FACTOR * (to_random[0] / to_random[-1])


def chi_square(law: np.ndarray, target: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Wrong where the χ² test rejects at the level of 0.01."""
    counts = rng.multinomial(DRAWS, law, size=runs)
    live = target > 0
    statistic = ((counts - DRAWS * target)[:, live] ** 2 / (DRAWS * target[live])).sum(axis=1)
    impossible = counts[:, ~live].sum(axis=1) > 0
    return impossible | (stats.chi2.sf(statistic, max(int(live.sum()) - 1, 1)) < LEVEL)


def kl_difference(law: np.ndarray, target: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Wrong where KL(frequencies ‖ target) is above 0.01."""
    found = rng.multinomial(DRAWS, law, size=runs) / DRAWS
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(found > 0, found * np.log(found / target), 0).sum(axis=1) > 0.01


def total_variation(law: np.ndarray, target: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Wrong where the total variation of the frequencies is above 0.02."""
    found = rng.multinomial(DRAWS, law, size=runs) / DRAWS
    return np.abs(found - target).sum(axis=1) / 2 > 0.02


@dataclass(frozen=True)
class Today:
    """A decision rule and the vocabulary that it is used at."""

    name: str
    size: int
    decide: Rule


TODAY = (
    Today("ratio 20 ×", 30, ratio_20),
    Today("χ² at V = 4096", 4096, chi_square),
    Today("χ² at V = 16", 16, chi_square),
    Today("KL difference 0.01", 16, kl_difference),
    Today("TV 0.02", 16, total_variation),
)


def rate(rule: Today, epsilon: float, runs: int, seed: int) -> float:
    """How often ``rule`` calls the lenient verifier wrong (ε = 0: the false alarms)."""
    p, q = pair(rule.size)
    return float(rule.decide(lenient_law(p, q, epsilon), p, runs, np.random.default_rng(seed)).mean())


def tv(law: np.ndarray, target: np.ndarray) -> float:
    return float(np.abs(law - target).sum()) / 2


def sequential_draws(law: np.ndarray, target: np.ndarray, runs: int, seed: int) -> float:
    """Median number of draws after which the e-process refutes ``law`` at LEVEL; inf past SEQUENTIAL_DRAWS."""
    rng, counts = np.random.default_rng(seed), np.zeros((runs, target.size), dtype=np.int64)
    stop, place = np.full(runs, np.inf), 0
    while place < SEQUENTIAL_DRAWS and np.isinf(stop).mean() > 0.4:
        more = max(1, place // 20) if place else 4
        counts += rng.multinomial(more, law, size=runs)
        place += more
        hit = log_e_values(counts, target) >= -np.log(LEVEL)
        stop = np.where(np.isinf(stop) & hit, place, stop)
    return float(np.median(stop))


# The exact engines.


def white_box(epsilon: Fraction) -> Any:
    return audit(lenient_rule(epsilon), [Fraction(x) for x in SMALL[0]], [Fraction(x) for x in SMALL[1]], 1)


def replay(epsilon: Any, numbers: str) -> Any:
    p, q = ([Fraction(x) if numbers == "rational" else float(Fraction(x)) for x in row] for row in SMALL)
    return replay_verify(lenient_sampler(epsilon), p, q, 1, numbers=numbers, monte_carlo=0)  # type: ignore[arg-type]


def tape(epsilon: float) -> Any:
    p, q = ([float(Fraction(x)) for x in row] for row in SMALL)
    return tape_audit(lenient_kernel(epsilon), p, q, 1)


EXACT: dict[str, Callable[[Fraction], Any]] = {
    "white-box, rationals": white_box,
    "replay, rationals": lambda epsilon: replay(epsilon, "rational"),
    "replay, float64 rows": lambda epsilon: replay(float(epsilon), "float64"),
    "tape, 24-bit uniforms": lambda epsilon: tape(float(epsilon)),
}


def flagged(report: Any) -> bool:
    return report.verdict is Verdict.BIASED


def smallest_exact(engine: Callable[[Fraction], Any]) -> tuple[Fraction, Any, float]:
    """The smallest ε = 10^−k (k ≤ SMALLEST) that ``engine`` flags, its report, and the seconds of that one call."""
    assert not flagged(engine(Fraction(0))), "an engine flags the right verifier"
    best = None
    for power in range(1, SMALLEST + 1):
        epsilon = Fraction(1, 10**power)
        started = time.perf_counter()
        report = engine(epsilon)
        if not flagged(report):
            break
        best = epsilon, report, time.perf_counter() - started
    assert best is not None, "an engine misses a leniency of a tenth"
    return best


def smallest_sampled(rule: Today, runs: int) -> float | None:
    """The smallest ε of three a decade that ``rule`` sees in 90 % of the runs; None where there is none."""
    found = None
    for step in range(9, -10, -1):
        epsilon = 10 ** (step / 3)
        if rate(rule, epsilon, runs, seed=step + 100) < DETECTED:
            break
        found = epsilon
    return found


def leniency_table(runs: int, null_runs: int) -> list[str]:
    """Which ε each way of looking sees."""
    lines = [
        "| | false alarms | ε = 1 | ε = 0.1 | ε = 0.01 | ε = 0.001 | smallest ε | its TV | draws or runs | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    shown = [Fraction(1), Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000)]
    for name, engine in EXACT.items():
        cells = ["**seen**" if flagged(engine(epsilon)) else "passes" for epsilon in shown]
        epsilon, report, seconds = smallest_exact(engine)
        least = "10⁻" + str(str(epsilon.denominator).count("0")).translate(SUPERSCRIPTS)
        work = getattr(report, "runs", None) or getattr(report, "calls", None) or report.paths
        alarms = "none: exact" if "rationals" in name else "none: a bound on rounding"
        lines.append(
            f"| {name} | {alarms} | {' | '.join(cells)} | {least} | {float(report.total_variation):.1e} | {work} "
            f"| {seconds:.3f} |"
        )
    p, q = (np.array([float(Fraction(x)) for x in row]) for row in SMALL)
    draws = [sequential_draws(lenient_law(p, q, float(epsilon)), p, 50, seed=3) for epsilon in shown]
    cells = [f"**seen**, {count:,.0f}" if np.isfinite(count) else "passes" for count in draws]
    least = "0.001" if np.isfinite(draws[-1]) else "0.01"
    lines.append(
        f"| sequential (median draws) | ≤ {LEVEL:.0%} | {' | '.join(cells)} | {least} "
        f"| {tv(lenient_law(p, q, float(least)), p):.1e} | up to {SEQUENTIAL_DRAWS:,} | |"
    )
    for rule in TODAY:
        started = time.perf_counter()
        alarms = rate(rule, 0.0, null_runs, seed=1)
        rates = [rate(rule, float(epsilon), runs, seed=2) for epsilon in shown]
        cells = [f"{'**seen**' if found >= DETECTED else 'passes'} ({found:.0%})" for found in rates]
        seconds = (time.perf_counter() - started) / (null_runs + len(shown) * runs)
        smallest = smallest_sampled(rule, runs)
        law_p, law_q = pair(rule.size)
        size = "" if smallest is None else f"{tv(lenient_law(law_p, law_q, smallest), law_p):.1e}"
        lines.append(
            f"| {rule.name} | {alarms:.1%} | {' | '.join(cells)} | {'none' if smallest is None else f'{smallest:.2g}'} "
            f"| {size} | {DRAWS:,} | {seconds:.4f} |"
        )
    return lines


# The museum of faults.


@dataclass
class Shown:
    """One exhibit: what found it, and its law of the first token, where an engine computed one."""

    name: str
    kind: str
    engine: str
    flagged: bool
    law: np.ndarray | None
    target: np.ndarray | None


def museum() -> list[Shown]:
    """Every fault of tests/meta/faults, with the laws that its engine found."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "meta" / "faults"))
    import museum as exhibits  # type: ignore[import-not-found]

    reports: list[Any] = []
    for name in ("replay_step", "replay_verify"):
        original = getattr(exhibits, name)

        def watched(*arguments: Any, original: Any = original, **options: Any) -> Any:
            reports.append(original(*arguments, **options))
            return reports[-1]

        setattr(exhibits, name, watched)
    found = []
    for exhibit in exhibits.EXHIBITS:
        if exhibit.control:
            continue
        reports.clear()
        seen = exhibit.look()
        laws = [first_token(reports[-1], part) for part in ("law", "expected")] if reports else [None, None]
        found.append(Shown(exhibit.name, exhibit.kind, seen.engine, seen.flagged, *laws))
    return found


def first_token(report: Any, part: str) -> np.ndarray:
    """The law of the first token in a replay report, crashes left out."""
    law = np.zeros(report.vocabulary)
    for tokens, mass in getattr(report, part).items():
        if len(tokens):
            law[tokens[0]] += float(mass)
    return law / law.sum() if law.sum() else law


def fault_table(runs: int) -> list[str]:
    """By kind of fault: how many each way of looking sees."""
    shown = museum()
    kinds = list(dict.fromkeys(exhibit.kind for exhibit in shown))
    names = ["ratio 20 ×", "χ²", "KL difference 0.01", "TV 0.02"]
    deciders: list[Rule] = [ratio_20, chi_square, kl_difference, total_variation]
    lines = [
        "| kind of fault | faults | ours | by | sequential: median draws, largest | "
        + " | ".join(names)
        + " |",
        "|---" * (5 + len(names)) + "|",
    ]
    for kind in kinds:
        own = [exhibit for exhibit in shown if exhibit.kind == kind]
        counts, draws = [0] * len(names), []
        for exhibit in own:
            if exhibit.law is None or exhibit.target is None or not exhibit.law.sum():
                continue
            if exhibit.law.size > 1 and not np.allclose(exhibit.law, exhibit.target, atol=1e-12):
                draws.append(sequential_draws(exhibit.law, exhibit.target, 50, seed=5))
            for place, decide in enumerate(deciders):
                with np.errstate(divide="ignore", invalid="ignore"):
                    hits = decide(exhibit.law, exhibit.target, runs, np.random.default_rng(6))
                counts[place] += bool(hits.mean() >= DETECTED)
        engines = ", ".join(sorted({exhibit.engine for exhibit in own}))
        largest = (
            f"{max(draws):,.0f} ({len(draws)} of {len(own)} show in the first token)"
            if draws
            else "none shows there"
        )
        lines.append(
            f"| {kind} | {len(own)} | **{sum(exhibit.flagged for exhibit in own)}** | {engines} | {largest} | "
            + " | ".join(map(str, counts))
            + " |"
        )
    return lines


HEADER = f"""# What each engine sees

Generated by `python -m fuzz.power --write`. The fault is a single-draft verifier that accepts with min(1, (1 + ε)·p/q)
and then resamples from (p − q)+, as it should. *Seen* means: called biased in every run (the exact engines), in half of
the runs (sequential; the number is the median of the draws it took), or in {DETECTED:.0%} of {RUNS} runs (today's
rules, with the share). *False alarms* is the share of {NULL_RUNS} runs on the right verifier that were called wrong.

Today's rules are the decision rules of samplers' own tests as they are used now, each with {DRAWS:,} draws of one row,
which is as many as the most patient of them takes:

- *ratio 20 ×*: from 10 to 100,000 draws the distance to the target must fall 20 times more than that to random laws
  (V = 30);
- *χ²*: a goodness-of-fit test at the level of 0.01, at V = 4096 and at V = 16;
- *KL difference 0.01*, *TV 0.02*: that much between frequencies and target is let pass (V = 16).

The exact engines run on p = (.1, .2, .3, .4), q = (.4, .3, .2, .1), the sequential test on draws of that verifier. ε
down to 10⁻¹⁸ were tried; below 10⁻¹¹ the replay in rationals still states the total variation, but calls the verdict
inconclusive. Seconds are of one decision on the machine of this run; for today's rules they are those of drawing counts
in NumPy, without a sampler, so a lower bound.

## Leniency: accept × (1 + ε)

"""

FAULTS = f"""
## Kinds of fault

The museum of [faults.md](faults.md): in how many of its cases each way of looking sees the fault. Today's rules look
at the first token of a step, {DRAWS:,} draws, at the exhibit's own small vocabulary, which favours them: at that size a
bias of a few per cent is large. They see nothing of faults that leave the first token's law as it is (bonus tokens, row
mix-ups, state, seeds), and what a contract checks has no law at all.

"""

READING = """
## Reading it

Leniency by a hundredth or a thousandth is seen exactly, from the code (white-box) and from outside (replay), in a
fraction of a second, and passes all five of today's rules (the χ² test at V = 16 rejects a hundredth in about a
quarter of its runs). The sequential test needs about 1/TV² draws, as any test of draws must; their number is not fixed
in advance, and the false-alarm rate holds over all looks together. What none of these can see is said on each engine's
page.
"""


def page(runs: int = RUNS, null_runs: int = NULL_RUNS) -> str:
    return (
        HEADER
        + "\n".join(leniency_table(runs, null_runs))
        + "\n"
        + FAULTS
        + "\n".join(fault_table(runs))
        + "\n"
        + READING
    )


def main() -> None:
    text = page()
    print(text)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

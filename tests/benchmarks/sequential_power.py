"""The sequential test beside the χ² test of fixed size, in one run: false alarms, and draws needed to see a bias.

``python tests/benchmarks/sequential_power.py`` prints the tables of docs/sequential.md (``--write`` puts them there).
Sessions are simulated by multinomial counts at geometric checkpoints, which is how both tests would be looked at.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from resispec_core.audit.sequential import log_e_values

TARGET = np.array([0.1, 0.2, 0.3, 0.4])
ALPHA = 0.01
BIASES = (0.1, 0.01, 0.001)
NULL_SESSIONS, BIASED_SESSIONS = 10_000, 1_000
PAGE = Path(__file__).parents[2] / "docs" / "sequential.md"


def checkpoints(first: int, last: int, ratio: float) -> np.ndarray:
    """Sample sizes at which a session is looked at."""
    steps = int(np.ceil(np.log(last / first) / np.log(ratio)))
    return np.unique(np.round(first * ratio ** np.arange(steps + 1)).astype(np.int64))


def sessions(
    law: np.ndarray, places: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """log of the highest e-value so far, and χ² p-values, each of shape (places, count)."""
    counts = np.zeros((count, law.size), dtype=np.int64)
    log_e, p_values = [], []
    before = 0
    for place in places.tolist():
        counts += rng.multinomial(place - before, law, size=count)
        before = place
        log_e.append(log_e_values(counts, TARGET))
        statistic = ((counts - place * TARGET) ** 2 / (place * TARGET)).sum(axis=1)
        p_values.append(stats.chi2.sf(statistic, law.size - 1))
    return np.maximum.accumulate(np.array(log_e), axis=0), np.array(p_values)


def biased(size: float) -> np.ndarray:
    """The target with a mass of ``size`` moved from the likeliest token to the least likely."""
    return TARGET + np.array([size, 0, 0, -size])


def chi_square_size(size: float, power: float) -> int:
    """Draws that a χ² test of fixed size needs, told the bias in advance (noncentral χ²)."""
    effect = float(((biased(size) - TARGET) ** 2 / TARGET).sum())
    threshold = stats.chi2.isf(ALPHA, TARGET.size - 1)
    low, high = 1, 10**10
    while high - low > 1:
        middle = (low + high) // 2
        enough = stats.ncx2.sf(threshold, TARGET.size - 1, middle * effect) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def null_rates(count: int, seed: int) -> dict[str, float]:
    """Shares of sessions without bias that each way of testing calls biased."""
    places = checkpoints(100, 10**6, 1.25)
    log_e, p_values = sessions(TARGET, places, count, np.random.default_rng(seed))
    return {
        "e-process, looked at every time": float((log_e[-1] >= -np.log(ALPHA)).mean()),
        "χ², looked at once, at the end": float((p_values[-1] < ALPHA).mean()),
        "χ², looked at every time": float((p_values < ALPHA).any(axis=0).mean()),
    }


def power(size: float, count: int, seed: int) -> dict[str, Any]:
    """Draws until rejection of a bias of TV ``size``."""
    planned = chi_square_size(size, 0.9)
    places = checkpoints(max(planned // 50, 10), planned * 8, 1.03)
    log_e, _ = sessions(biased(size), places, count, np.random.default_rng(seed))
    hit = log_e >= -np.log(ALPHA)
    stop = np.where(hit.any(axis=0), places[hit.argmax(axis=0)], np.inf)
    rng = np.random.default_rng(seed + 1)
    once = rng.multinomial(planned, biased(size), size=10_000)
    statistic = ((once - planned * TARGET) ** 2 / (planned * TARGET)).sum(axis=1)
    return {
        "TV": size,
        "median": float(np.median(stop)),
        "mean": float(stop.mean()),
        "90 %": float(np.quantile(stop, 0.9, method="higher")),
        "χ² size": planned,
        "χ² power": float((stats.chi2.sf(statistic, TARGET.size - 1) < ALPHA).mean()),
        "χ² for half the bias": chi_square_size(size / 2, 0.9),
    }


def tables(null_sessions: int = NULL_SESSIONS, biased_sessions: int = BIASED_SESSIONS) -> str:
    """Both tables in Markdown."""
    rates = null_rates(null_sessions, seed=1)
    looks = checkpoints(100, 10**6, 1.25).size
    lines = [
        f"False alarms in {null_sessions} sessions without bias, {looks} looks each between 100 and 10⁶ draws, "
        f"α = {ALPHA}:",
        "",
        "| test | sessions called biased |",
        "|---|---|",
        *(f"| {name} | {100 * rate:.2f} % |" for name, rate in rates.items()),
        "",
        f"Draws until a bias is rejected, α = {ALPHA}, {biased_sessions} sessions each:",
        "",
        "| TV of the bias | e-process: median | mean | 90 % of sessions by | χ² with 90 % power, bias known | the "
        "same, planned for half the bias |",
        "|---|---|---|---|---|---|",
    ]
    for place, size in enumerate(BIASES):
        row = power(size, biased_sessions, seed=10 + 2 * place)
        lines.append(
            f"| {size} | {row['median']:,.0f} | {row['mean']:,.0f} | {row['90 %']:,.0f} | {row['χ² size']:,} "
            f"(measured power {100 * row['χ² power']:.0f} %) | {row['χ² for half the bias']:,} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    text = tables()
    print(text)
    if "--write" in sys.argv[1:]:
        page = PAGE.read_text(encoding="utf-8")
        start, end = page.index("<!-- measured -->\n"), page.index("<!-- /measured -->")
        PAGE.write_text(page[: start + len("<!-- measured -->\n")] + text + page[end:], encoding="utf-8")


if __name__ == "__main__":
    main()

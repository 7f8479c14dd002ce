"""Long, dull runs: 10⁵ exact audits with flat memory, and 10⁴ sessions without bias with the stated false alarms.

``python -m fuzz.soak [--audits N] [--sessions N] [--json]``; exit status 1 where memory grows or alarms exceed α. An
interrupt ends the run with what was measured. Memory is the resident set, read after every twentieth of the audits: the
later half must not lie more than GROWTH above the earlier one. One kept float64 row of three tokens an audit would show
as 10 MB.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import sys
import time
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from resispec_core import audit, rules
from resispec_core.arrays import Array
from resispec_core.audit import Verdict
from resispec_core.audit.sequential import log_e_values

AUDITS, SESSIONS = 100_000, 10_000
GROWTH = 4 * 2**20
"""Bytes: an allocator's arenas move by a few megabytes; a leak of 40 bytes an audit adds as much."""
ALPHA = 0.01
DRAWS = 10**5
NAMES = ("specinfer", "k-seq", "shaped", "resispec", "single-draft", "target-match")
CHANCE = 1e-9
"""The check on the alarms fails by chance this often where their true rate is α (far more rarely where it is below)."""


def resident() -> int:
    """Bytes of memory in use now (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def cases(count: int, seed: int) -> Any:
    """``count`` audits at V = 3: (rule, target, draft, n), rational and float in turn."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        name = NAMES[number % len(NAMES)]
        weights = [rng.integers(0, 9, 3) + np.eye(3, dtype=int)[number % 3] for _ in range(2)]
        laws: list[Array] = []
        for row in weights:
            exact = np.array([Fraction(int(x), int(row.sum())) for x in row], dtype=object)
            laws.append(exact if number % 2 else exact.astype(float) / exact.astype(float).sum())
        yield name, *laws, 1 if name == "single-draft" else 1 + number % 2


def audits(count: int, seed: int = 1, keep: list[Any] | None = None) -> dict[str, Any]:
    """Run them. ``keep``: a list that every report is put on, which is a leak; tests plant it."""
    started, memory, verdicts, wrong = time.process_time(), [], Counter[str](), 0
    step, done = max(count // 20, 1), 0
    try:
        for name, p, q, n in cases(count, seed):
            report = audit(name, p, q, n)
            verdicts[report.verdict.value] += 1
            exact = Verdict.EXACT if p.dtype == object else Verdict.EXACT_WITHIN
            wrong += not rules.RULES[name].lossy and name != "resispec" and report.verdict is not exact
            if keep is not None:
                keep.append(report)
            done += 1
            if done % step == 0:
                gc.collect()
                memory.append(resident())
                if sys.stderr.isatty():
                    print(f"\r{done} of {count} audits, {memory[-1] / 2**20:.0f} MB", end="", file=sys.stderr)
    except KeyboardInterrupt:
        pass
    half = len(memory) // 2
    growth = max(memory[half:], default=0) - max(memory[2:half], default=0)
    return {
        "audits": done,
        "wrong_verdicts": wrong,
        "verdicts": dict(verdicts),
        "megabytes": [round(size / 2**20, 1) for size in memory],
        "growth_bytes": growth,
        "flat": growth <= GROWTH,
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def sessions(count: int, seed: int = 1, bias: float = 0.0) -> dict[str, Any]:
    """Sequential sessions on a sampler that has its target law (but for ``bias``), each looked at 60 times."""
    started, rng = time.process_time(), np.random.default_rng(seed)
    alarms, done, size = 0, 0, 500
    places = np.unique(np.geomspace(10, DRAWS, 60).astype(int)).tolist()
    try:
        while done < count:
            batch = min(size, count - done)
            target = rng.dirichlet(np.full(5, 0.7))
            law = (1 - bias) * target + bias * np.eye(5)[0]
            counts, highest = np.zeros((batch, 5), dtype=np.int64), np.full(batch, -np.inf)
            for before, place in itertools.pairwise([0, *places]):
                counts += rng.multinomial(place - before, law, size=batch)
                highest = np.maximum(highest, log_e_values(counts, target))
            alarms += int((highest >= -np.log(ALPHA)).sum())
            done += batch
    except KeyboardInterrupt:
        pass
    # Ville: at most α in truth; so more alarms than a binomial of rate α nearly ever gives refute the claim.
    allowed = int(stats.binom.isf(CHANCE, max(done, 1), ALPHA))
    return {
        "sessions": done,
        "looks": len(places),
        "draws": DRAWS,
        "alpha": ALPHA,
        "false_alarms": alarms,
        "rate": alarms / max(done, 1),
        "allowed": allowed,
        "within_alpha": alarms <= allowed and alarms <= ALPHA * done,
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--audits", type=int, default=AUDITS)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = {"audits": audits(options.audits), "sessions": sessions(options.sessions)}
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        for part in result.values():
            print("\n".join(f"{name}: {value}" for name, value in part.items()) + "\n")
    good = (
        result["audits"]["flat"]
        and not result["audits"]["wrong_verdicts"]
        and result["sessions"]["within_alpha"]
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Set-up cost of `shaped` and `optimal` on real rows, as ratios to one np.argsort of the row in the same run.

    python tests/benchmarks/setup_cost.py

Prints medians over the shipped positions at n = 3. Not a test: times depend on the machine, ratios less so.
"""

from time import perf_counter

import numpy as np

from resispec_core import law_from_logits, rules
from resispec_core.llama.store import sample_store

REPEATS = 5


def seconds(call, *given):
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        call(*given)
        times.append(perf_counter() - start)
    return min(times)


def main():
    store = sample_store()
    ratios = {"k-seq": [], "shaped": [], "optimal": []}
    for place in range(len(store)):
        p, q = (law_from_logits(row) for row in store.row(place))
        unit = seconds(np.argsort, p)
        for name, found in ratios.items():
            found.append(seconds(rules.rule(name).plan, p, q, 3) / unit)
    print(
        f"set-up at n = 3, V = {store.vocabulary}, in units of np.argsort of the row, {len(store)} positions"
    )
    for name, found in ratios.items():
        print(f"{name:8}  median {np.median(found):5.1f}   largest {max(found):5.1f}")


if __name__ == "__main__":
    main()

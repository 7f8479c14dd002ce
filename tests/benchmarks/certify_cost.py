"""What a certified bracket costs: time as a ratio to one np.sort of the row, in the same run, and memory.

    python tests/benchmarks/certify_cost.py            # prints the tables
    python tests/benchmarks/certify_cost.py --write    # and puts them into docs/certified.md, with the picture

Rows: the shipped positions (V = 49,152), and for the cost against V pairs of Zipf-like laws with noise. Times are CPU
seconds of this thread, the best of three to twenty, so that other work on the machine does not count; the allocator is
told to keep what is freed, since on some machines fresh pages cost more than the arithmetic. Not a test.
"""

import argparse
import os
import sys
import tracemalloc
from pathlib import Path
from time import thread_time

import numpy as np

from resispec_core import law_from_logits, rules
from resispec_core.audit import certify
from resispec_core.llama.store import sample_store

KEEP = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**30)}
SIZES = (4_096, 16_384, 49_152, 151_936)
CASES = [
    ("specinfer", 1),
    ("specinfer", 3),
    ("k-seq", 3),
    ("shaped", 3),
    ("optimal", 3),
    ("resispec", 1),
    ("resispec", 2),
    ("resispec", 3),
    ("resispec waterfill", 1),
    ("resispec waterfill", 2),
    ("resispec waterfill", 3),
]
DOCS = Path(__file__).parents[2] / "docs"
PAGE, PICTURE = DOCS / "certified.md", DOCS / "pictures" / "certify_cost.svg"
WIDEST = 13


def seconds(call, repeats):
    times = []
    for _ in range(repeats):
        start = thread_time()
        call()
        times.append(thread_time() - start)
    return min(times)


def zipf_pair(size, seed):
    """Two laws that share their head: logits −1.1·log rank and the same with noise of 1.5 nats."""
    rng = np.random.default_rng(seed)
    logits = -1.1 * np.log1p(rng.permutation(size)) + rng.normal(scale=1.0, size=size)
    return law_from_logits(logits), law_from_logits(logits + rng.normal(scale=1.5, size=size))


def named(case):
    name, *redistribution = case.split()
    return rules.rule(name, redistribution=redistribution[0] if redistribution else None)


def ratio(case, candidates, p, q):
    """(bracket, time over that of one sort, measured before and after)."""
    rule = named(case)
    found = certify(rule, p, q, candidates)
    first = seconds(lambda: certify(rule, p, q, candidates), 1)
    took = seconds(lambda: certify(rule, p, q, candidates), max(3, min(int(0.1 / first), 20)))
    return found, took / seconds(lambda: np.sort(p), 40)


def shipped():
    """Markdown rows: ratio and width over the shipped positions."""
    store = sample_store()
    pairs = [tuple(law_from_logits(row) for row in store.row(place)) for place in range(len(store))]
    lines = [
        f"{len(pairs)} shipped positions, V = {store.vocabulary:,}:",
        "",
        "| rule | n | time, median | largest | width, median | largest |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for case, candidates in CASES:
        found = [ratio(case, candidates, *pair) for pair in pairs]
        times, widths = [time for _, time in found], [bracket.width for bracket, _ in found]
        lines.append(
            f"| {case} | {candidates} | {np.median(times):.0f} | {max(times):.0f} "
            f"| {np.median(widths):.1e} | {max(widths):.1e} |"
        )
        print(lines[-1], flush=True)
    return lines


def against_vocabulary():
    """{case: [median ratio at each size]} over three Zipf-like pairs a size."""
    found = {}
    for case, candidates in CASES:
        label = f"{case}, n = {candidates}"
        found[label] = [
            float(np.median([ratio(case, candidates, *zipf_pair(size, seed))[1] for seed in range(3)]))
            for size in SIZES
        ]
        print(label, *(f"{value:.0f}" for value in found[label]), flush=True)
    return found


def vocabulary_table(found):
    heads = " | ".join(f"V = {size:,}" for size in SIZES)
    rows = [
        f"| {label} | " + " | ".join(f"{v:.0f}" for v in values) + " |" for label, values in found.items()
    ]
    return [
        "Zipf-like pairs, median of three:",
        "",
        f"| rule | {heads} |",
        "| --- |" + " --- |" * len(SIZES),
        *rows,
    ]


def memory():
    """A line: the peak of traced allocations after more and more positions, one after the other."""
    store = sample_store()
    peaks = []
    tracemalloc.start()
    for place in range(15):
        certify("resispec", *(law_from_logits(row) for row in store.row(WIDEST + place)), 3)
        peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
    tracemalloc.stop()
    shown = ", ".join(f"{peaks[count - 1]:.0f} MB after {count}" for count in (1, 4, 8, 15))
    return f"Peak memory of the published rule at n = 3, the widest position (13) first: {shown}."


def plot(lines):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axes = figure.subplots()
    for label, values in lines.items():
        if "k-seq" not in label:
            axes.plot(SIZES, values, marker="o", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(SIZES, [f"{size // 1000}k" for size in SIZES])
    axes.minorticks_off()
    axes.set_xlabel("vocabulary size V")
    axes.set_ylabel("time of one bracket / one sort of the row")
    figure.legend(fontsize=7, ncols=4, loc="outside upper center")
    figure.savefig(PICTURE, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the tables and the picture into docs/")
    options = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in KEEP.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | KEEP)
    rows = shipped()
    found = against_vocabulary()
    line = memory()
    print(line)
    if options.write:
        plot(found)
        text = "\n".join([*rows, "", *vocabulary_table(found), "", line])
        before, mark, rest = PAGE.read_text().partition("<!-- certify-cost -->\n")
        _, end, after = rest.partition("<!-- /certify-cost -->")
        PAGE.write_text(before + mark + text + "\n" + end + after)


if __name__ == "__main__":
    main()

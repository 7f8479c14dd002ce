"""Mutation testing of the rules and the audit engines: which small changes to their code would no test notice?

    python -m fuzz.mutation --sample 300 --seed 1 --into FOLDER

cosmic-ray finds and makes the mutants; a uniform random sample of them is tried, because all would take days. The
checkout is copied into FOLDER once. Each mutant runs in a fork of a process that has NumPy, SciPy, Hypothesis and
pytest loaded, on the tests that TESTS names for its file, until the first one fails. FOLDER/results.jsonl gets a line
a mutant, and a run goes on where an interrupted one ended.
"""

from __future__ import annotations

import argparse
import compileall
import difflib
import json
import os
import py_compile
import random
import re
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
MUTATED = ("resispec_core/rules", "resispec_core/audit")
SKIPPED_OPERATORS = ("Bit", "Shift", "Invert", "Decorator")
"""Not tried, because any test at all kills them: bit operations on floats, and a ``@property`` that is none. (``|`` in
annotations is never evaluated.) Comparisons are replaced by others of their own kind, and what does not compile is left
out."""
ORDERS = ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE")
TIMEOUT = 60
EXAMPLES = 40
COUNTING = (
    "tests/audit/test_budgets.py::test_a_bracket_holds_the_true_total_variation",
    "tests/audit/test_pair_form.py::test_the_form_equals_enumeration",
    "tests/rules/test_shaped_without.py::test_broken_twins_are_biased",
)
"""Tests that count their examples, of which they get fewer here."""
PARTS = (
    "resispec_core",
    "tests",
    "fuzz",
    "proofs",
    "docs",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
)

SMALL = ["tests/audit/test_known_values.py", "tests/audit/test_budgets.py"]
SAMPLES = [*SMALL, "tests/fuzz/test_samples.py::test_laws"]
COINS, ENGINE, SOURCES = (f"tests/replay/test_replay_{name}.py" for name in ("coins", "engine", "sources"))
FUNCTIONS, ARITHMETIC, HEAVY, TORCH, NUMPY = (
    f"tests/replay/test_{name}.py"
    for name in ("coin_functions", "coin_arithmetic", "heavy_last_token", "torch_operations", "numpy_sources")
)
CERTIFY = [
    f"tests/audit/test_certify{name}.py" for name in ("", "_structure", "_faults", "_positions", "_search")
]
RULES, REPLAY, AUDIT = (f"resispec_core/{room}/" for room in ("rules", "audit/replay", "audit"))
TESTS: dict[str, list[str]] = {
    f"{RULES}optimal": [*SAMPLES, "tests/rules/test_optimal.py"],
    f"{RULES}priorities": [*SAMPLES, "tests/rules/test_optimal.py"],
    f"{RULES}ranked": [*SAMPLES, "tests/rules/test_ranked.py"],
    f"{RULES}resispec": [*SAMPLES, "tests/rules/test_resispec.py", "tests/rules/test_capped_fill.py"],
    f"{RULES}shaped_without": [*SAMPLES, "tests/rules/test_shaped_without.py"],
    f"{RULES}shaped": [*SAMPLES, "tests/rules/test_shaped.py", "tests/rules/test_plans_end.py"],
    f"{RULES}root": [
        *SAMPLES,
        *(f"tests/rules/test_{name}.py" for name in ("root", "kseq", "shaped", "plans_end")),
    ],
    f"{RULES}kseq": [*SAMPLES, "tests/rules/test_kseq.py"],
    RULES: [*SAMPLES, "tests/rules/test_protocol.py", "tests/rules/test_coins.py"],
    f"{REPLAY}coin": [FUNCTIONS, ARITHMETIC, COINS, SOURCES, ENGINE],
    f"{REPLAY}grid": [ARITHMETIC, COINS, SOURCES, ENGINE],
    f"{REPLAY}torch_draws": [NUMPY, TORCH, SOURCES, ENGINE],
    f"{REPLAY}torch": [TORCH, SOURCES, ENGINE],
    f"{REPLAY}numpy": [HEAVY, NUMPY, SOURCES, ENGINE],
    f"{REPLAY}trail": ["tests/replay/test_trail.py", COINS, SOURCES, ENGINE],
    f"{REPLAY}race": ["tests/replay/test_races.py", COINS, SOURCES, ENGINE],
    f"{REPLAY}patches": [SOURCES, ENGINE],
    f"{REPLAY}draws": [COINS, NUMPY, SOURCES, ENGINE],
    REPLAY: [
        "tests/replay/test_replay_report.py",
        ARITHMETIC,
        COINS,
        SOURCES,
        ENGINE,
        HEAVY,
        "tests/counterexample",
    ],
    f"{AUDIT}certify": [*CERTIFY, "tests/cli/test_cli_store.py"],
    f"{AUDIT}carriers": [
        "tests/audit/test_carriers.py",
        *SMALL,
        "tests/audit/test_decisions.py",
        "tests/audit/test_paper_check.py",
    ],
    f"{AUDIT}ceiling": ["tests/audit/test_ceiling.py", *SMALL],
    f"{AUDIT}closed_form": ["tests/audit/test_closed_forms.py", *SMALL],
    f"{AUDIT}compare": ["tests/audit/test_compare.py"],
    f"{AUDIT}contract": ["tests/contract"],
    f"{AUDIT}counterexample": ["tests/counterexample", "tests/fuzz/test_corpus.py"],
    f"{AUDIT}distances": ["tests/audit/test_distances.py", CERTIFY[3]],
    f"{AUDIT}pair_form": ["tests/audit/test_pair_form.py", "tests/rules/test_ranked.py", *SMALL],
    f"{AUDIT}marginal": [*SMALL, "tests/audit/test_path_oracle.py", "tests/audit/test_rounding_model.py"],
    f"{AUDIT}paper_check": ["tests/audit/test_paper_check.py", *SMALL],
    f"{AUDIT}positions": [
        "tests/cli/test_cli_store.py",
        "tests/cli/test_cli_commands.py",
        "tests/runs/test_run_store.py",
    ],
    f"{AUDIT}search": ["tests/counterexample/test_search_steps.py", "tests/counterexample"],
    f"{AUDIT}sequential": ["tests/sequential/test_sequential_report.py", "tests/sequential"],
    f"{AUDIT}tape": ["tests/tape"],
    f"{AUDIT}verdict": [
        "tests/audit/test_decisions.py",
        *SMALL,
        "tests/tape",
        "tests/trees/test_joint.py",
        "tests/cli/test_cli_commands.py",
    ],
    AUDIT: [*SAMPLES, "tests/audit/test_methods_agree.py", "tests/cli/test_cli_pair.py"],
}
"""The first prefix that fits decides; quick tests first."""
MORE: dict[str, list[str]] = {
    RULES: ["tests/rules", "tests/audit", "tests/drafts", "tests/proofs/test_link.py"],
    REPLAY: ["tests/replay", "tests/counterexample", "tests/meta/faults", "tests/adapters", "tests/plugin"],
    AUDIT: [
        "tests/audit",
        "tests/tape",
        "tests/contract",
        "tests/sequential",
        "tests/counterexample",
        "tests/cli",
    ],
}
"""What a survivor of TESTS is tried on afterwards (``--retry``), with every example."""


class Mutant(NamedTuple):
    """``operator`` of cosmic-ray, applied to its ``occurrence``-th place in ``file``."""

    file: str
    operator: str
    occurrence: int


def tests_for(file: str, lists: dict[str, list[str]]) -> list[str]:
    """The tests that a mutant of ``file`` must get past."""
    return next(tests for prefix, tests in lists.items() if file.startswith(prefix))


def mutants(root: Path) -> Iterator[Mutant]:
    """Every mutant of the two rooms."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    for folder in MUTATED:
        for path in sorted((root / folder).rglob("*.py")):
            nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
            for name in sorted(operator_names()):
                kind = get_operator(name)
                if not wanted(name) or kind.arguments():
                    continue
                operator = kind()
                for occurrence in range(sum(1 for node in nodes for _ in operator.mutation_positions(node))):
                    yield Mutant(str(path.relative_to(root)), name, occurrence)


def wanted(operator: str) -> bool:
    """Whether a mutant of this kind can tell a good test from a bad one."""
    if any(word in operator for word in SKIPPED_OPERATORS):
        return False
    if "Comparison" not in operator:
        return True
    old, new = operator.split("_")[1:]
    return all(name in ORDERS for name in (old, new)) or {old, new} in ({"Is", "IsNot"}, {"In", "NotIn"})


def compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def apply(root: Path, mutant: Mutant) -> tuple[str, str]:
    """The file's source before and after."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = (root / mutant.file).read_text(encoding="utf-8")
    changed = mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)
    return source, source if changed is None else changed


def run_tests(folder: Path, tests: list[str], rationed: bool = True) -> int:
    """pytest on ``tests`` in a fork: its exit status, or 99 after TIMEOUT seconds of CPU."""
    child = os.fork()
    if child == 0:
        import resource

        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT, TIMEOUT + 5))
        signal.signal(signal.SIGXCPU, lambda *_: os._exit(99))
        quiet = os.open(folder / "pytest.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        sys.stdout = sys.stderr = os.fdopen(1, "w")  # also where the parent's are captured
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = str(folder)
        import pytest

        if rationed:
            ration()
        quiet_options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=line", "--assert=plain"]
        # Modules loaded before the fork are not rewritten; that is wanted here.
        if rationed:
            quiet_options += [word for name in COUNTING for word in ("--deselect", name)]
        status = pytest.main([*quiet_options, "-W", "ignore::pytest.PytestAssertRewriteWarning", *tests])
        sys.stdout.flush()
        os._exit(int(status))
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def ration() -> None:
    """Hypothesis takes EXAMPLES at most. Fewer find less, so the score errs on the low side."""
    from hypothesis import settings

    original = settings.__init__

    def fewer(self: Any, *arguments: Any, **options: Any) -> None:
        if isinstance(options.get("max_examples"), int):
            options["max_examples"] = min(options["max_examples"], EXAMPLES)
        original(self, *arguments, **options)

    settings.__init__ = fewer  # type: ignore[method-assign]


def control(folder: Path) -> list[str]:
    """Every test that killed a mutant, run on the code as it is: those that fail, whose kills mean nothing."""
    lines = results(folder)
    killers = sorted({name for line in lines for name in line["by"]})
    return [name for name in killers if run_tests(folder, [name]) != 0]


def prepare(folder: Path) -> None:
    """Copy the checkout, once; and undo a mutant that an interrupt left in the copy."""
    skip = shutil.ignore_patterns("__pycache__", ".*cache")
    for part in PARTS:
        if not (folder / part).exists():
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, folder / part, ignore=skip)
            else:
                shutil.copy(ROOT / part, folder / part)
    for room in MUTATED:
        clean = folder / "clean" / room
        if not clean.exists():
            shutil.copytree(folder / room, clean, ignore=skip)
        shutil.copytree(clean, folder / room, dirs_exist_ok=True)
    # Compiled files are checked by their contents: else a mutant of the same size and second passes for the original.
    compileall.compile_dir(folder, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def preload() -> None:
    """What every fork would import otherwise."""
    import hypothesis  # noqa: F401
    import numpy as np  # noqa: F401
    import pytest  # noqa: F401
    import scipy.optimize
    import scipy.special
    import scipy.stats  # noqa: F401
    import torch  # noqa: F401


def interval(hits: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z, share = 1.959963984540054, hits / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (share * (1 - share) / count + z * z / (4 * count * count)) ** 0.5
    return middle - half, middle + half


def draw(folder: Path, room: str, sample: int, seed: int) -> list[Mutant]:
    """A uniform sample of the mutants of ``room`` that change the file and still compile, in random order."""
    everything = [mutant for mutant in mutants(folder) if mutant.file.startswith(room)]
    print(f"{len(everything)} mutants")
    chosen: list[Mutant] = []
    for mutant in random.Random(seed).sample(everything, len(everything)):
        before, after = apply(folder, mutant)
        if before != after and compiles(after):
            chosen.append(mutant)
        if len(chosen) == sample:
            break
    return chosen


def attempt(folder: Path, mutant: Mutant, lists: dict[str, list[str]], rationed: bool) -> dict[str, Any]:
    """One mutant's line in the results. An exit of pytest other than 0 and 1 is a kill only if the mutant caused it."""
    before, after = apply(folder, mutant)
    path, started = folder / mutant.file, time.monotonic()
    try:
        path.write_text(after, encoding="utf-8")
        status = run_tests(folder, tests_for(mutant.file, lists), rationed)
    finally:
        path.write_text(before, encoding="utf-8")
    log = (folder / "pytest.log").read_text(errors="replace")
    failed = re.findall(r"^(?:FAILED|ERROR) ([^\s\[]+(?:\[.*?\](?= - |$))?)", log, re.MULTILINE)
    outcome = {0: "survived", 1: "killed", 99: "timeout"}.get(status, f"pytest exit {status}")
    if outcome.startswith("pytest") and (failed or f"{mutant.file}:" in log):
        outcome = "killed"
    return {
        **mutant._asdict(),
        "outcome": outcome,
        "seconds": round(time.monotonic() - started, 1),
        "by": failed[:1],
        "diff": list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))[2:],
    }


def hunt(folder: Path, room: str, sample: int, seed: int) -> None:
    """Try the sample. In random order, so that an interrupted run is a smaller uniform sample."""
    record = folder / "results.jsonl"
    done = results(folder)
    for number, mutant in enumerate(draw(folder, room, sample, seed)):
        if number < len(done):
            continue
        line = attempt(folder, mutant, TESTS, rationed=True)
        with record.open("a") as file:
            file.write(json.dumps(line) + "\n")
        say(number, line)


def retry(folder: Path) -> None:
    """Try the survivors on everything that could know their file."""
    lines = results(folder)
    for number, line in enumerate(lines):
        if line["outcome"] in ("killed", "timeout"):
            continue
        mutant = Mutant(line["file"], line["operator"], line["occurrence"])
        lines[number] = attempt(folder, mutant, MORE, rationed=False)
        (folder / "results.jsonl").write_text("".join(json.dumps(item) + "\n" for item in lines))
        say(number, lines[number])


def results(folder: Path) -> list[dict[str, Any]]:
    record = folder / "results.jsonl"
    return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []


def say(number: int, line: dict[str, Any]) -> None:
    change = " | ".join(line["diff"][1:])
    print(f"{number} {line['outcome']:9} {line['seconds']:5.1f} s  {line['file']} {change}", flush=True)


def summary(folder: Path) -> str:
    """Score by room with its confidence interval, and the survivors."""
    lines = results(folder)
    text = ["| room | mutants tried | killed | score | 95 % interval |", "|---|---|---|---|---|"]
    for room in (*MUTATED, "resispec_core"):
        own = [line for line in lines if line["file"].startswith(room)]
        if own:
            killed = sum(line["outcome"] in ("killed", "timeout") for line in own)
            low, high = interval(killed, len(own))
            text.append(
                f"| {room} | {len(own)} | {killed} | {killed / len(own):.1%} | {low:.1%} to {high:.1%} |"
            )
    text.append(f"\n{dict(Counter(line['outcome'] for line in lines))}\n")
    for line in lines:
        if line["outcome"] not in ("killed", "timeout"):
            text.append(f"- `{line['file']}` {line['outcome']}: `{' → '.join(line['diff'][1:])}`")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--room", default="resispec_core/", help="only files whose path begins so")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--report", action="store_true", help="only print what an earlier run found")
    parser.add_argument("--retry", action="store_true", help="try its survivors on more tests")
    options = parser.parse_args()
    folder = options.into.resolve()
    preload()
    prepare(folder)
    if options.retry:
        retry(folder)
    elif not options.report:
        hunt(folder, options.room, options.sample, options.seed)
    print(summary(folder))
    void = control(folder)
    print(f"control: {len(void)} of the tests that killed a mutant fail without one {void or ''}")


if __name__ == "__main__":
    main()

"""Audit of a user's callable: load it, guess its signature, try hard inputs, shrink what fails.

Loading runs the user's code on this machine, once, because the user named it. Nothing is fetched.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resispec_core.audit.counterexample import Counterexample, from_report
from resispec_core.audit.replay import Budget, replay_step, replay_verify
from resispec_core.audit.replay.patches import controlled
from resispec_core.audit.replay.tables import Markov, hard_pair
from resispec_core.audit.search import Case, hard_cases, shrink, worsen
from resispec_core.audit.tape import tape_audit
from resispec_core.audit.verdict import EXIT_CODES, Verdict
from resispec_core.errors import InputError
from resispec_core.laws import law

SIGNATURES = {
    "verify": ("target", "draft", "candidates", "rng"),
    "step": ("target_model", "draft_model", "prefix", "rng"),
    "kernel": ("target", "draft", "candidates", "uniforms"),
}
_SEVERITY = [Verdict.EXACT, Verdict.EXACT_WITHIN, Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE, Verdict.BIASED]


@contextmanager
def importable(spec: str) -> Iterator[None]:
    """What ``spec`` names may import what stands beside it: the working directory, or the file's own folder."""
    place = spec.rpartition(":")[0]
    folder = str(Path(place).resolve().parent) if place.endswith(".py") else os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def load_callable(spec: str) -> Callable[..., Any]:
    """The callable named ``module:name`` or ``path/to/file.py:name`` (dotted names inside are followed)."""
    place, colon, name = spec.rpartition(":")
    if not colon or not place or not name:
        raise InputError(f"{spec!r} names no callable; write module:callable or path/to/file.py:callable")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place, spec)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            near = ", ".join(entry for entry in dir(found) if not entry.startswith("_")) or "nothing public"
            raise InputError(f"{place} has no {part!r}; it has {near:.300}")
        found = getattr(found, part)
    if not callable(found):
        raise InputError(f"{spec} is {type(found).__name__}, not a callable")
    return found


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the path of a Python file before the colon")
    name = f"_resispec_audited_{path.stem}"
    description = importlib.util.spec_from_file_location(name, path)
    assert description is not None
    assert description.loader is not None
    module = importlib.util.module_from_spec(description)
    sys.modules[name] = module
    try:
        description.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise InputError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def _load_module(place: str, spec: str) -> Any:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{spec}: module {error.name!r} is not installed or not on the path; run from the folder that holds it, "
            "or write path/to/file.py:callable"
        ) from None
    except (Exception, SystemExit) as error:
        raise InputError(f"{spec}: importing {place} failed: {type(error).__name__}: {error}") from error


def subject_of(function: Callable[..., Any]) -> str:
    """How ``load_callable`` finds ``function`` again: by its file where that is below the working directory.

    One that was made inside a function has ``<locals>`` in its name, and cannot be found.
    """
    name = getattr(function, "__qualname__", type(function).__qualname__)
    try:
        file = Path(inspect.getsourcefile(function) or "").resolve().relative_to(Path.cwd())
    except (TypeError, ValueError):
        return f"{function.__module__}:{name}"
    return f"{file}:{name}" if file.suffix == ".py" else f"{function.__module__}:{name}"


def guess_signature(function: Callable[..., Any]) -> str:
    """ "verify", "step" or "kernel", where the parameter names say so clearly; ``InputError`` otherwise."""
    try:
        names = [parameter.name for parameter in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        names = []
    text = " ".join(names).lower()
    if any(word in text for word in ("uniform", "coin", "noise")):
        return "kernel"
    if any(word in text for word in ("prefix", "model", "context", "prompt")):
        return "step"
    if any(word in text for word in ("candidate", "token", "draft_ids", "drafted")):
        return "verify"
    shapes = "; ".join(f"{name}({', '.join(parts)})" for name, parts in SIGNATURES.items())
    raise InputError(
        f"the signature of {getattr(function, '__name__', function)!r} cannot be guessed from its parameters "
        f"({', '.join(names) or 'unknown'}); pass --signature. The three are {shapes}"
    )


@dataclass
class CallableAudit:
    """Every report on one callable, the worst first, and the shrunk counterexample where it failed."""

    subject: str
    signature: str
    reports: list[Any]
    counterexample: Counterexample | None = None
    written: Path | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def worst(self) -> Any:
        """The report that decides."""
        return max(self.reports, key=lambda report: (_SEVERITY.index(report.verdict), report.total_variation))

    @property
    def verdict(self) -> Verdict:
        """The worst verdict met."""
        return Verdict(self.worst.verdict)

    @property
    def exit_code(self) -> int:
        """0 exact or within a bound on every input tried, 1 biased, 3 not refuted or inconclusive."""
        return EXIT_CODES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "subject": self.subject,
            "signature": self.signature,
            "verdict": self.verdict.value,
            "inputs_tried": len(self.reports),
            "worst": self.worst.to_json(),
            "counterexample": None if self.counterexample is None else self.counterexample.to_json(),
            "written": None if self.written is None else str(self.written),
            "notes": list(self.notes),
        }


def audit_callable(
    spec: str | Callable[..., Any],
    *,
    signature: str | None = None,
    target: Any = None,
    draft: Any = None,
    candidates: int | None = None,
    draw: str = "iid",
    library: str = "numpy",
    numbers: str = "auto",
    precision: str | None = None,
    horizon: int = 3,
    coins: int | None = None,
    write_to: Path | str | None = None,
    max_runs: int = 200_000,
    progress: Callable[[str], None] | None = None,
) -> CallableAudit:
    """Audit ``spec`` on the given rows, or on the suite's hard cases and the worst it finds from there.

    A failing input is shrunk and, with ``write_to`` (a folder or a .json path), written as a counterexample file.
    """
    function = load_callable(spec) if isinstance(spec, str) else spec
    subject = spec if isinstance(spec, str) else subject_of(spec)
    signature = signature or guess_signature(function)
    if signature not in SIGNATURES:
        raise InputError(f"signature is {signature!r}; known: {', '.join(SIGNATURES)}")
    if (target is None) != (draft is None):
        raise InputError("target and draft go together; give both rows, or neither for the suite's own cases")
    if library not in ("numpy", "torch"):
        raise InputError(f"library is {library!r}; known: numpy, torch")
    say = progress or (lambda _: None)
    if signature == "step":
        result = _audit_step(
            function, subject, library, numbers, precision, horizon, max_runs, target, draft, say
        )
    else:
        settings: dict[str, Any] = {"draw": draw}
        if signature == "verify":
            settings |= {"library": library, "numbers": numbers, "precision": precision}
        elif coins is not None:
            settings["coins"] = coins
        counts = (candidates,) if candidates else (1, 2)
        result = _audit_rows(function, subject, signature, settings, counts, max_runs, target, draft, say)
    if write_to is not None and result.counterexample is not None:
        path = Path(write_to)
        if path.suffix != ".json":
            path = path / f"counterexample-{getattr(function, '__name__', 'callable')}.json"
        result.written = result.counterexample.save(path)
    return result


def _controlled_for(signature: str) -> AbstractContextManager[object]:
    """One block of patches for many replays; a kernel draws nothing."""
    return controlled() if signature == "verify" else nullcontext()


def _audit_rows(
    function: Callable[..., Any],
    subject: str,
    signature: str,
    settings: dict[str, Any],
    counts: Sequence[int],
    max_runs: int,
    target: Any,
    draft: Any,
    say: Callable[[str], None],
) -> CallableAudit:
    def run(p: Any, q: Any, n: int, **more: Any) -> Any:
        if signature == "kernel":
            return tape_audit(function, p, q, n, **settings, max_calls=10 * max_runs)
        return replay_verify(function, p, q, n, **{**settings, **more}, budget=Budget(runs=max_runs))

    quick: dict[str, Any] = {"monte_carlo": 0} if signature == "verify" else {}
    if target is not None:
        rows = tuple(law(target, name="target").tolist()), tuple(law(draft, name="draft").tolist())
        cases = [Case(*rows, n, run(target, draft, n)) for n in counts]
    else:
        cases = []
        with _controlled_for(signature):
            for case in hard_cases(lambda p, q, n: run(p, q, n, **quick), counts):
                cases.append(case)
                say(f"case {len(cases)}: V = {len(case.target)}, n = {case.candidates}: {case.report}")
        if quick:  # the closing Monte Carlo of the unpatched function, once
            first = cases[0]
            first.report = run(first.target, first.draft, first.candidates)
    result = CallableAudit(subject, signature, [case.report for case in cases])
    failing = [case for case in cases if case.report.verdict is Verdict.BIASED]
    if not failing:
        return result
    worst = max(failing, key=lambda case: float(case.report.total_variation))
    if target is None:
        with _controlled_for(signature):
            worst = worsen(lambda p, q, n: run(p, q, n, **quick), worst)
            small = shrink(lambda p, q, n: run(p, q, n, **quick), worst)
        result.reports.append(worst.report)
        say(f"shrunk to V = {small.size[0]}, n = {small.size[1]}, denominators up to {small.size[2]}")
        worst = small
    kept = {key: value for key, value in settings.items() if value is not None}
    result.counterexample = from_report(
        worst.report, signature, subject, worst.target, worst.draft, candidates=worst.candidates, **kept
    )
    return result


def _as_model(given: Any, name: str) -> Any:
    """A model as it is; one row as the model that has this law at every position."""
    if callable(given):
        return given
    row = law(given, name=name)
    return Markov(row, [row] * row.size)


def _audit_step(
    function: Callable[..., Any],
    subject: str,
    library: str,
    numbers: str,
    precision: str | None,
    horizon: int,
    max_runs: int,
    target: Any,
    draft: Any,
    say: Callable[[str], None],
) -> CallableAudit:
    given = [(_as_model(target, "target"), _as_model(draft, "draft"))] if target is not None else []
    pairs = given or [hard_pair(3), hard_pair(4), hard_pair(2)]
    settings: dict[str, Any] = {"horizon": horizon, "library": library, "numbers": numbers}
    if precision is not None:
        settings["precision"] = precision
    reports, failing = [], []
    for one, other in pairs:
        report = replay_step(function, one, other, **settings, budget=Budget(runs=max_runs))
        reports.append(report)
        say(f"table {len(reports)}: {report}")
        if report.verdict is Verdict.BIASED and isinstance(one, Markov) and isinstance(other, Markov):
            failing.append((report, one, other))
    result = CallableAudit(subject, "step", reports)
    if failing:
        # The smallest failing table; its horizon is then cut to the fewest tokens that still show the fault.
        report, one, other = min(failing, key=lambda item: item[1].size)
        for length in range(1, horizon):
            shorter = replay_step(
                function,
                one,
                other,
                **{**settings, "horizon": length},
                budget=Budget(runs=max_runs),
                monte_carlo=0,
            )
            if shorter.verdict is Verdict.BIASED:
                report, settings = shorter, {**settings, "horizon": length}
                break
        result.counterexample = from_report(report, "step", subject, one, other, **settings)
    return result

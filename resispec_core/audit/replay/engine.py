"""Exact audits of unmodified samplers by replay: ``replay_verify`` and ``replay_step``."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, Literal, NamedTuple

from resispec_core.arrays import as_float, is_rational
from resispec_core.audit.replay.compare import report_of
from resispec_core.audit.replay.monte_carlo import monte_carlo as closing_run
from resispec_core.audit.replay.outcomes import Crash, Outcomes, Tokens, outcomes
from resispec_core.audit.replay.patches import controlled
from resispec_core.audit.replay.report import ReplayReport
from resispec_core.audit.replay.rows import (
    Library,
    Numbers,
    convert,
    copy,
    exact,
    forked,
    nonempty,
    plain_prefix,
    token_list,
    unchanged,
)
from resispec_core.audit.replay.trail import ONE, ZERO, Budget, RefusalError
from resispec_core.audit.verdict import Verdict, plain
from resispec_core.drafts import DrawMode, draw_mode
from resispec_core.errors import InputError
from resispec_core.laws import law, same_vocabulary

Model = Callable[[tuple[int, ...]], Any]
MONTE_CARLO = 1000


def replay_verify(
    verify: Callable[..., Any],
    target: Any,
    draft: Any,
    candidates: int = 1,
    *,
    draw: str | DrawMode = "iid",
    library: Library = "numpy",
    numbers: Numbers | Literal["auto"] = "auto",
    precision: str | None = None,
    grid: bool = False,
    monte_carlo: int = MONTE_CARLO,
    budget: Budget | None = None,
    name: str | None = None,
) -> ReplayReport:
    """Does ``verify(target, draft, candidates, rng) -> token`` return a token with the target law?

    ``verify`` is called unmodified: rows as float64 NumPy arrays of shape (V,), ``candidates`` as a list of n token
    ids drawn as ``draw`` says (enumerated here, exactly), ``rng`` a ``numpy.random.Generator``. With
    ``library="torch"`` rows and candidates are tensors and ``rng`` is torch's default generator.

    ``numbers``: "float64" and "float32" rows give ``EXACT_WITHIN`` a rounding bound (see ``rounding``); "rational"
    rows are object arrays of ``Fraction``, with which a sampler in plain NumPy arithmetic is proved ``EXACT``.
    "auto" runs float64 and then, if nothing is wrong, rationals where the sampler accepts them. ``precision``: the
    type the sampler computes in ("float32", "float16", "bfloat16") where that is less than the rows'; it widens the
    rounding bound. ``grid``: count coins on the generator's real grid instead; never mixed with the bias figure.
    There any mass where the target has none is a finding, however small.

    Refuses (``RefusalError``) every random source it cannot follow, by name. A crash of the sampler is an outcome.
    Cost: one run a path; V^n candidate tuples times the paths of each. Cannot detect: faults that other rows would
    show (see ``search``), and anything outside ``verify``.
    """
    p, q = law(target, name="target"), law(draft, name="draft")
    if is_rational(p) != is_rational(q):
        p, q = as_float(p), as_float(q)
    same_vocabulary(p, q)
    mode = draw_mode(draw)
    mode.check(q, candidates)
    budget = budget or Budget()
    subject = name or str(getattr(verify, "__name__", "verify"))
    picker = random.Random(1)  # made here: inside the replay a seed has no effect
    describe = {
        "target": [plain(x) for x in p],
        "draft": [plain(x) for x in q],
        "candidates": candidates,
        "draw": mode.name,
        "library": library,
    }

    def audit(kind: Numbers) -> _Explored:
        rows = convert(p, kind, library), convert(q, kind, library)
        exact_p, exact_q = exact(rows[0]), exact(rows[1])
        found, changed, tuples = Outcomes(), False, {}

        def call_forked(drawn: Tokens) -> Any:
            nonlocal changed
            copies = copy(rows[0]), copy(rows[1])
            result = verify(*copies, token_list(drawn, library), forked(library))
            changed = changed or not (unchanged(copies[0], rows[0]) and unchanged(copies[1], rows[1]))
            return result

        for drawn, weight in mode.tuples(exact_q, candidates):
            here = outcomes(
                partial(call_forked, drawn), budget, grid=grid, neglect=kind != "rational" and not grid
            )
            before = {key: found.heaviest.get(key) for key in here.law}
            found.merge(here, weight)
            tuples.update({key: drawn for key in here.law if found.heaviest[key] != before[key]})
        expected: dict[Tokens, Fraction] = {
            (token,): mass for token, mass in enumerate(exact_p.tolist()) if mass > 0
        }
        report = report_of(
            found,
            expected,
            1,
            p.size,
            kind,
            budget,
            subject,
            "verify",
            grid,
            candidates + 2,
            tuples,
            precision,
        )
        if changed:
            report.notes.append(
                "the sampler changes its input rows in place (the caller's arrays are modified)"
            )
        report.inputs = describe
        sampled = convert(p, _sampled(kind), library), convert(q, _sampled(kind), library)
        plan = [(drawn, float(weight)) for drawn, weight in mode.tuples(exact_q, candidates)]

        def sample(rng: Any) -> Any:
            drawn = picker.choices([item[0] for item in plan], weights=[item[1] for item in plan])[0]
            return verify(copy(sampled[0]), copy(sampled[1]), token_list(drawn, library), rng)

        return _Explored(report, found, sample, precision or kind)

    return _closed(audit, numbers, library, grid, monte_carlo, is_rational(p))


def replay_step(
    step: Callable[..., Any],
    target_model: Model,
    draft_model: Model,
    *,
    prompt: Sequence[int] = (),
    horizon: int = 3,
    extend: Literal["target", "step"] = "step",
    library: Library = "numpy",
    numbers: Numbers | Literal["auto"] = "auto",
    precision: str | None = None,
    grid: bool = False,
    monte_carlo: int = MONTE_CARLO,
    budget: Budget | None = None,
    name: str | None = None,
) -> ReplayReport:
    """Does ``step(target_model, draft_model, prefix, rng) -> new tokens`` keep the law of the *sequence*?

    The models are callables from a tuple of token ids to a law (see ``tables.Markov``). The step is called until
    ``horizon`` tokens follow the prompt, longer results cut, and the law of those tokens is compared with the
    target's own. ``extend="target"`` makes one step and lets the target continue (cheaper, and enough: a step that
    is exact at every prefix is exact repeated). Steps at equal prefixes are taken to have equal laws.

    Numbers, grid, refusals and crashes: as for ``replay_verify``. Many faults show only with two or more tokens.
    """
    if horizon < 1:
        raise InputError(f"horizon is {horizon}; at least one token must be compared")
    budget = budget or Budget()
    prompt = tuple(prompt)
    start = law(target_model(prompt), name="target")
    size, rational = start.size, is_rational(start)
    subject = name or str(getattr(step, "__name__", "step"))

    def audit(kind: Numbers) -> _Explored:
        rows = {"target": target_model, "draft": draft_model}

        @cache
        def row(which: str, prefix: Tokens, kind: Numbers = kind) -> Any:
            checked = law(rows[which](prefix), name=f"{which} row after {list(prefix)}")
            return convert(checked, kind, library)

        def model(which: str, kind: Numbers) -> Model:
            return lambda prefix: copy(row(which, plain_prefix(prefix), kind))

        def call_at(prefix: Tokens, rng: Any, kind: Numbers = kind) -> Any:
            return step(model("target", kind), model("draft", kind), token_list(prefix, library), rng)

        @cache
        def outs(prefix: Tokens) -> Outcomes:
            return outcomes(
                lambda: nonempty(call_at(prefix, forked(library))),
                budget,
                grid=grid,
                neglect=kind != "rational" and not grid,
            )

        def target_row(prefix: Tokens) -> list[Fraction]:
            return list(exact(row("target", prefix)).tolist())

        found = Outcomes()

        def grow(prefix: Tokens, weight: Fraction, decisions: list[Any], stepping: bool) -> None:
            done = len(prefix) - len(prompt)
            if done >= horizon:
                found.add(prefix[len(prompt) :][:horizon], weight, decisions)
                return
            if not stepping:
                for token, mass in enumerate(target_row(prefix)):
                    if mass > 0:
                        grow((*prefix, token), weight * mass, decisions, False)
                return
            here = outs(prefix)
            for key, mass in here.law.items():
                trail = decisions + here.heaviest[key][1]
                if isinstance(key, Crash):
                    found.add(key, weight * mass, trail)
                else:
                    cut = (*prefix, *key)[: len(prompt) + horizon]
                    if any(token >= size for token in key):
                        bad = Crash("InvalidToken", f"returned {list(key)}, vocabulary {size}")
                        found.add(bad, weight * mass, trail)
                    else:
                        grow(cut, weight * mass, trail, extend == "step")

        grow(prompt, ONE, [], True)
        known = [outs(prefix) for prefix in _seen(outs, prompt, horizon, extend)]
        found.paths = sum(part.paths for part in known)
        found.inexact = sum(part.inexact for part in known)
        found.neglected = sum((part.neglected for part in known), ZERO)
        for part in known:
            found.reused += part.reused
        expected: dict[Tokens, Fraction] = {(): ONE}
        for _ in range(horizon):
            expected = {
                (*prefix, token): weight * mass
                for prefix, weight in expected.items()
                for token, mass in enumerate(target_row((*prompt, *prefix)))
                if mass > 0
            }
        report = report_of(
            found, expected, horizon, size, kind, budget, subject, "step", grid, 4 * horizon, {}, precision
        )
        report.inputs = {"prompt": list(prompt), "horizon": horizon, "extend": extend, "library": library}
        return _Explored(
            report, outs(prompt), lambda rng: call_at(prompt, rng, _sampled(kind)), precision or kind
        )

    return _closed(audit, numbers, library, grid, monte_carlo, rational)


def _seen(outs: Callable[[Tokens], Outcomes], prompt: Tokens, horizon: int, extend: str) -> Iterator[Tokens]:
    """Every prefix at which the step was explored."""
    waiting, seen = [prompt], {prompt}
    while waiting:
        prefix = waiting.pop()
        yield prefix
        if extend == "target":
            return
        for key in outs(prefix).law:
            longer = prefix if isinstance(key, Crash) else (*prefix, *key)
            if longer not in seen and len(longer) - len(prompt) < horizon and not isinstance(key, Crash):
                seen.add(longer)
                waiting.append(longer)


class _Explored(NamedTuple):
    """A replay before its closing Monte Carlo: the report, the outcomes of one call, and that call unpatched."""

    report: ReplayReport
    found: Outcomes
    sample: Callable[[Any], Any]
    precision: str


def _sampled(kind: Numbers) -> Numbers:
    """The rows that the closing Monte Carlo hands over: NumPy draws from floats, not from ``Fraction``."""
    return "float64" if kind == "rational" else kind


def _closed(
    audit: Callable[[Numbers], _Explored],
    numbers: str,
    library: Library,
    grid: bool,
    samples: int,
    rational: bool,
) -> ReplayReport:
    """The replay in one number system, or in floats and then rationals, and the closing Monte Carlo of the first."""
    with controlled() as watch:
        first = audit("float64" if numbers == "auto" else numbers)  # type: ignore[arg-type]
        report = first.report
        wanted = report.verdict is Verdict.EXACT_WITHIN or (rational and report.verdict is Verdict.BIASED)
        if numbers == "auto" and wanted and not grid and library == "numpy":
            report = _rational_too(audit, report)
    if samples and not grid and watch is not None:
        report.monte_carlo = closing_run(first.sample, samples, library, first.found, first.precision, watch)
    return report


def _rational_too(audit: Callable[[Numbers], _Explored], first: ReplayReport) -> ReplayReport:
    """The replay with rational rows where it says more than the float64 one; else that, with the reason noted."""
    try:
        second = audit("rational").report
    except RefusalError as reason:
        first.notes.append(f"no rational run: {reason}")
        return first
    if second.crash_mass > first.crash_mass:
        first.notes.append(
            f"no rational run: with Fraction rows the sampler raised {next(iter(second.crashes))}"
        )
        return first
    if second.verdict is Verdict.EXACT:
        second.notes = [*first.notes, f"float64 rows: TV = {float(first.total_variation):.3g}"]
        return second
    if second.verdict is Verdict.BIASED:
        if first.verdict is Verdict.EXACT_WITHIN:
            second.notes.append(
                f"float64 rows hide this in rounding: TV = {float(first.total_variation):.3g}"
            )
        return second
    if first.verdict is Verdict.EXACT_WITHIN:
        first.notes.append("rational rows do not stay rational inside the sampler; the float64 result stands")
    return first

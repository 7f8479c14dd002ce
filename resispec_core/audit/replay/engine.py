"""Exact audits of unmodified samplers by replay: ``replay_verify`` and ``replay_step``."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, Literal

from resispec_core.arrays import as_float, is_rational
from resispec_core.audit.replay.compare import report_of
from resispec_core.audit.replay.monte_carlo import monte_carlo as close_with_monte_carlo
from resispec_core.audit.replay.outcomes import Crash, Outcomes, Tokens, outcomes
from resispec_core.audit.replay.patches import controlled, in_control
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
    describe = {
        "target": [plain(x) for x in p],
        "draft": [plain(x) for x in q],
        "candidates": candidates,
        "draw": mode.name,
        "library": library,
    }

    def audit(kind: Numbers, samples: int) -> ReplayReport:
        rows = convert(p, kind, library), convert(q, kind, library)
        exact_p, exact_q = exact(rows[0]), exact(rows[1])
        found, changed, tuples = Outcomes(), False, {}

        def call_on(drawn: Tokens, rng: Any) -> Any:
            nonlocal changed
            copies = copy(rows[0]), copy(rows[1])
            ids = token_list(drawn, library)
            result = verify(*copies, ids, rng)
            changed = changed or not (unchanged(copies[0], rows[0]) and unchanged(copies[1], rows[1]))
            return result

        def call_forked(drawn: Tokens) -> Any:
            return call_on(drawn, forked(library))

        with controlled():
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
        if samples and not grid and not in_control():
            plan = [(drawn, float(weight)) for drawn, weight in mode.tuples(exact_q, candidates)]
            picker = random.Random(1)

            def sample(rng: Any) -> Any:
                drawn = picker.choices([item[0] for item in plan], weights=[item[1] for item in plan])[0]
                return call_on(drawn, rng)

            report.monte_carlo = close_with_monte_carlo(sample, samples, library, found, precision or kind)
        report.inputs = describe
        return report

    return _in_both_number_systems(audit, numbers, library, grid, monte_carlo, is_rational(p))


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

    def audit(kind: Numbers, samples: int) -> ReplayReport:
        rows = {"target": target_model, "draft": draft_model}

        @cache
        def row(which: str, prefix: Tokens) -> Any:
            checked = law(rows[which](prefix), name=f"{which} row after {list(prefix)}")
            return convert(checked, kind, library)

        def model(which: str) -> Model:
            return lambda prefix: copy(row(which, plain_prefix(prefix)))

        def call_at(prefix: Tokens, rng: Any) -> Any:
            return step(model("target"), model("draft"), token_list(prefix, library), rng)

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

        with controlled():
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
        if samples and not grid and not in_control():
            report.monte_carlo = close_with_monte_carlo(
                lambda rng: call_at(prompt, rng), samples, library, outs(prompt), precision or kind
            )
        report.inputs = {"prompt": list(prompt), "horizon": horizon, "extend": extend, "library": library}
        return report

    return _in_both_number_systems(audit, numbers, library, grid, monte_carlo, rational)


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


def _in_both_number_systems(
    audit: Callable[[Numbers, int], ReplayReport],
    numbers: str,
    library: str,
    grid: bool,
    samples: int,
    rational: bool,
) -> ReplayReport:
    if numbers != "auto":
        return audit(numbers, samples)  # type: ignore[arg-type]
    first = audit("float64", samples)
    wanted = first.verdict is Verdict.EXACT_WITHIN or (rational and first.verdict is Verdict.BIASED)
    if grid or library != "numpy" or not wanted:
        return first
    try:
        second = audit("rational", 0)
    except RefusalError as reason:
        first.notes.append(f"no rational run: {reason}")
        return first
    if second.crash_mass > first.crash_mass:
        first.notes.append(
            f"no rational run: with Fraction rows the sampler raised {next(iter(second.crashes))}"
        )
        return first
    if second.verdict is Verdict.EXACT:
        second.monte_carlo = first.monte_carlo
        second.notes = [*first.notes, f"float64 rows: TV = {float(first.total_variation):.3g}"]
        return second
    if second.verdict is Verdict.BIASED:
        second.monte_carlo = first.monte_carlo
        if first.verdict is Verdict.EXACT_WITHIN:
            second.notes.append(
                f"float64 rows hide this in rounding: TV = {float(first.total_variation):.3g}"
            )
        return second
    if first.verdict is Verdict.EXACT_WITHIN:
        first.notes.append("rational rows do not stay rational inside the sampler; the float64 result stands")
    return first

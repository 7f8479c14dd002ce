"""Exact audits of unmodified samplers by replay: ``replay_verify`` and ``replay_step``."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from resispec_core.arrays import Array, is_rational
from resispec_core.audit.replay.coin import Symbol
from resispec_core.audit.replay.numpy_source import ForkGenerator
from resispec_core.audit.replay.outcomes import Crash, Outcomes, Tokens, outcomes, read_tokens
from resispec_core.audit.replay.patches import Watch, controlled, in_control, one_thread
from resispec_core.audit.replay.report import ReplayReport, Witness
from resispec_core.audit.replay.trail import ONE, ZERO, Budget, LeakError, RefusalError
from resispec_core.audit.verdict import Verdict, plain
from resispec_core.drafts import DrawMode, draw_mode
from resispec_core.errors import InputError
from resispec_core.laws import as_rational, law, same_vocabulary

Numbers = Literal["float64", "float32", "rational"]
Library = Literal["numpy", "torch"]
Model = Callable[[tuple[int, ...]], Any]
EPSILON = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "rational": 0.0,
}
MONTE_CARLO = 1000
FALSE_ALARM = 1e-9


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
        p, q = p.astype(np.float64), q.astype(np.float64)
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
        rows = _convert(p, kind, library), _convert(q, kind, library)
        exact_p, exact_q = _exact(rows[0]), _exact(rows[1])
        found, changed, tuples = Outcomes(), False, {}

        def call_on(drawn: Tokens, rng: Any) -> Any:
            nonlocal changed
            copies = _copy(rows[0]), _copy(rows[1])
            ids = _token_list(drawn, library)
            result = verify(*copies, ids, rng)
            changed = changed or not (_equal(copies[0], rows[0]) and _equal(copies[1], rows[1]))
            return result

        def call_forked(drawn: Tokens) -> Any:
            return call_on(drawn, _forked(library))

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
        report = _report(
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

            report.monte_carlo = _monte_carlo(sample, samples, library, found, precision or kind)
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
            return _convert(checked, kind, library)

        def model(which: str) -> Model:
            return lambda prefix: _copy(row(which, _plain_prefix(prefix)))

        def call_at(prefix: Tokens, rng: Any) -> Any:
            return step(model("target"), model("draft"), _token_list(prefix, library), rng)

        @cache
        def outs(prefix: Tokens) -> Outcomes:
            return outcomes(
                lambda: _nonempty(call_at(prefix, _forked(library))),
                budget,
                grid=grid,
                neglect=kind != "rational" and not grid,
            )

        def target_row(prefix: Tokens) -> list[Fraction]:
            return list(_exact(row("target", prefix)).tolist())

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
        report = _report(
            found, expected, horizon, size, kind, budget, subject, "step", grid, 4 * horizon, {}, precision
        )
        if samples and not grid and not in_control():
            report.monte_carlo = _monte_carlo(
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


def rounding(size: int, stages: int, numbers: str) -> float:
    """Bound on the TV that rounding alone may add: ``stages·(16 + 2 log2 V)·eps``, as for ``marginal.rounding_bound``.

    ``stages``: candidates + 2 for a verifier; 4 per token of the horizon for a step.
    """
    if numbers not in EPSILON:
        raise InputError(f"precision is {numbers!r}; known: {', '.join(EPSILON)}")
    return stages * (16 + 2 * math.log2(max(size, 2))) * EPSILON[numbers]


def _report(
    found: Outcomes,
    expected: dict[Tokens, Fraction],
    horizon: int,
    size: int,
    numbers: Numbers,
    budget: Budget,
    subject: str,
    signature: str,
    grid: bool,
    stages: int,
    tuples: dict[Any, Tokens],
    precision: str | None,
) -> ReplayReport:
    crashes: dict[str, Fraction] = {}
    got: dict[Tokens, Fraction] = {}
    for key, mass in found.law.items():
        if isinstance(key, Crash):
            crashes[str(key)] = crashes.get(str(key), ZERO) + mass
        elif len(key) != horizon or any(token >= size for token in key):
            name = f"InvalidToken: returned {list(key)}, vocabulary {size}"
            crashes[name] = crashes.get(name, ZERO) + mass
        else:
            got[key] = mass
    crash_mass = sum(crashes.values(), ZERO)
    if sum(found.law.values(), ZERO) != 1:
        raise LeakError("the outcomes do not sum to 1; this is a fault of the harness")
    tv = _variation(got, expected, crash_mass)
    first = _variation(_first(got), _first(expected), crash_mass)
    zero_mass = sum((mass for key, mass in got.items() if key not in expected), ZERO)
    allowed = rounding(size, stages, precision or numbers) + float(found.neglected)
    bound: Fraction | float
    if tv > allowed or (grid and zero_mass > 0):
        verdict, bound = Verdict.BIASED, tv
    elif numbers == "rational" and found.inexact == 0:
        verdict, bound = (Verdict.EXACT if tv == 0 else Verdict.BIASED), tv
    elif numbers == "rational":
        verdict, bound = Verdict.INCONCLUSIVE, ONE
    else:
        verdict, bound = Verdict.EXACT_WITHIN, float(tv) + allowed
    if numbers == "rational" and verdict is Verdict.BIASED and tv < 1e-12:
        verdict, bound = Verdict.INCONCLUSIVE, ONE  # floats crept in: a gap of their size proves nothing
    witness = None
    if verdict is Verdict.BIASED:
        witness = _witness(found, got, expected, tuples)
    notes = [f"reused randomness: {place} ({count} paths)" for place, count in found.reused.most_common(3)]
    if numbers == "float64" and precision is None and rounding(size, stages, "float32") > tv > allowed:
        notes.append(
            "the gap is of the size of float32 rounding; if float32 is meant, pass precision='float32'"
        )
    return ReplayReport(
        subject=subject,
        signature=signature,
        verdict=verdict,
        bound=bound,
        total_variation=tv,
        first_token=first,
        zero_mass=zero_mass,
        crash_mass=crash_mass,
        crashes=crashes,
        law=got,
        expected=expected,
        horizon=horizon,
        vocabulary=size,
        paths=found.paths,
        runs=budget.used,
        sites=dict(budget.sites.most_common(10)),
        numbers=numbers,
        rounding=allowed,
        inexact=found.inexact,
        witness=witness,
        grid=grid,
        notes=notes,
    )


def _variation(got: dict[Tokens, Fraction], expected: dict[Tokens, Fraction], crash: Fraction) -> Fraction:
    keys = got.keys() | expected.keys()
    return (sum((abs(got.get(key, ZERO) - expected.get(key, ZERO)) for key in keys), ZERO) + crash) / 2


def _first(table: dict[Tokens, Fraction]) -> dict[Tokens, Fraction]:
    result: dict[Tokens, Fraction] = {}
    for tokens, mass in table.items():
        result[tokens[:1]] = result.get(tokens[:1], ZERO) + mass
    return result


def _witness(
    found: Outcomes, got: dict[Tokens, Fraction], expected: dict[Tokens, Fraction], tuples: dict[Any, Tokens]
) -> Witness | None:
    if not got:
        return None
    worst = max(got, key=lambda key: got[key] - expected.get(key, ZERO))
    steps = found.heaviest[worst][1]
    return Witness(
        worst,
        got[worst],
        expected.get(worst, ZERO),
        tuples.get(worst),
        tuple(
            f"{step.label} ({step.site}, probability {float(step.weights[step.taken]):.4g})" for step in steps
        ),
    )


# rows in the form a sampler takes them


def _convert(row: Array, numbers: Numbers, library: Library) -> Any:
    exact = as_rational(row)
    if numbers == "rational":
        return exact if is_rational(row) else as_rational(simple(row))
    plain_row = row.astype(np.float64 if numbers == "float64" else np.float32)
    if library == "torch":
        import torch

        return torch.tensor(plain_row)
    return plain_row


def simple(row: Array) -> Array:
    """A float row as the nearest rationals of small denominator (0.1 becomes 1/10), summing to 1."""
    close = np.array([Fraction(x).limit_denominator(10**6) for x in row.tolist()], dtype=object)
    return close / close.sum()


def _exact(row: Any) -> Array:
    values = row.tolist()
    return as_rational(np.array(values, dtype=object))


def _copy(row: Any) -> Any:
    return row.clone() if hasattr(row, "clone") else row.copy()


def _equal(a: Any, b: Any) -> bool:
    """Whether a row the sampler was given is as before; one that now holds coins is not."""
    entries = a.tolist()
    return not any(isinstance(entry, Symbol) for entry in entries) and bool(entries == b.tolist())


def _token_list(tokens: Sequence[int], library: Library) -> Any:
    if library == "torch":
        import torch

        return torch.tensor(list(tokens), dtype=torch.int64)
    return list(tokens)


def _plain_prefix(prefix: Any) -> Tokens:
    return tuple(int(token) for token in (prefix.tolist() if hasattr(prefix, "tolist") else prefix))


def _forked(library: Library) -> Any:
    if library == "torch":
        import torch

        return torch.default_generator
    return ForkGenerator()


def _nonempty(tokens: Any) -> Any:
    if not hasattr(tokens, "shape") and isinstance(tokens, (list, tuple)) and len(tokens) == 0:
        raise ValueError("the step returned no token")
    return tokens


# the closing Monte Carlo of the unpatched function


def _samples(call: Callable[[Any], Any], count: int, library: Library) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    watch = Watch()
    try:
        random.seed(20)
        np.random.seed(20)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(20)
        rng: Any = np.random.default_rng(20) if library == "numpy" else _forked(library)
        with one_thread():
            for _ in range(count):
                try:
                    tokens, _laws = read_tokens(_settled(call(rng)))
                except Exception as error:
                    tokens = Crash(type(error).__name__, "")
                key = tokens.kind if isinstance(tokens, Crash) else tokens
                counts[key] = counts.get(key, 0) + 1
    finally:
        watch.restore()
    return counts


def _settled(returned: Any) -> Any:
    return returned.reshape(-1).tolist() if hasattr(returned, "untyped_storage") else returned


def _monte_carlo(
    call: Callable[[Any], Any], count: int, library: Library, found: Outcomes, precision: str
) -> int:
    """Each outcome's frequency against its replayed probability, at ``FALSE_ALARM`` for all together.

    An outcome seen with frequency f has probability x with ``count·KL(f‖x) ≤ log(2K/FALSE_ALARM)``, K outcomes
    (Chernoff). The real generator's grid and rounding may move x by eps of the working precision; an outcome that
    the replay gave probability below 1e-12 must otherwise not be seen at all.
    """
    counts = _samples(call, count, library)
    expected: dict[Any, float] = {}
    for key, mass in found.law.items():
        name = key.kind if isinstance(key, Crash) else key
        expected[name] = expected.get(name, 0.0) + float(mass)
    names = expected.keys() | counts.keys()
    limit = math.log(2 * len(names) / FALSE_ALARM) / count
    slack = 4 * EPSILON[precision] if precision in ("float16", "bfloat16") else 0.0
    for name in names:
        x, f = expected.get(name, 0.0), counts.get(name, 0) / count
        if _kl(f, min(max(f, x - slack), x + slack, 1.0)) > limit:
            raise LeakError(
                f"unpatched, the sampler gave {name} in {counts.get(name, 0)} of {count} runs; replayed it has "
                f"probability {x:.6g}: the replay did not see the sampler's real randomness"
            )
    return count


def _kl(f: float, x: float) -> float:
    if f == x:
        return 0.0
    if (f > 0 and x < 1e-12) or (f < 1 and x > 1 - 1e-12):
        return math.inf
    first = f * math.log(f / x) if f > 0 else 0.0
    return first + ((1 - f) * math.log((1 - f) / (1 - x)) if f < 1 else 0.0)

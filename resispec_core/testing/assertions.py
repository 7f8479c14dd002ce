"""Assertions for tests of verifiers. They work under pytest (with a summary), unittest, or alone.

Each returns its report, and raises ``AssertionError`` with the verdict, the witness, and the counterexample file that
it wrote. What cannot be audited at all (``InputError``, ``RefusalError``, ``BudgetExceededError``) is raised as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from resispec_core.adapters.callable import audit_callable, subject_of
from resispec_core.audit.counterexample import Counterexample, from_report
from resispec_core.audit.pair import audit
from resispec_core.audit.replay.engine import replay_verify
from resispec_core.audit.sequential import SequentialReport, sequential_audit
from resispec_core.audit.verdict import Verdict
from resispec_core.errors import InputError
from resispec_core.laws import law
from resispec_core.rules import RULES, Rule
from resispec_core.rules import rule as named_rule
from resispec_core.testing.session import current, describe

EXACT = (Verdict.EXACT, Verdict.EXACT_WITHIN)


def assert_exact(
    verifier: str | Rule | Callable[..., Any],
    case: Any = None,
    *,
    target: Any = None,
    draft: Any = None,
    candidates: int | None = None,
    draw: str | None = None,
    **settings: Any,
) -> Any:
    """``verifier`` returns a token with the target law on this case: ``EXACT``, or ``EXACT_WITHIN`` its rounding bound.

    ``verifier``: a rule (or its name), or ``verify(target, draft, candidates, rng) -> token`` for the replay. The case:
    a ``VerificationCase``, or ``target``, ``draft`` (laws of shape (V,)) and ``candidates`` (default 1). ``settings``
    go to ``audit`` or ``replay_verify``.

    Cost: every path. Cannot detect: what other cases would show (draw them with ``verification_cases``).
    """
    __tracebackhide__ = True
    if case is not None:
        if target is not None or draft is not None or candidates is not None:
            raise InputError("a case and target, draft or candidates were given; give one or the other")
        target, draft, candidates = case.target, case.draft, case.candidates
        draw = draw or _draw_of(case, verifier)
    if target is None or draft is None:
        raise InputError("no case was given; pass a VerificationCase, or target= and draft=")
    count = 1 if candidates is None else candidates
    session = current()
    if isinstance(verifier, (str, Rule)):
        rule = named_rule(verifier) if isinstance(verifier, str) else verifier
        report: Any = audit(rule, target, draft, count, draw=draw, **settings)
        subject = rule.name
        kept = {"candidates": count, "draw": report.draw, **settings}
        options = {name: getattr(rule, name) for name in rule.options()}
        known = type(rule) is RULES.get(rule.name)
    else:
        mode = draw or "iid"
        report = replay_verify(verifier, target, draft, count, draw=mode, **settings)
        subject = subject_of(verifier)
        kept = {"candidates": count, "draw": mode, **_plain(settings)}
        options, known = {}, "<" not in subject
    session.record(subject.rpartition(":")[2], report)
    if report.verdict in EXACT:
        return report
    kind = "rule" if isinstance(verifier, (str, Rule)) else "verify"
    found = from_report(report, kind, subject, law(target), law(draft), **kept)
    found.options = options
    raise AssertionError(_failure(subject, report, found, known))


def assert_exact_sampler(sampler: str | Callable[..., Any], **settings: Any) -> Any:
    """``sampler`` keeps the target law on every hard input that the suite knows, and on the worst it finds from there.

    ``sampler``: a callable with one of the three signatures (``verify``, ``step``, ``kernel``), or ``module:callable``.
    ``settings`` go to ``adapters.callable.audit_callable`` (signature, candidates, draw, library, horizon, target,
    draft, ...). A failing input is shrunk first. A kernel can be measured only and never passes here: use
    ``assert_not_refuted``, or the replay's signatures.
    """
    __tracebackhide__ = True
    result = audit_callable(sampler, **settings)
    for report in result.reports:
        current().record(result.subject.rpartition(":")[2], report)
    if result.verdict in EXACT:
        return result
    text = _failure(result.subject, result.worst, result.counterexample, "<" not in result.subject)
    if result.verdict is Verdict.NOT_REFUTED:
        text += "\nmeasured is not proved: assert on the verdict of tape_audit, or use assert_not_refuted"
    raise AssertionError(text)


def assert_not_refuted(
    sample: Callable[[int], Any],
    target: Any,
    *,
    samples: int = 2**17,
    alpha: float | None = None,
    smallest: float | None = None,
    name: str | None = None,
) -> SequentialReport:
    """Draws of ``sample(count)`` do not refute ``target``. This never proves it: read ``refuted_above`` of the report.

    ``alpha``: chance of a false alarm; by default the session's next share. ``smallest``: the TV that the draws must be
    able to refute; with fewer draws than that takes, the assertion fails as inconclusive.
    """
    __tracebackhide__ = True
    session = current()
    level = session.spend() if alpha is None else alpha
    report = sequential_audit(sample, target, alpha=level, samples=samples, smallest=smallest, name=name)
    session.record(report.subject, report)
    if report.verdict is Verdict.BIASED:
        raise AssertionError(
            f"{report.subject}: {report}; counts {list(report.counts)} for {law(target).tolist()}"
        )
    if smallest is not None and report.refuted_above > smallest:
        raise AssertionError(
            f"{report.subject}: INCONCLUSIVE, {report.samples} draws refute only what is further than TV "
            f"{report.refuted_above:.2g}, not {smallest:.2g}; raise samples"
        )
    return report


def _draw_of(case: Any, verifier: Any) -> str | None:
    """How the case's candidates are drawn; a rule that is not meant for "iid", the default, keeps its own mode."""
    draw: str | None = getattr(case, "draw", None)
    if isinstance(verifier, (str, Rule)) and draw == "iid":
        return None
    return draw


def _failure(subject: str, report: Any, found: Counterexample | None, replayable: bool) -> str:
    lines = [f"{subject}: {describe(report)}"]
    if found is not None:
        witness = found.found.get("witness")
        lines.append(f"target {found.target}, draft {found.draft}, {found.settings}")
        if witness:
            lines.append(f"witness: {witness}")
        path = found.save(current().file_for(subject))
        lines.append(f"counterexample written to {path}")
        if replayable:
            lines.append(f"see it again: resispec replay {path}")
    return "\n".join(lines)


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that a counterexample file can hold and that change what is audited."""
    return {
        name: settings[name]
        for name in ("library", "numbers", "precision", "grid")
        if settings.get(name) is not None
    }

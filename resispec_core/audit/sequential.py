"""A sequential test for what can only be sampled: a running server, a kernel with its own generator.

Draws x₁, x₂, … are compared with a known target law p. Under the null hypothesis, that each draw given the earlier ones
has law p, the likelihood ratio of any fixed alternative against p is a martingale of mean 1, and so is its average over
a mixture of alternatives. The mixture here is of Dirichlet laws centred on p,

    E_t = mean over κ of  Γ(κ)/Γ(κ+t) · Π_x Γ(κp(x)+n_t(x)) / (Γ(κp(x)) · p(x)^n_t(x)),      κ = 4⁰, 4¹, …, 4¹⁴,

where a large κ looks for small biases. By Ville's inequality P(E_t ≥ 1/α for some t) ≤ α: one may look at any time,
stop at any time and go on later (Robbins 1970; Shafer and Vovk, *Game-Theoretic Foundations for Probability and
Finance*).

The same numerator serves every other law q. So, with probability 1 − α at all times together, the law that is really
drawn obeys KL(p̂ ‖ q) < KL(p̂ ‖ p) + (log(1/α) − log E_t)/t, p̂ the frequencies; with Pinsker's inequality that bounds
TV(q, p). It is the size above which a bias would have been seen, and the test says no more than that: never "pass".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from resispec_core.arrays import Array, as_float
from resispec_core.audit.verdict import EXIT_CODES, Verdict, plain
from resispec_core.errors import InputError
from resispec_core.laws import law

CONCENTRATIONS = 4.0 ** np.arange(15)
"""κ of the mixture: a Dirichlet law with concentration κ strays from p by a total variation of about √(V/κ)/3."""


def log_e_values(counts: Array, target: Array) -> Array:
    """log E for many sessions at once.

    ``counts``: how often each token was drawn, shape (..., V). ``target``: float64 law of shape (V,). Returns shape
    (...), natural logarithms, right to 1e-4 up to 10¹⁰ draws; +inf where a token of target probability zero was drawn.
    Cost: O(15 V) a session.
    """
    counts = np.asarray(counts, dtype=np.float64)
    live = target > 0
    seen, p = counts[..., live], target[live]
    total = counts.sum(axis=-1)
    terms = []
    for kappa in CONCENTRATIONS:
        prior = kappa * p
        ratio = np.where(seen > 0, gammaln(prior + seen) - gammaln(prior) - seen * np.log(p), 0.0)
        terms.append(gammaln(kappa) - gammaln(kappa + total) + ratio.sum(axis=-1))
    found: Array = logsumexp(np.array(terms), axis=0) - math.log(len(CONCENTRATIONS))
    return np.where(counts[..., ~live].sum(axis=-1) > 0, np.inf, found)


def tv_bounds(counts: Array, target: Array, alpha: float) -> Array:
    """Upper bounds on TV(q, p) for the law q that is drawn; one session's bounds are wrong at some time with
    probability at most ``alpha``.

    ``counts``: shape (..., V); returns shape (...). Width: about √(log(1/α)/2n) plus TV(p̂, p); 1 where nothing is
    known.
    """
    counts = np.asarray(counts, dtype=np.float64)
    total = np.maximum(counts.sum(axis=-1), 1)
    found = counts / total[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = np.where(found > 0, found * np.log(found / target), 0.0).sum(axis=-1)
        radius = divergence + (math.log(1 / alpha) - log_e_values(counts, target)) / total
    distance = np.abs(found - target).sum(axis=-1) / 2 + np.sqrt(np.maximum(radius, 0.0) / 2)
    bound: Array = np.where(np.isnan(distance), 1.0, np.minimum(distance, 1.0))
    return np.where(counts.sum(axis=-1) > 0, bound, 1.0)


@dataclass(frozen=True)
class SequentialReport:
    """What the draws so far establish. ``verdict`` is ``BIASED`` or ``NOT_REFUTED``, never more."""

    subject: str
    verdict: Verdict
    samples: int
    log_e: float
    alpha: float
    refuted_above: float
    """Every law further than this from the target (in TV) is refuted by the same draws, at the same level."""
    total_variation: float
    """Of the frequencies; biased upwards by chance, by about √(V/n)/3."""
    zero_mass: int
    """Draws of tokens that the target gives probability zero; one is a proof."""
    counts: tuple[int, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def e_value(self) -> float:
        """The e-value, inf where it is too large for a float. 1/e bounds the chance of so much under the null."""
        return math.inf if self.log_e > 700 else math.exp(self.log_e)

    @property
    def exit_code(self) -> int:
        """1 biased, 3 not refuted."""
        return EXIT_CODES[self.verdict]

    def __str__(self) -> str:
        tail = f"e = {self.e_value:.2g}, n = {self.samples}"
        if self.zero_mass:
            return f"BIASED, {self.zero_mass} of {self.samples} draws where the target has no mass"
        if self.verdict is Verdict.BIASED:
            return f"BIASED at level {self.alpha:.2g}, TV about {self.total_variation:.2g}, {tail}"
        return f"NOT REFUTED above TV {self.refuted_above:.2g}, {tail}"

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "engine": "sequential",
            "subject": self.subject,
            "verdict": self.verdict.value,
            "samples": self.samples,
            "e_value": plain(self.e_value),
            "log_e": plain(self.log_e),
            "alpha": self.alpha,
            "refuted_above": self.refuted_above,
            "total_variation": self.total_variation,
            "zero_mass": self.zero_mass,
            "counts": list(self.counts),
            "notes": list(self.notes),
        }


class SequentialTest:
    """Draws against one target law. Feed it with ``update`` as long as you like; ``report`` is valid at every stop.

    ``alpha``: chance that a sampler with exactly this law is ever called biased. Once rejected it stays rejected.
    Cannot detect: biases below the stated size, faults that cancel over the positions that are fed into one test, and
    anything about laws other than ``target``. A relative error ε of the target row counts from about 1/ε² draws on:
    never for float64, from 10¹⁴ for float32, from 10⁵ for bfloat16.
    """

    def __init__(self, target: Any, alpha: float = 1e-3, *, name: str = "sampler") -> None:
        if not 0 < alpha < 1:
            raise InputError(f"alpha is {alpha}; it is the chance of a false alarm, between 0 and 1")
        self.target = as_float(law(target, name="target"))
        self.alpha, self.name = alpha, name
        self.counts = np.zeros(self.target.size, dtype=np.int64)
        self._highest = 0.0

    def update(self, tokens: Any) -> bool:
        """Count ``tokens`` (ids, any shape); True when the null hypothesis is rejected, now or earlier."""
        ids = np.asarray(tokens)
        if ids.size and not np.issubdtype(ids.dtype, np.integer):
            raise InputError(f"tokens have dtype {ids.dtype}; give integer token ids")
        ids = ids.reshape(-1)
        wrong = ids[(ids < 0) | (ids >= self.target.size)]
        if wrong.size:
            raise InputError(
                f"token {int(wrong[0])} is outside the target's vocabulary of {self.target.size}; pad the target row "
                "with zeros if the sampler can return it"
            )
        self.counts += np.bincount(ids.astype(np.int64), minlength=self.target.size)
        self._highest = max(self._highest, float(log_e_values(self.counts, self.target)))
        return self.rejected

    @property
    def rejected(self) -> bool:
        """Whether the e-value ever reached 1/α."""
        return self._highest >= math.log(1 / self.alpha)

    def report(self, *notes: str) -> SequentialReport:
        """What the draws so far establish."""
        total = int(self.counts.sum())
        frequencies = self.counts / max(total, 1)
        return SequentialReport(
            subject=self.name,
            verdict=Verdict.BIASED if self.rejected else Verdict.NOT_REFUTED,
            samples=total,
            log_e=float(log_e_values(self.counts, self.target)),
            alpha=self.alpha,
            refuted_above=float(tv_bounds(self.counts, self.target, self.alpha)),
            total_variation=float(np.abs(frequencies - self.target).sum()) / 2 if total else 0.0,
            zero_mass=int(self.counts[self.target == 0].sum()),
            counts=tuple(self.counts.tolist()),
            notes=notes,
        )


@dataclass
class AlphaLedger:
    """A false-alarm rate shared by many tests: the i-th gets α/(i(i+1)), which sums to α however many there are."""

    alpha: float = 1e-3
    spent: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha is {self.alpha}; it is the chance of a false alarm, between 0 and 1")

    def spend(self) -> float:
        """The share of the next test."""
        place = len(self.spent) + 1
        self.spent.append(self.alpha / (place * (place + 1)))
        return self.spent[-1]

    def test(self, target: Any, *, name: str = "sampler") -> SequentialTest:
        """The next test, at its share."""
        return SequentialTest(target, self.spend(), name=name)


def sequential_audit(
    sample: Callable[[int], Any],
    target: Any,
    *,
    alpha: float = 1e-3,
    samples: int = 2**17,
    batch: int = 2**10,
    smallest: float | None = None,
    name: str | None = None,
    progress: Callable[[SequentialReport], None] | None = None,
) -> SequentialReport:
    """Draw until biased, until ``samples`` draws, or until every bias above ``smallest`` (a TV) would have been seen.

    ``sample(count)`` returns ``count`` independent token ids. Batches double, so that looking costs little; an
    interrupt ends the run with what was drawn until then, and the result is as valid as any.
    """
    for label, value in (("samples", samples), ("batch", batch)):
        if value < 1:
            raise InputError(f"{label} is {value}; at least one draw is needed")
    test = SequentialTest(target, alpha, name=name or str(getattr(sample, "__name__", "sampler")))
    size = batch
    notes: tuple[str, ...] = ()
    try:
        while (left := samples - int(test.counts.sum())) > 0:
            count = min(size, left)
            drawn = np.asarray(sample(count))
            if drawn.size != count:
                raise InputError(
                    f"sample({count}) returned {drawn.size} tokens; it must return as many as asked for"
                )
            done = test.update(drawn)
            report = test.report()
            if progress is not None:
                progress(report)
            if done or (smallest is not None and report.refuted_above <= smallest):
                break
            size = max(batch, int(test.counts.sum()) // 4)
    except KeyboardInterrupt:
        notes = ("interrupted; the result is valid for the draws made until then",)
    return test.report(*notes)


def evidence(reports: Sequence[SequentialReport]) -> float:
    """log of the product of independent sessions' e-values: one e-value against all of their targets at once."""
    return float(sum(report.log_e for report in reports))

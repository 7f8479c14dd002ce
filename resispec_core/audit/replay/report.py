"""What a replay established, with the numbers that lead to the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from resispec_core.audit.verdict import EXIT_CODES, Verdict, plain


@dataclass(frozen=True)
class Witness:
    """The outcome with the largest excess over the target, and the heaviest decisions that lead to it."""

    outcome: tuple[int, ...]
    found: Fraction
    expected: Fraction
    candidates: tuple[int, ...] | None
    decisions: tuple[str, ...]

    def __str__(self) -> str:
        start = f"with candidates {list(self.candidates)}: " if self.candidates is not None else ""
        return (
            f"outcome {list(self.outcome)} has probability {float(self.found):.6g} instead of "
            f"{float(self.expected):.6g}; {start}{', then '.join(self.decisions) or 'no coin is needed'}"
        )


@dataclass
class ReplayReport:
    """The law of the extended sequence that a sampler produced, against the target's, every path summed.

    ``total_variation``: of the sequence law, a crash counted as a wrong outcome; ``first_token``: of the first token
    alone (zero for many real faults). ``zero_mass``: on sequences that the target gives probability zero.
    """

    subject: str
    signature: str
    verdict: Verdict
    bound: Fraction | float
    total_variation: Fraction
    first_token: Fraction
    zero_mass: Fraction
    crash_mass: Fraction
    crashes: dict[str, Fraction]
    law: dict[tuple[int, ...], Fraction]
    expected: dict[tuple[int, ...], Fraction]
    horizon: int
    vocabulary: int
    paths: int
    runs: int
    sites: dict[str, int]
    numbers: str
    """What the rows were: "rational", "float64" or "float32"."""
    rounding: float
    inexact: int
    witness: Witness | None
    grid: bool = False
    monte_carlo: int = 0
    notes: list[str] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 exact or within a bound, 1 biased, 3 inconclusive."""
        return EXIT_CODES[self.verdict]

    def __str__(self) -> str:
        size = f"TV = {float(self.total_variation):.3g}" if self.total_variation else "TV = 0"
        text = (
            f"{self.verdict.value.replace('_', ' ')}, {self.paths} paths, {size} over {self.horizon} token(s)"
        )
        if self.verdict is Verdict.EXACT_WITHIN:
            text += f", bound {float(self.bound):.2g}"
        if self.crash_mass:
            text += f", crashes with probability {float(self.crash_mass):.3g}"
        if self.zero_mass:
            text += f", mass {float(self.zero_mass):.3g} where the target has none"
        return text + (" [real coin grid]" if self.grid else "")

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary; exact numbers as "a/b"."""

        def table(law: dict[tuple[int, ...], Fraction]) -> dict[str, str]:
            return {",".join(map(str, tokens)): str(mass) for tokens, mass in sorted(law.items())}

        return {
            "engine": "replay",
            "subject": self.subject,
            "signature": self.signature,
            "verdict": self.verdict.value,
            "bound": plain(self.bound),
            "total_variation": plain(self.total_variation),
            "first_token_total_variation": plain(self.first_token),
            "zero_mass": plain(self.zero_mass),
            "crash_mass": plain(self.crash_mass),
            "crashes": {name: plain(mass) for name, mass in self.crashes.items()},
            "horizon": self.horizon,
            "vocabulary": self.vocabulary,
            "paths": self.paths,
            "runs": self.runs,
            "forks_by_call_site": self.sites,
            "numbers": self.numbers,
            "rounding": self.rounding,
            "rounded_thresholds": self.inexact,
            "witness": None if self.witness is None else str(self.witness),
            "real_coin_grid": self.grid,
            "monte_carlo_samples": self.monte_carlo,
            "notes": list(self.notes),
            "law": table(self.law),
            "expected": table(self.expected),
            "inputs": self.inputs,
        }

"""What the assertions of one test run share: a false-alarm rate, a folder for counterexamples, and their verdicts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resispec_core.audit.sequential import AlphaLedger

DEFAULT_ALPHA = 1e-6
DEFAULT_FOLDER = ".resispec"
_WORST_FIRST = ("BIASED", "INCONCLUSIVE", "NOT_REFUTED", "LOSSY_BY_DESIGN", "EXACT_WITHIN", "EXACT")


@dataclass
class Record:
    """The verdicts on one subject within one test, as one line."""

    subject: str
    line: str
    """Of the worst report."""
    verdict: str
    cases: int = 1
    paths: int = 0
    total_variation: float = 0.0

    def add(self, other: Record) -> None:
        """Take in one more case."""
        if _WORST_FIRST.index(other.verdict) < _WORST_FIRST.index(self.verdict):
            self.verdict, self.line = other.verdict, other.line
        self.cases += other.cases
        self.paths += other.paths
        self.total_variation = max(self.total_variation, other.total_variation)

    def __str__(self) -> str:
        if self.cases == 1:
            return f"{self.subject}: {self.line}"
        size = f"TV = {self.total_variation:.3g}" if self.total_variation else "TV = 0"
        name = self.verdict.replace("_", " ")
        return f"{self.subject}: {name}, {self.cases} cases, {self.paths} paths, {size}"


@dataclass
class Session:
    """One test run, or one worker's part of it."""

    alpha: float = DEFAULT_ALPHA
    """False-alarm rate of all statistical assertions of this session together."""
    folder: Path = field(default_factory=lambda: Path(DEFAULT_FOLDER))
    """Where failing counterexamples are written; made when the first one is."""
    test: str = ""
    """The running test, as pytest names it."""
    records: dict[str, Record] = field(default_factory=dict)
    spent: list[float] = field(default_factory=list)
    """Shares of α that the running test took."""
    _ledger: AlphaLedger | None = None

    def begin(self, test: str) -> None:
        """A new test: its verdicts are collected anew; α goes on."""
        self.test, self.records, self.spent = test, {}, []

    def spend(self) -> float:
        """The next share of α: the i-th statistical assertion gets α/(i(i+1))."""
        from resispec_core.audit.sequential import AlphaLedger

        self._ledger = self._ledger or AlphaLedger(self.alpha)
        self.spent.append(self._ledger.spend())
        return self.spent[-1]

    def record(self, subject: str, report: Any) -> None:
        """Keep the verdict of ``report`` on ``subject`` for the summary."""
        verdict = report.verdict.value
        paths = int(getattr(report, "paths", 0))
        tv = float(report.total_variation)
        new = Record(subject, describe(report), verdict, 1, paths, tv)
        if subject in self.records:
            self.records[subject].add(new)
        else:
            self.records[subject] = new

    def file_for(self, subject: str) -> Path:
        """Where the counterexample of the running test goes; one file a test and subject."""
        name = "-".join(part for part in (self.test.rpartition("/")[2], subject.rpartition(":")[2]) if part)
        return self.folder / f"{re.sub(r'[^A-Za-z0-9_.]+', '-', name).strip('-')[:150]}.json"


def describe(report: Any) -> str:
    """A verdict in one line: ``EXACT, 214 paths, TV = 0``."""
    if not hasattr(report, "rule"):  # reports on samplers say it themselves
        return str(report)
    tv = report.total_variation
    size = f"TV = {float(tv):.3g}" if tv else "TV = 0"
    text = f"{report.verdict.value.replace('_', ' ')}, {report.paths} paths, {size}"
    return text + (f", bound {float(report.bound):.2g}" if report.verdict == "EXACT_WITHIN" else "")


_active = Session()


def current() -> Session:
    """The session in force; without the plugin, one of its own."""
    return _active


def activate(session: Session) -> Session:
    """Put ``session`` in force; returns the one before."""
    global _active
    before, _active = _active, session
    return before

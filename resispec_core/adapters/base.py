"""What an adapter returns: one audited function with its version and verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resispec_core.audit.replay import ReplayReport


@dataclass(frozen=True)
class Audited:
    """One function of a package, audited."""

    package: str
    version: str
    function: str
    setting: str
    """Rows, precision and mode of this audit, in words."""
    report: ReplayReport

    def __str__(self) -> str:
        return f"{self.package} {self.version} {self.function} ({self.setting}): {self.report}"

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "package": self.package,
            "version": self.version,
            "function": self.function,
            "setting": self.setting,
            "report": self.report.to_json(),
        }

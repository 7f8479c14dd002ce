"""Exact audits of verification rules: the law of the returned token against the target law."""

from resispec_core.audit.carriers import Carriers, Path
from resispec_core.audit.ceiling import acceptance_ceiling, ceiling
from resispec_core.audit.certify import Bracket, Budget, certify
from resispec_core.audit.distances import Distances, distances
from resispec_core.audit.enumerate import enumerate_paths
from resispec_core.audit.marginal import Marginal
from resispec_core.audit.pair import audit
from resispec_core.audit.paper_check import paper_check_kl, paper_check_law
from resispec_core.audit.verdict import AuditReport, Verdict

__all__ = [
    "AuditReport",
    "Bracket",
    "Budget",
    "Carriers",
    "Distances",
    "Marginal",
    "Path",
    "Verdict",
    "acceptance_ceiling",
    "audit",
    "ceiling",
    "certify",
    "distances",
    "enumerate_paths",
    "paper_check_kl",
    "paper_check_law",
]

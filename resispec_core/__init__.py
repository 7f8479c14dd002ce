"""Says exactly whether a speculative-sampling verifier keeps the target model's distribution."""

from resispec_core import rules
from resispec_core.audit import AuditReport, Verdict, audit
from resispec_core.errors import BudgetExceededError, InputError
from resispec_core.laws import law, law_from_logits, parse_law

__version__ = "0.1.0.dev0"

__all__ = [
    "AuditReport",
    "BudgetExceededError",
    "InputError",
    "Verdict",
    "audit",
    "law",
    "law_from_logits",
    "parse_law",
    "rules",
]

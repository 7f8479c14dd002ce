"""Certified brackets at real vocabularies: see ``certify`` and docs/certified.md."""

from resispec_core.audit.certify.bracket import Bracket, certify
from resispec_core.audit.certify.states import Budget

__all__ = ["Bracket", "Budget", "certify"]

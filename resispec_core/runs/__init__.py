"""Audits of a whole recorded store that are kept, resumed, spread over workers, reported and compared.

A room of its own between ``llama`` and ``report``: it needs the audits and the recorded logits, pages and commands need
it, and it is the only place that imports pyarrow, filelock and distributed (extras `runs` and `distributed`), each
where it is used. docs/runs.md describes the format and what it costs.
"""

from resispec_core.runs.difference import RuleDifference, differences
from resispec_core.runs.plan import Plan
from resispec_core.runs.pools import Pool, dask_pool, in_process, local_pool
from resispec_core.runs.run import Outcome, audit_store
from resispec_core.runs.store import Run
from resispec_core.runs.totals import RuleColumns, rule_columns, rule_totals

__all__ = [
    "Outcome",
    "Plan",
    "Pool",
    "RuleColumns",
    "RuleDifference",
    "Run",
    "audit_store",
    "dask_pool",
    "differences",
    "in_process",
    "local_pool",
    "rule_columns",
    "rule_totals",
]

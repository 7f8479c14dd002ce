"""The totals of one rule over positions, as a table: of an audit just made, or of a run on disk."""

from __future__ import annotations

from rich.table import Table

from resispec_core.audit.positions import PositionsSummary
from resispec_core.cli.output import show, table


def totals_table(title: str, total: PositionsSummary) -> Table:
    """The totals of one rule over positions."""
    # Paths that were not followed can only add: what was found is a lower bound then, and says so, except
    # where the missing mass could not change a printed digit.
    at_least = "≥ " if total.max_unexplored > 1e-9 else ""
    rows = [
        ("verdict", ", ".join(f"{name} on {count}" for name, count in total.verdicts.items())),
        ("total variation, mean", at_least + show(total.mean_total_variation)),
        ("total variation, largest", at_least + show(total.max_total_variation)),
        ("total variation, at most", total.bound),
        ("acceptance, mean", at_least + show(total.mean_acceptance)),
        ("ceiling of any exact rule, mean", total.mean_ceiling),
        ("positions above the ceiling", total.positions_above_ceiling),
        (
            "acceptance of candidates 1, 2, … when looked at",
            at_least + ", ".join(show(value) for value in total.conditional_acceptance),
        ),
        ("mass of the paths not followed, at most", total.max_unexplored),
    ]
    return table(title, ("", ""), rows)

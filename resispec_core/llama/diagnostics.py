"""What the laws at visited nodes say: the ceiling beside the acceptance, and the bias of a rule. Never timed."""

from __future__ import annotations

from typing import Any

from resispec_core.arrays import Array
from resispec_core.audit import audit
from resispec_core.audit.ceiling import ceiling
from resispec_core.drafts import draw_mode
from resispec_core.rules import Rule
from resispec_core.trees import DraftTree, Walk


def node_diagnostics(
    tree: DraftTree,
    found: Walk,
    laws: dict[int, tuple[Array, Array | None]],
    rule: Rule,
    draw: str,
    *,
    law: bool,
) -> list[dict[str, Any]]:
    """For each visited node: its level (root 1), the number of candidates, and the ceiling there (0 without any).

    With ``law`` the rule is also audited at the root: ``verdict``, ``total_variation`` (a certified lower end where the
    law is bracketed), ``acceptance``. The ceiling is None for a dynamic tree's deterministic candidates only if its sum
    is too long. Cost: one sort a node (a hundred passes for n > 2 without replacement), and one audit.
    """
    mode, result = draw_mode(draw), []
    for visit in found.visits:
        if (
            not visit.candidates
        ):  # nothing can be accepted there; below the last level of a tree that adds nothing
            level = tree.topology.depths[visit.node]
            result.append({"level": level, "candidates": 0, "ceiling": 0.0})
            continue
        target, draft = laws[visit.node]
        assert draft is not None
        count = len(visit.candidates)
        tokens = [tree.tokens[child] for child in visit.candidates]
        fixed = mode.name == "top-k"
        top = target[tokens].sum() if fixed else ceiling(target, draft, count, mode)
        entry: dict[str, Any] = {
            "level": tree.topology.depths[visit.node],
            "candidates": count,
            "ceiling": None if top is None else float(top),
        }
        if law and visit.node == 0:
            report = audit(rule, target, draft, count, draw=draw)
            entry |= {
                "verdict": report.verdict.value,
                "total_variation": float(report.total_variation),
                "unexplored": float(report.unexplored),
                "acceptance": float(report.acceptance),
            }
        result.append(entry)
    return result


def ceiling_length(nodes: list[dict[str, Any]]) -> float | None:
    """Tokens a step if every node accepted with the mean ceiling of its level: 1 + c₁ + c₁c₂ + …

    An estimate from the visited nodes; levels that were never visited count as never accepting. None where a node's
    ceiling is not known.
    """
    levels: dict[int, list[float]] = {}
    for node in nodes:
        if node["ceiling"] is None:
            return None
        levels.setdefault(int(node["level"]), []).append(float(node["ceiling"]))
    length, reached = 1.0, 1.0
    for level in sorted(levels):
        reached *= sum(levels[level]) / len(levels[level])
        length += reached
    return length

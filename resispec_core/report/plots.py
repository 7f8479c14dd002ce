"""Plots of comparisons, as files that matplotlib can write (SVG, PNG, PDF)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from resispec_core.audit.compare import Comparison
from resispec_core.errors import InputError


def plot_comparison(rows: Sequence[Comparison], file: str | Path) -> None:
    """Acceptance by candidate index at the largest n (Figure 1 of the paper), and acceptance against n.

    Biased rules are drawn dashed: their acceptance is not comparable with an exact rule's.
    """
    figure = figure_class()(figsize=(10, 4), layout="constrained")
    by_index, by_n = figure.subplots(1, 2)
    for name, draw, temperature in dict.fromkeys((row.rule, row.draw, row.temperature) for row in rows):
        own = [row for row in rows if (row.rule, row.draw, row.temperature) == (name, draw, temperature)]
        own.sort(key=lambda row: row.candidates)
        label = name if draw == "iid" else f"{name} ({draw})"
        label += "" if temperature in (None, 1.0) else f", T = {temperature:g}"
        style = "--" if own[-1].law.verdict.value in ("BIASED", "LOSSY_BY_DESIGN") else "-"
        steps = own[-1].law.conditional_acceptance
        by_index.plot(range(1, len(steps) + 1), steps, style, marker="o", label=label)
        by_n.plot(
            [row.candidates for row in own],
            [row.law.mean_acceptance for row in own],
            style,
            marker="o",
            label=label,
        )
    for temperature in dict.fromkeys(row.temperature for row in rows):
        tops = {
            row.candidates: row.law.mean_ceiling
            for row in rows
            if row.draw == "iid" and row.temperature == temperature and row.law.mean_ceiling is not None
        }
        if tops:
            places = sorted(tops)
            name = "ceiling" if temperature in (None, 1.0) else f"ceiling, T = {temperature:g}"
            by_n.plot(places, [tops[n] for n in places], ":", color="black", label=name)
    by_index.set(xlabel="candidate", ylabel="acceptance when looked at", ylim=(0, 1))
    by_n.set(xlabel="candidates n", ylabel="mean acceptance", ylim=(0, 1))
    by_n.legend(fontsize="small")
    try:
        figure.savefig(file)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write the plot to {file}: {error}") from None


def figure_class() -> Any:
    """The class Figure of matplotlib; raises InputError where it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("a plot needs matplotlib: pip install 'resispec-core[plot]'") from None
    return Figure

"""Figures 1 and 3 of the paper for the pair at hand, as SVG (or any file that matplotlib writes)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from resispec_core.errors import InputError
from resispec_core.report.plots import figure_class

SHAPING = ("budgeting", "redistribution", "proxy")


def plot_by_index(rows: Sequence[dict[str, Any]], file: str | Path) -> None:
    """Figure 1: acceptance of candidate i when it is looked at. Biased rules are dashed."""
    figure = figure_class()(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for row in rows:
        style = "--" if "BIASED" in (row["verdict"] or "") else "-"
        values = row["acceptance_by_index"]
        label = f"{row['system']}, {row['tree']}, T = {row['temperature']:g}"
        axes.plot(range(1, len(values) + 1), values, style, marker="o", label=label)
    axes.set(xlabel="candidate", ylabel="acceptance when looked at", ylim=(0, 1))
    axes.legend(fontsize="x-small")
    _save(figure, file)


def plot_components(rows: Sequence[dict[str, Any]], file: str | Path) -> None:
    """Figure 3: milliseconds a step by component; shaping is cut out of verification."""
    figure = figure_class()(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    labels = [f"{row['system']}\n{row['tree']}, T = {row['temperature']:g}" for row in rows]
    left = [0.0] * len(rows)
    for name in ("drafting", "target", "cache", "verification", *SHAPING):
        values = []
        for row in rows:
            parts = row["components"]
            inner = sum(parts.get(part, 0.0) for part in SHAPING) if name == "verification" else 0.0
            values.append(1e3 * (parts.get(name, 0.0) - inner))
        shown = "verification, rest" if name == "verification" else name
        axes.barh(labels, values, left=left, label=shown)
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.set(xlabel="milliseconds a step (synchronised run)")
    axes.legend(fontsize="x-small")
    _save(figure, file)


def _save(figure: Any, file: str | Path) -> None:
    try:
        figure.savefig(file, metadata={"Date": None} if str(file).endswith(".svg") else None)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write the plot to {file}: {error}") from None

"""Draws one_rejection.svg: what the published rule returns on the smallest pair, part by part.

Run: ``python docs/pictures/one_rejection.py``. Needs matplotlib.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import numpy as np

from resispec_core import parse_law, rules

TARGET, DRAFT = parse_law("1/3,1/3,1/3"), parse_law("1/2,2/5,1/10")
HERE = Path(__file__).parent


def parts() -> dict[str, list[Fraction]]:
    """Mass on each token: accepted, returned after each possible rejection, and what is owed instead."""
    found = {"accepted": np.minimum(TARGET, DRAFT).tolist()}
    for token in np.flatnonzero(DRAFT > TARGET).tolist():
        shaped = rules.ResiSpec().shape(TARGET, DRAFT, np.array(token))
        found[f"after rejecting {token}"] = shaped.residual_mass.tolist()
    found["owed after any rejection"] = np.maximum(TARGET - DRAFT, 0 * TARGET).tolist()
    return found


def draw(file: Path) -> None:
    mpl.use("svg")
    import matplotlib.pyplot as plt

    mass = parts()
    owed = mass.pop("owed after any rejection")
    style = {"svg.fonttype": "none", "svg.hashsalt": "one_rejection", "font.size": 10}
    with mpl.rc_context(style):
        figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
        columns = ("#8da0b3", "#d95f02", "#7570b3")
        for axis, title, pieces, colours in (
            (axes[0], "published rule, n = 1", mass, columns),
            (
                axes[1],
                "speculative sampling",
                {"accepted": mass["accepted"], "owed": owed},
                (columns[0], "#1b9e77"),
            ),
        ):
            base = [Fraction(0)] * 3
            for (name, values), colour in zip(pieces.items(), colours, strict=True):
                heights, bottoms = [float(v) for v in values], [float(b) for b in base]
                axis.bar(range(3), heights, bottom=bottoms, color=colour, label=name, width=0.6)
                for x, (value, bottom) in enumerate(zip(values, base, strict=True)):
                    if value:
                        height = float(bottom + value / 2)
                        axis.text(x, height, str(value), ha="center", va="center", color="white", fontsize=8)
                base = [b + v for b, v in zip(base, values, strict=True)]
            for x, total in enumerate(base):
                axis.text(x, float(total) + 0.008, str(total), ha="center", va="bottom", fontweight="bold")
            axis.axhline(1 / 3, color="black", linewidth=1, linestyle="--", label="target p = 1/3")
            axis.set_xticks(range(3), [f"token {x}\nq = {DRAFT[x]}" for x in range(3)])
            axis.set_ylim(0, 0.56)
            axis.set_title(title)
            axis.spines[["top", "right"]].set_visible(False)
            axis.legend(frameon=False, fontsize=8, loc="upper center", ncols=2)
        axes[0].set_ylabel("probability of the returned token")
        figure.savefig(file, metadata={"Date": None, "Creator": None})
        plt.close(figure)


if __name__ == "__main__":
    draw(HERE / "one_rejection.svg")

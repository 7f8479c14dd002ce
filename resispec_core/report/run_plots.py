"""Plots of a run as SVG to put inside a page: they take their colours and fonts from the page, light or dark."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from resispec_core.report.plots import figure_class
from resispec_core.runs.totals import RuleColumns, rule_totals

SIZE = (4.6, 3.1)
"""Inches. Small, so that the letters are still readable where the plot fills the width of a phone."""
CURVE_POINTS, SCATTER_POINTS = 400, 1500
INK, FAINT = "#010101", "#020202"
SERIES = tuple(f"#0a000{number}" for number in range(6))
"""Stand-ins for the page's colours; no other colour is used."""
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1, 1.5)))
MARKERS = "osD^vP"
_NAMES = {INK: "var(--ink)", FAINT: "var(--faint)"} | {
    color: f"var(--series-{number})" for number, color in enumerate(SERIES)
}


@dataclass(frozen=True)
class Plot:
    """A plot with the words that go with it."""

    title: str
    caption: str
    svg: str


def plots(rules: Sequence[RuleColumns]) -> list[Plot]:
    """Total variation, acceptance, acceptance by candidate, and acceptance against the ceiling."""
    thinned = max(map(len, rules)) > SCATTER_POINTS
    return [
        Plot(
            "Total variation from the target law",
            "Share of positions whose total variation is at most x. The curve of what is true lies inside the band; "
            "a rule that keeps the law everywhere is a step at 0.",
            _svg("tv", lambda axes: _distribution(axes, rules, "tv_low", "tv_high", "total variation")),
        ),
        Plot(
            "Acceptance",
            "Share of positions at which a candidate is accepted with probability at most x. Thin line: the ceiling "
            "of any exact rule that draws alike.",
            _svg("acceptance", lambda axes: _acceptance(axes, rules)),
        ),
        Plot(
            "Acceptance by candidate",
            "Probability that candidate i is accepted when it is looked at, over the positions.",
            _svg("candidates", lambda axes: _by_candidate(axes, rules)),
        ),
        Plot(
            "Acceptance against the ceiling",
            "One point a position"
            + (f" ({SCATTER_POINTS} of them, evenly spread)" if thinned else "")
            + ". No exact rule can be above the line.",
            _svg("ceiling", lambda axes: _against_ceiling(axes, rules)),
        ),
    ]


def swatch(place: int) -> str:
    """The line and marker of a rule, for a legend in the page."""

    def draw(axes: Any) -> None:
        axes.plot([0, 1, 2], [0, 0, 0], markevery=[1], **_style(place), marker=_marker(place), markersize=5)
        axes.set(xlim=(-0.1, 2.1), ylim=(-1, 1))
        axes.set_axis_off()

    return _svg(f"swatch{place}", draw, size=(0.5, 0.18))


def _style(place: int) -> dict[str, Any]:
    return {"color": SERIES[place % len(SERIES)], "linestyle": DASHES[place % len(DASHES)], "linewidth": 1.6}


def _marker(place: int) -> str:
    return MARKERS[place % len(MARKERS)]


def _distribution(axes: Any, rules: Sequence[RuleColumns], low: str, high: str, name: str) -> None:
    for place, rule in enumerate(rules):
        _band(axes, place, rule[low], rule[high])
    _shares(axes, name)


def _acceptance(axes: Any, rules: Sequence[RuleColumns]) -> None:
    for place, rule in enumerate(rules):
        found = rule["acceptance"]
        _band(axes, place, found, np.minimum(found + rule["unexplored"], 1.0))
    # One line where all rules draw alike, so that their ceilings are the same; else one each.
    shared = all(np.array_equal(rule["ceiling"], rules[0]["ceiling"]) for rule in rules)
    for place, rule in enumerate(rules[:1] if shared else rules):
        ceilings = rule["ceiling"].astype(float)
        if not np.isnan(ceilings).any():
            x, y = _curve(ceilings)
            color = INK if shared else _style(place)["color"]
            axes.plot(x, y, drawstyle="steps-post", color=color, linewidth=0.8)
    _shares(axes, "probability of accepting a candidate")


def _band(axes: Any, place: int, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> None:
    """The distribution of values that are only known to lie in [low, high]: between that of all low and all high."""
    (x_low, y), (x_high, _) = _curve(low), _curve(high)
    style = _style(place)
    axes.fill_betweenx(y, x_low, x_high, step="pre", color=style["color"], alpha=0.18, linewidth=0)
    for x in (x_low, x_high):
        axes.plot(x, y, drawstyle="steps-post", **style)


def _curve(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Steps of the cumulative distribution from (first value, 0); at most ``CURVE_POINTS`` of them."""
    ordered = np.sort(values.astype(float))
    count = min(len(ordered), CURVE_POINTS)
    at = np.ceil(np.arange(1, count + 1) * len(ordered) / count).astype(int) - 1
    x = np.concatenate([ordered[:1], ordered[at]])
    y = np.concatenate([[0.0], (at + 1) / len(ordered)])
    return x, y


def _shares(axes: Any, name: str) -> None:
    axes.set(xlabel=name, ylabel="share of positions", xlim=(-0.02, 1.02), ylim=(-0.02, 1.03))


def _by_candidate(axes: Any, rules: Sequence[RuleColumns]) -> None:
    for place, rule in enumerate(rules):
        steps = rule_totals(rule).conditional_acceptance
        axes.plot(range(1, len(steps) + 1), steps, marker=_marker(place), markersize=5, **_style(place))
    n = max(rule.by_candidate.shape[1] for rule in rules)
    axes.set(xlabel="candidate", ylabel="accepted when looked at", ylim=(-0.02, 1.03), xlim=(0.75, n + 0.25))
    axes.set_xticks(range(1, n + 1) if n <= 12 else range(1, n + 1, -(-n // 12)))


def _against_ceiling(axes: Any, rules: Sequence[RuleColumns]) -> None:
    axes.plot([0, 1], [0, 1], color=INK, linewidth=1)
    for place, rule in enumerate(rules):
        ceilings = rule["ceiling"].astype(float)
        every = np.unique(np.linspace(0, len(rule) - 1, min(len(rule), SCATTER_POINTS)).round().astype(int))
        axes.scatter(
            ceilings[every],
            rule["acceptance"][every],
            marker=_marker(place),
            s=16,
            facecolors="none",
            edgecolors=_style(place)["color"],
            linewidths=1,
        )
    axes.set(xlabel="ceiling of any exact rule", ylabel="acceptance", xlim=(-0.02, 1.02), ylim=(-0.02, 1.03))


def _svg(name: str, draw: Any, size: tuple[float, float] = SIZE) -> str:
    """The drawing as an ``<svg>`` element without sizes, ids of its own, and the page's colours by name."""
    kind = figure_class()  # first: it says what to install where matplotlib is missing
    from matplotlib import rc_context

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.size": 9,
        "text.color": INK,
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "xtick.color": FAINT,
        "ytick.color": FAINT,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": "none",
        "figure.facecolor": "none",
    }
    with rc_context(settings):
        figure = kind(figsize=size, layout="constrained")
        draw(figure.subplots())
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _for_a_page(out.getvalue(), name)


def _for_a_page(text: str, name: str) -> str:
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    head, rest = text.split(">", 1)
    view = re.search(r'viewBox="[^"]+"', head)
    assert view is not None
    head = f'<svg {view[0]} role="img" aria-hidden="true" focusable="false"'
    rest = rest.replace('xlink:href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
    rest = re.sub(r'\bid="', f'id="{name}-', rest)
    for color, variable in _NAMES.items():
        rest = rest.replace(color, variable)
    return f"{head}>{rest}".strip()

"""A run as a page to send: one HTML file that fetches nothing, and the same in Markdown."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from resispec_core.audit.positions import PositionsSummary
from resispec_core.audit.verdict import Verdict
from resispec_core.errors import InputError
from resispec_core.llama.store import INDEX_FILE, file_sha256, sample_store
from resispec_core.report.run_plots import plots, swatch
from resispec_core.rules import RULES
from resispec_core.runs.store import Run
from resispec_core.runs.totals import RuleColumns, rule_columns, rule_totals, worst_positions

WORST = 20
QUANTILES = {"least": 0.0, "10 %": 0.1, "median": 0.5, "90 %": 0.9, "largest": 1.0}
MINUS = "−"  # no line is broken after it
ROUNDING = 1e-9
"""Numbers below it print as 0: they are rounding of sums that are exactly zero."""


@dataclass(frozen=True)
class RulePart:
    """What the page says of one rule."""

    label: str
    total: PositionsSummary
    columns: RuleColumns
    sentence: str
    worst: list[dict[str, Any]]

    @property
    def verdicts(self) -> str:
        """``BIASED on 28``"""
        return ", ".join(f"{name} on {count}" for name, count in self.total.verdicts.items())

    def mean(self, name: str) -> float:
        """Mean of a column over the positions."""
        return float(self.columns[name].astype(float).mean())

    def quantiles(self, name: str) -> list[float]:
        """``QUANTILES`` of a column, each a value that some position has."""
        values: npt.NDArray[Any] = self.columns[name].astype(float)
        return [float(np.quantile(values, share, method="inverted_cdf")) for share in QUANTILES.values()]


def render(run: Run) -> tuple[str, str]:
    """The page as HTML and as Markdown.

    Raises InputError: no position was audited yet; jinja2 or matplotlib is not installed.
    Cost: the numbers of every position are read (about 100 bytes a position and rule in memory); the pages do not grow
    with the positions.
    """
    try:
        import jinja2
    except ImportError:
        raise InputError("a report needs jinja2: pip install 'resispec-core[report]'") from None
    rules = [_part(run, label) for label in run.labels]
    drawn = plots([rule.columns for rule in rules])
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("resispec_core.report"),
        autoescape=jinja2.select_autoescape(enabled_extensions=("html.j2",), default=False),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": number, "interval": interval, "code": markdown_code, "token": token}
    script = _resource("sort.js")
    context = {
        "run": run,
        "identity": run.identity,
        "rules": rules,
        "plots": drawn,
        "swatches": [swatch(place) for place in range(len(rules))],
        "quantiles": list(QUANTILES),
        "provenance": provenance(run),
        "reproduce": reproduce(run),
        "steps": steps,
        "path_text": path_text,
        "prompt": lambda row: f"prompt {row['prompt']}, token {row['index']}",
        "style": _resource("page.css"),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    html, markdown = (environment.get_template(name).render(context) for name in ("run.html.j2", "run.md.j2"))
    return html, markdown


def _part(run: Run, label: str) -> RulePart:
    columns = rule_columns(run, label)
    total = rule_totals(columns)
    return RulePart(label, total, columns, sentence(label, total), worst_positions(run, columns, WORST))


def sentence(label: str, total: PositionsSummary) -> str:
    """The result of a rule in words."""
    counted, here = total.verdicts.get(total.verdict.value, 0), f"of {total.positions} positions"
    tv = interval(total.mean_total_variation, None)
    text = {
        Verdict.BIASED: f"does not keep the target law: it is certainly biased at {counted} {here}, "
        f"with a total variation of at least {tv} on average over all of them",
        Verdict.LOSSY_BY_DESIGN: f"gives the law up by design at {counted} {here}: its total variation is {tv} "
        "on average",
        Verdict.INCONCLUSIVE: f"is undecided at {counted} {here}: too much mass was left unexplored",
        Verdict.NOT_REFUTED: f"was not refuted at {counted} {here}",
        Verdict.EXACT_WITHIN: f"keeps the target law at all {total.positions} positions, "
        f"to within a total variation of {f'{total.bound:.1e}'.replace('-', MINUS)}",
        Verdict.EXACT: f"keeps the target law exactly at all {total.positions} positions",
    }[total.verdict]
    above = total.positions_above_ceiling
    more = f" It accepts more than any exact rule can at {above} of them." if above else ""
    return f"{label} {text}.{more}"


def provenance(run: Run) -> list[tuple[str, str]]:
    """Where the numbers come from, as pairs of a name and a value."""
    identity = run.identity
    store = identity["store"]
    skipped = store["draft_layers_skipped"]
    filters = ", ".join(f"{name} {value}" for name, value in identity["shaping"].items() if value is not None)
    return [
        ("target", str(store["target"])),
        (
            "draft",
            str(store["draft"]) + (f" without layers {', '.join(map(str, skipped))}" if skipped else ""),
        ),
        ("recorded positions", f"{store['positions']} (store.json has SHA-256 {store['index_sha256']})"),
        ("vocabulary", f"{store['vocabulary']} tokens"),
        ("candidates a position", str(identity["candidates"])),
        ("draws", _draws(identity)),
        ("both rows shaped by", filters),
        *(
            (f"rule {rule['label']}", f"{rule['class']}, source SHA-256 {rule['source_sha256'] or 'unknown'}")
            for rule in identity["rules"]
        ),
        ("versions", ", ".join(f"{name} {value}" for name, value in identity["versions"].items())),
        ("begun", str(run.manifest["begun"]["at"])),
    ]


def _draws(identity: Mapping[str, Any]) -> str:
    text = identity["draw"] or "each rule's own"
    return f"{text}, whatever the rule is meant for" if identity["mismatched"] else text


def reproduce(run: Run) -> list[str]:
    """Commands that make the run again; empty where a rule is not one the command line knows."""
    identity = run.identity
    words = ["resispec", "audit"]
    for rule in identity["rules"]:
        kind = RULES.get(rule["name"])
        if kind is None or rule["class"] != f"{kind.__module__}:{kind.__qualname__}":
            return []
        words += ["--rule", rule["name"]]
    words += ["--candidates", str(identity["candidates"])]
    options: dict[str, Any] = {"draw": identity["draw"], **identity["shaping"]}
    for rule in identity["rules"]:
        options |= {name: value for name, value in rule["options"].items() if f"{name}=" in rule["label"]}
    for name, value in options.items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    if identity["mismatched"]:
        words.append("--mismatched")
    if identity["store"]["index_sha256"] != file_sha256(sample_store().path / INDEX_FILE):
        words += ["--logits", "STORE"]
    return [shlex.join([*words, "--out", "RUN"]), "resispec report RUN"]


def number(value: float | None) -> str:
    """Four significant digits; 0 for rounding, a dash for nothing."""
    if value is None or np.isnan(value):
        return "–"
    return "0" if abs(value) < ROUNDING else f"{value:.4g}"


def interval(low: float, high: float | None) -> str:
    """Ends that print alike are one number."""
    if high is None or number(low) == number(high):
        return number(low)
    return f"{number(low)} to {number(high)}"


def token(text: str | None) -> str:
    """A token as a reader can see it: quoted, with line breaks and control characters written out."""
    return "(no text)" if text is None else repr(text)


def steps(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The witness path of a row: what happens to which token; empty where there is none."""
    if row["witness_token"] is None:
        return []
    how = "accept" if row["witness_accepted"] else "resample"
    refused = [("reject", token(text)) for text in row["witness_rejected_texts"]]
    return [*refused, (how, token(row["witness_text"]))]


def path_text(row: Mapping[str, Any]) -> str:
    """The witness path of a row in words."""
    return ", ".join(f"{word} {text}" for word, text in steps(row)) or "–"


def markdown_code(text: str) -> str:
    """Text as a code span inside a table cell of Markdown, whatever it holds."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def _resource(name: str) -> str:
    return (resources.files("resispec_core.report") / "templates" / name).read_text(encoding="utf-8")

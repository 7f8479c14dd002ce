"""The paper's tables and figures for the pair at hand, from the journals of `resispec speed` and a store of logits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from resispec_core.audit import audit
from resispec_core.errors import InputError
from resispec_core.laws import law_from_logits
from resispec_core.llama.paper import REPORTED, TABLE_4, accepted_length, implied_acceptance
from resispec_core.llama.speed_rows import read_journal, summarise
from resispec_core.llama.store import LogitsStore

Row = dict[str, Any]


@dataclass(frozen=True)
class Sheet:
    """One table: cells are text already."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def to_json(self) -> Row:
        """A JSON-ready dictionary."""
        return {
            "name": self.name,
            "title": self.title,
            "columns": self.columns,
            "rows": self.rows,
            "note": self.note,
        }

    def markdown(self) -> str:
        """A Markdown table under its title."""
        lines = [
            f"**{self.title}**",
            "",
            _line(self.columns),
            _line(["---", *["---:"] * (len(self.columns) - 1)]),
        ]
        lines += [_line(row) for row in self.rows]
        return "\n".join([*lines, *(["", self.note] if self.note else [])]) + "\n"


def read_rows(folders: Iterable[str | Path]) -> list[Row]:
    """One row a journal (``*.jsonl``) in the folders; raises InputError where there is none, or one holds no result."""
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.jsonl"))]
    if not files:
        raise InputError("no results found: pass folders written by `resispec speed --recorded` or `--live`")
    rows = []
    for file in files:
        settings, results = read_journal(file)
        if results:
            rows.append(summarise(settings, results))
    return rows


def sheets(rows: Sequence[Row], store: LogitsStore | None = None, *, positions: int = 6) -> list[Sheet]:
    """Every table that the rows and the store allow; the others are left out.

    ``store``: recorded rows for Tables 4 and 5 (audits at the first ``positions`` of them, spread evenly).
    Cost: with a store, some audits at V tokens each, about a second a row and rule.
    """
    timed = [row for row in rows if "components" not in row]
    found = [
        _versus(timed, "Table 1", "ResiSpec and SpecInfer: accepted length and throughput", TABLE_1),
        _versus(timed, "Table 2", "Sequoia and EAGLE-style trees", TABLE_2),
        _table_3(timed),
        *([_table_4(store, positions), _table_5(store, positions)] if store is not None else []),
        _table_6(timed),
        implied_sheet(),
    ]
    return [sheet for sheet in found if sheet is not None and sheet.rows]


TABLE_1 = ("autoregressive", "speculative", "specinfer", "k-seq", "resispec", "shaped", "optimal")
TABLE_2 = ("sequoia", "resispec-sequoia", "shaped-sequoia", "ranked-sequoia", "eagle", "top-k", "lookup")
HEAD = ("system", "tree", "T", "accepted length", "ceiling", "tok/s", "ratio", "law", "TV")
NOTE = (
    "Ratio: throughput over the first system of the group. Ceiling: tokens a step if every node accepted at the "
    "ceiling of any exact rule (mean by level of the visited nodes: an estimate). TV: mean over audited rows, "
    "certified from below where the law is bracketed; INCONCLUSIVE: the audit left paths out, and found no bias in "
    "the others. A row with law BIASED is not comparable with the others. Recorded runs time verification alone."
)


def _versus(rows: Sequence[Row], name: str, title: str, systems: Sequence[str]) -> Sheet:
    """Systems within (pair, source, temperature, positions of the tree)."""
    own = [row for row in rows if row["system"] in systems]
    lines = []
    told = [key for key in ("source", "pair") if len({row[key] for row in own}) > 1]
    for group in _grouped(own, ("pair", "source", "temperature", "budget")):
        group.sort(key=lambda row: systems.index(row["system"]))
        base = group[0]["tokens_per_second"]
        where = "".join(f" ({group[0][key]})" for key in told)
        lines += [_cells(row, base, where) for row in group]
    return Sheet(name, f"{name}. {title}", HEAD, tuple(lines), NOTE)


def _cells(row: Row, base: float, where: str) -> tuple[str, ...]:
    error = row["accepted_length_error"]
    return (
        row["system"] + where,
        row["tree"],
        f"{row['temperature']:g}",
        f"{row['accepted_length']:.2f}" + ("" if error is None else f" ± {error:.2f}"),
        _number(row["ceiling_length"], 2),
        f"{row['tokens_per_second']:.1f}",
        f"{row['tokens_per_second'] / base:.2f}",
        row["verdict"] or "–",
        _number(row["total_variation"], 3),
    )


COMPARED = ("specinfer", "resispec", "shaped")


def _table_3(rows: Sequence[Row]) -> Sheet:
    """Tree shapes side by side: throughput first, as the paper has it."""
    lines = []
    for group in _grouped(
        [row for row in rows if row["system"] in COMPARED], ("pair", "source", "temperature", "tree")
    ):
        cells = {row["system"]: row for row in group}
        if len(cells) < len(COMPARED):
            continue
        speeds, lengths = (
            [cells[name][key] for name in COMPARED] for key in ("tokens_per_second", "accepted_length")
        )
        lines.append(
            (
                group[0]["tree"],
                str(group[0]["budget"]),
                f"{group[0]['temperature']:g}",
                group[0]["source"],
                *(f"{speed:.1f}" for speed in speeds),
                f"{speeds[1] / speeds[0]:.2f}",
                *(f"{length:.2f}" for length in lengths),
                _number(cells["specinfer"]["ceiling_length"], 2),
                _number(cells["resispec"]["total_variation"], 3),
            )
        )
    columns = (
        *(
            "tree",
            "cost",
            "T",
            "run",
            "specinfer tok/s",
            "resispec tok/s",
            "shaped tok/s",
            "resispec/specinfer",
        ),
        *("specinfer length", "resispec length", "shaped length", "ceiling", "TV of resispec"),
    )
    return Sheet("Table 3", "Table 3. Tree shapes: throughput and accepted length", columns, tuple(lines))


def _table_4(store: LogitsStore, positions: int) -> Sheet:
    """The paper's KL beside the true one; one candidate, where every rule here has a closed form."""
    lines = []
    for rule in ("specinfer", "resispec", "shaped", "optimal"):
        reports = [audit(rule, p, q, 1) for p, q in _laws(store, positions, 1.0)]
        checks = [report.paper_check_kl for report in reports if report.paper_check_kl is not None]
        true = [report.distances.kl for report in reports if report.distances is not None]
        lines.append(
            (
                rule,
                _mean(checks, ".0e"),
                _mean(true, ".1e"),
                _mean([float(report.total_variation) for report in reports], ".1e"),
                " ".join(sorted({report.verdict.value for report in reports})),
            )
        )
    return Sheet(
        "Table 4",
        f"Table 4. KL by the paper's formula beside the true KL(target ‖ output), n = 1, T = 1, {positions} rows",
        ("rule", "Appendix B.1 KL", "true KL (nats)", "TV", "law"),
        tuple(lines),
        f"The paper reports {TABLE_4[0]:.0e} to {TABLE_4[1]:.0e} for both methods. Its formula telescopes to "
        "the target for any proxies at all, so it is rounding whatever the rule.",
    )


def _table_5(
    store: LogitsStore, positions: int, counts: Sequence[int] = (1, 2, 4, 8), depth: int = 4
) -> Sheet:
    """SpecInfer by number of candidates, as the paper: accepted length at depth 4 and gain a candidate."""
    pairs = list(_laws(store, positions, 1.0))
    lines: list[tuple[str, ...]] = []
    before: tuple[int, float] | None = None
    for n in counts:
        own = {rule: _acceptance(rule, pairs, n) for rule in ("specinfer", "shaped", "optimal")}
        length = accepted_length(own["specinfer"], depth)
        gain = None if before is None else (length - before[1]) / (n - before[0])
        before = n, length
        lines.append(
            (
                str(n),
                f"{own['specinfer']:.3f}",
                f"{length:.2f}",
                _number(gain, 3),
                f"{accepted_length(own['shaped'], depth):.2f}",
                f"{accepted_length(own['optimal'], depth):.2f}",
            )
        )
    return Sheet(
        "Table 5",
        f"Table 5. SpecInfer at depth {depth} by number of candidates, T = 1, {positions} rows",
        ("N", "acceptance", "accepted length", "η", "shaped", "optimal = ceiling"),
        tuple(lines),
        "Lengths are 1 + a + a² + a³ from the exact mean acceptance a of a row: constant acceptance is assumed. The "
        "paper reports 1.89, 2.17, 2.48, 2.76 and η .280, .155, .070.",
    )


def _acceptance(rule: str, pairs: Sequence[tuple[Any, Any]], candidates: int) -> float:
    """Mean acceptance; the small budget makes the audit use its closed forms, which these rules have."""
    return float(
        np.mean([float(audit(rule, p, q, candidates, max_cells=64 * p.size).acceptance) for p, q in pairs])
    )


def _table_6(rows: Sequence[Row]) -> Sheet | None:
    """Pairs and draft strengths: accepted length."""
    own = [row for row in rows if row["system"] in ("specinfer", "resispec", "shaped", "optimal")]
    if len({row["pair"] for row in own}) < 2:
        return None
    lines = []
    for group in _grouped(own, ("pair", "source", "tree", "temperature")):
        cells = {row["system"]: row for row in group}
        lines.append(
            (
                group[0]["pair"],
                group[0]["tree"],
                f"{group[0]['temperature']:g}",
                *(
                    f"{cells[name]['accepted_length']:.2f}" if name in cells else "–"
                    for name in ("specinfer", "resispec", "shaped", "optimal")
                ),
                _number(
                    next((row["ceiling_length"] for row in group if row["system"] != "resispec"), None), 2
                ),
                _number(cells["resispec"]["total_variation"] if "resispec" in cells else None, 3),
            )
        )
    columns = ("pair", "tree", "T", "specinfer", "resispec", "shaped", "optimal", "ceiling", "TV of resispec")
    return Sheet("Table 6", "Table 6. Accepted length by pair", columns, tuple(lines))


def implied_sheet() -> Sheet:
    """What the paper's own accepted lengths imply."""
    lines = []
    for reported in REPORTED:
        constant, least = implied_acceptance(reported.accepted_length, reported.depth)
        lines.append(
            (
                reported.place,
                f"{reported.accepted_length:.2f} of {reported.depth}",
                f"{constant:.3f}",
                f"{least:.3f}",
            )
        )
    return Sheet(
        "Implied",
        "What the reported accepted lengths imply about the acceptance at one node",
        ("reported", "accepted length", "if constant", "at least (root)"),
        tuple(lines),
        "A step of accepted length L at depth d has 1 + P₁ + … + P_{d−1} = L with P decreasing, so the acceptance at "
        "the root is at least (L − 1)/(d − 1) whatever the levels do. An exact rule cannot accept more than the "
        "ceiling of its rows, 1 + min_H [p(H) − q(H)^n].",
    )


def _laws(store: LogitsStore, count: int, temperature: float) -> Iterable[tuple[Any, Any]]:
    for i in np.unique(np.linspace(0, len(store) - 1, count).astype(int)).tolist():
        p, q = (law_from_logits(row, temperature=temperature) for row in store.row(i))
        yield p, q


def _grouped(rows: Sequence[Row], keys: Sequence[str]) -> list[list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(str(row[key]) for key in keys), []).append(row)
    return [groups[key] for key in sorted(groups)]


def _mean(values: Sequence[float], form: str) -> str:
    return format(float(np.mean(values)), form) if values else "–"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

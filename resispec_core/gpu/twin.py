"""A rule on its GPU twin, for one pair of laws: the measured law beside the reference's.

On a CUDA device the fused kernels run; without one the array-level twin runs on NumPy. Both give the same bits (see
docs/gpu.md), but only the former says anything about a device, so the report says which it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from resispec_core.arrays import Array, as_float, is_rational
from resispec_core.audit.distances import total_variation
from resispec_core.audit.pair import audit
from resispec_core.audit.verdict import EXIT_CODES, AuditReport, Verdict, plain
from resispec_core.drafts import draw_mode
from resispec_core.errors import InputError
from resispec_core.gpu.api import verify
from resispec_core.gpu.array import Decisions
from resispec_core.gpu.doctor import why_no_device
from resispec_core.gpu.law import law_rounding, measured_law
from resispec_core.gpu.sequential import MAX_CANDIDATES
from resispec_core.laws import law, same_vocabulary
from resispec_core.rules.registry import rule as named_rule

TWINS = {
    "specinfer": "iid", "single-draft": "iid", "deterministic": "top-k", "resispec": "iid", "shaped": "iid"
}  # fmt: skip
"""Rules that have a twin, and the draws that it takes its candidates to come from."""
ON_THE_CPU = "array-level twin on the CPU"


@dataclass(frozen=True)
class TwinReport:
    """What was measured on the twin, and the audit of the reference on the rows that the twin read."""

    rule: str
    runs_on: str
    verdict: Verdict
    total_variation: float
    law: Array
    reference: AuditReport
    from_reference: float
    """TV between the twin's law and the reference's."""
    rounding: float
    missed: float
    nodes: int

    @property
    def agrees(self) -> bool:
        """Whether the twin has the reference's law, to within rounding."""
        return self.from_reference <= self.rounding and self.missed == 0

    @property
    def exit_code(self) -> int:
        """1 biased or other than the reference, 3 not refuted (measured, so never 0)."""
        return EXIT_CODES[self.verdict] if self.agrees else 1

    def __str__(self) -> str:
        name, tv = self.verdict.value.replace("_", " "), f"TV = {self.total_variation:.3g}"
        found = "agrees with" if self.agrees else f"TV {self.from_reference:.3g} from"
        return f"{name} (measured, {self.nodes} nodes), {tv}; {found} the reference; {self.runs_on}"

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "engine": "twin",
            "rule": self.rule,
            "runs_on": self.runs_on,
            "verdict": self.verdict.value,
            "total_variation": self.total_variation,
            "law": [float(mass) for mass in self.law],
            "agrees": self.agrees,
            "from_reference": self.from_reference,
            "rounding": self.rounding,
            "missed": self.missed,
            "nodes": self.nodes,
            "reference": {
                "verdict": self.reference.verdict.value,
                "total_variation": plain(self.reference.total_variation),
                "law": [plain(mass) for mass in self.reference.law],
            },
        }


def twin_audit(
    name: str, target: Any, draft: Any, candidates: int = 1, *, options: Mapping[str, Any] | None = None,
    draw: str | None = None, mismatched: bool = False,
) -> TwinReport:  # fmt: skip
    """Measure the law of the rule ``name`` on its GPU twin and compare it with p and with the reference.

    Rows are float32 with their sums given: a rational law over a common denominator below 2^24 is read exactly,
    another is rounded, and then the rounded law is what target, draft and reference mean here. ``options``: the
    rule's (redistribution, budget). ``draw``, ``mismatched``: as for ``audit``.

    ``BIASED``: the measured law is further from p than rounding and the random checks allow. Never ``EXACT``: a law is
    measured here, cell by cell. ``InputError`` where the rule has no twin. Cost: 54 calls of V^n·(n + V) nodes.
    """
    if name not in TWINS:
        raise InputError(f"rule {name!r} has no GPU twin; those that have one: {', '.join(TWINS)}")
    if not 1 <= candidates <= MAX_CANDIDATES:
        raise InputError(f"candidates is {candidates}; the GPU path takes 1 to {MAX_CANDIDATES}")
    rule = named_rule(name, **(options or {}))
    rows = [_float32(law(given, name=side)) for given, side in ((target, "target"), (draft, "draft"))]
    p, q = (_as_read(row) for row, _ in rows)
    same_vocabulary(p, q)
    drawn_as = draw_mode(draw or TWINS[name])
    if drawn_as.name != TWINS[name] and not mismatched:
        raise InputError(
            f"candidates drawn {drawn_as.name}: the GPU twin of {name!r} takes them to be drawn {TWINS[name]}; "
            "replay on the reference"
        )
    reference = audit(rule, p, q, candidates, draw=drawn_as, mismatched=mismatched)
    missing = why_no_device()
    chosen = {key: value for key, value in (options or {}).items() if value is not None}

    def run(tokens: Array, coins: Array) -> Decisions:
        return _decide(name.replace("-", "_"), rows, tokens, coins, chosen, on_device=missing is None)

    found = measured_law(run, list(drawn_as.tuples(q, candidates)), p.size)
    if found.bad:
        raise InputError(
            f"the twin refused {found.bad:.1%} of its nodes on these rows; `resispec.gpu` says why"
        )
    rounding = law_rounding(p.size, candidates)
    tv = float(total_variation(found.law, as_float(p)))
    apart = float(total_variation(found.law, as_float(reference.law)))
    verdict = Verdict.BIASED if tv > rounding + 4 * found.missed else Verdict.NOT_REFUTED
    if found.missed and verdict is Verdict.NOT_REFUTED:
        verdict = Verdict.INCONCLUSIVE
    place = _device_name() if missing is None else f"{ON_THE_CPU} ({missing})"
    return TwinReport(
        name, place, verdict, tv, found.law, reference, apart, rounding, found.missed, found.nodes
    )


def _float32(row: Array) -> tuple[Array, float]:
    """A law as a float32 row and its sum; exact for rationals over a common denominator below 2^24."""
    if is_rational(row):
        common = math.lcm(*(entry.denominator for entry in row))
        if common < 2**24:
            return np.array([int(entry * common) for entry in row], dtype=np.float32), float(common)
    wide = as_float(row).astype(np.float32)
    return wide, float(wide.astype(np.float64).sum())


def _as_read(row: Array) -> Array:
    """The rational law that such a row stands for: its entries over their own exact sum."""
    entries = np.array([Fraction(entry) for entry in row.tolist()], dtype=object)
    return entries / entries.sum()


def _decide(
    rule: str, rows: list[tuple[Array, float]], tokens: Array, coins: Array, options: Mapping[str, Any],
    *, on_device: bool,
) -> Decisions:  # fmt: skip
    """One batch on one pair of rows; on a device the arrays go there and the answers come back."""
    count = len(tokens)
    (p, p_sum), (q, q_sum) = rows
    given: list[Any] = [np.ascontiguousarray(np.broadcast_to(row, (count, row.size))) for row in (p, q)]
    given += [tokens, coins, np.full(count, p_sum), np.full(count, q_sum)]
    if on_device:
        import cupy

        given = [cupy.asarray(array) for array in given]
    target, draft, tokens, coins, target_norm, draft_norm = given
    answer = verify(
        rule, target, draft, tokens, coins, **options, target_norm=target_norm, draft_norm=draft_norm
    )
    if not on_device:
        return answer
    import cupy

    return Decisions(*(cupy.asnumpy(part) for part in answer))


def _device_name() -> str:
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    return f"fused kernels on {name}"

"""Contract: what an exact rule takes for granted, checked one promise at a time.

A rule can be exact and its engine biased: the draft law declared is not the one drawn from, a row misses a filter, two
draws share a coin, a padded row leaks into its neighbour. Each function here checks one such promise on the engine's
own callables and returns a ``Finding``; none says more than what its inputs showed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from resispec_core.arrays import Array, as_float
from resispec_core.audit.distances import total_variation
from resispec_core.audit.replay.compare import rounding
from resispec_core.audit.replay.numpy_source import ForkGenerator
from resispec_core.audit.replay.outcomes import Crash, outcomes
from resispec_core.audit.replay.patches import controlled
from resispec_core.audit.replay.trail import Budget, RefusalError
from resispec_core.errors import InputError
from resispec_core.laws import as_rational, law, law_from_logits


@dataclass(frozen=True)
class Finding:
    """One promise: whether it held on the inputs given, and the first place where it did not."""

    promise: str
    holds: bool
    detail: str
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 held, 1 broken."""
        return 0 if self.holds else 1

    def __str__(self) -> str:
        return f"{'held' if self.holds else 'BROKEN'}: {self.promise}: {self.detail}"

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {"promise": self.promise, "holds": self.holds, "detail": self.detail, **self.figures}


def draft_law(
    propose: Callable[[np.random.Generator], tuple[int, Any]], *, budget: Budget | None = None
) -> Finding:
    """Is the declared draft law the law actually drawn from?

    ``propose(rng)`` draws one token and returns it with the row it declares. Replayed exactly; the finding gives the
    TV between the two laws. Catches an argmax under a declared softmax, a filter or temperature on one side only, a
    stale row, a draw in lower precision.
    """
    rows: list[Array] = []

    def call() -> Any:
        token, declared = propose(ForkGenerator())
        row = law(
            np.array(declared, dtype=object if _is_exact(declared) else np.float64), name="declared draft law"
        )
        if rows and not np.array_equal(rows[0], row):
            raise RefusalError("the declared draft law changes with the draw; declare one row per context")
        rows.append(row)
        return token

    with controlled():
        found = outcomes(call, budget or Budget())
    declared = as_rational(rows[0]) if rows else np.array([], dtype=object)
    drawn = np.array([found.law.get((token,), Fraction(0)) for token in range(declared.size)], dtype=object)
    crashed = [str(key) for key in found.law if isinstance(key, Crash)]
    gap = float(total_variation(drawn, declared)) if not crashed else 1.0
    allowed = rounding(max(declared.size, 2), 2, "float64")
    detail = (
        crashed[0]
        if crashed
        else f"TV between the drawn and the declared law is {gap:.6g}, {found.paths} paths"
    )
    figures = {
        "total_variation": gap,
        "drawn": [str(x) for x in drawn],
        "declared": [str(x) for x in declared],
    }
    return Finding(
        "the declared draft law is the law drawn from", gap <= allowed and not crashed, detail, figures
    )


def _is_exact(row: Any) -> bool:
    return all(isinstance(entry, (int, Fraction)) for entry in row)


def rows_filtered(logits: Sequence[Any], rows: Sequence[Any], **filters: Any) -> Finding:
    """Is every verified row, the bonus row included, the law plain sampling would use?

    ``logits[i]``: raw logits of position i, with any bias or mask the request implies; ``rows[i]``: the probabilities
    the verifier used there; ``filters``: as for ``laws.law_from_logits``. Compared to float32 rounding.
    """
    if len(logits) != len(rows):
        raise InputError(f"{len(logits)} rows of logits and {len(rows)} rows of probabilities; give one each")
    worst, place = 0.0, 0
    for index, (raw, used) in enumerate(zip(logits, rows, strict=True)):
        right = law_from_logits(np.asarray(raw, dtype=np.float64), **filters, name=f"logits of row {index}")
        used_row = np.asarray(used, dtype=np.float64)
        if used_row.shape != right.shape:
            return Finding(
                "rows are filtered alike", False, f"row {index} has shape {used_row.shape}, not {right.shape}"
            )
        gap = float(total_variation(used_row, right))
        if not gap <= worst:
            worst, place = gap, index
    allowed = rounding(len(np.asarray(rows[0])), 2, "float32")
    detail = f"largest TV from the plain sampler's law is {worst:.6g}, at row {place} of {len(rows)}"
    return Finding(
        "rows are filtered alike", worst <= allowed, detail, {"total_variation": worst, "row": place}
    )


def independent_streams(
    call: Callable[[np.random.Generator], Any], *, budget: Budget | None = None
) -> Finding:
    """Are proposal, coin and residual draw independent streams?

    ``call(rng)`` is one whole step. A coin compared at two places, or noise raced twice, is named. Two comparisons of
    one coin at one place (an inverse CDF) are one use.
    """
    with controlled():
        found = outcomes(lambda: call(ForkGenerator()), budget or Budget())
    reused = found.reused.most_common(1)
    detail = (
        f"one coin is used at {reused[0][0]}" if reused else f"no coin is used twice, {found.paths} paths"
    )
    return Finding("proposal, coin and residual are independent streams", not reused, detail)


def batch_invariance(
    verify: Callable[[Array, Array, Array, Array], Any],
    targets: Array,
    drafts: Array,
    candidates: Array,
    coins: Array,
) -> Finding:
    """Does a row give the same token alone, in a batch, permuted, padded and in strided memory?

    ``verify(targets (B, V), drafts (B, V), candidates (B, n), coins (B, k)) -> tokens (B,)``, deterministic. Padding
    rows repeat row 0 with other candidates and coins; their results are ignored.
    """
    rows = (targets, drafts, candidates, coins)
    count = len(targets)

    def run(pick: Callable[[Array], Array]) -> list[int]:
        return [int(token) for token in np.asarray(verify(*(pick(np.array(part)) for part in rows))).tolist()]

    alone = [run(lambda part, i=i: part[i : i + 1])[0] for i in range(count)]  # type: ignore[misc]
    order = np.arange(count)[::-1]
    padded = np.concatenate([np.arange(count), np.zeros(3, dtype=int)])
    layouts: dict[str, list[int]] = {
        "in a batch": run(lambda part: part),
        "in a permuted batch": [
            int(token) for token in np.array(run(lambda part: part[order].copy()))[order]
        ],
        "in a padded batch": run(lambda part: _pad(part[padded], count))[:count],
        "in strided memory": run(_strided),
    }
    for layout, tokens in layouts.items():
        for row in range(count):
            if tokens[row] != alone[row]:
                detail = (
                    f"row {row} gives token {alone[row]} alone and {tokens[row]} {layout} of {count} rows"
                )
                return Finding("a row does not depend on its batch", False, detail)
    return Finding(
        "a row does not depend on its batch", True, f"{count} rows alone and in {len(layouts)} layouts"
    )


def _pad(part: Array, count: int) -> Array:
    part[count:] = part[:1] if part.dtype.kind == "f" and part.max() > 1 else np.flip(part[count:], axis=-1)
    return part


def _strided(part: Array) -> Array:
    wide = np.repeat(part, 2, axis=0)
    wide[1::2] = part[::-1]
    return wide[::2]


def vocabulary_map(map_row: Callable[[Array], Any], draft_row: Any, ids: Sequence[int], size: int) -> Finding:
    """Are draft probabilities and draft ids mapped to the target vocabulary alike?

    ``ids[i]``: the target id of draft id i; ``map_row(draft_row)``: the row of length ``size`` the verifier uses. The
    right row has ``draft_row[i]`` at ``ids[i]`` and 0 elsewhere.
    """
    source = np.asarray(draft_row, dtype=np.float64)
    right = np.zeros(size)
    right[list(ids)] = source
    used = np.asarray(map_row(source.copy()), dtype=np.float64)
    if used.shape != right.shape:
        return Finding(
            "draft columns are mapped like draft ids", False, f"the row has shape {used.shape}, not ({size},)"
        )
    wrong = np.flatnonzero(used != right)
    detail = f"{size} columns agree"
    if wrong.size:
        detail = f"target id {wrong[0]} has draft probability {used[wrong[0]]:.6g}, it must be {right[wrong[0]]:.6g}"
    return Finding("draft columns are mapped like draft ids", wrong.size == 0, detail)


def placeholder_ids(
    verify: Callable[..., Any], target: Any, draft: Any, *, placeholder: int = -1, trials: int = 64
) -> Finding:
    """Does a padded candidate slot leave the result untouched by whatever its row holds?

    ``verify(target, draft, candidates, rng)`` with the placeholder as only candidate must refuse, or return a real
    token that does not depend on the draft row. Seeds 0 … ``trials − 1`` are tried
    on four draft rows, two of them one-hot.
    """
    p, q = as_float(law(target, name="target")), as_float(law(draft, name="draft"))
    stale = [q, np.roll(q, 1), *np.eye(q.size)[[0, -1]]]
    promise = "a placeholder id is never a candidate"
    for seed in range(trials):
        tokens = []
        for row in stale:
            try:
                tokens.append(int(verify(p.copy(), row.copy(), [placeholder], np.random.default_rng(seed))))
            except Exception as error:
                return Finding(promise, True, f"refused: {type(error).__name__}: {error}")
        if any(not 0 <= token < p.size for token in tokens):
            return Finding(promise, False, f"seed {seed}: token {tokens} returned")
        if len(set(tokens)) > 1:
            return Finding(promise, False, f"seed {seed}: the stale draft row changes the token: {tokens}")
    return Finding(promise, True, f"{trials} seeds, {len(stale)} stale rows")


def seeds_per_row(sample: Callable[[Sequence[int | None]], Any], *, length_matters: bool = True) -> Finding:
    """Do equal seeds give equal tokens whatever the batch, and different seeds or rows different streams?

    ``sample(seeds)`` runs one batch, one row a seed (None: unseeded), and returns an array (rows, draws) with enough
    draws that two independent streams differ (32 binary draws agree with probability 2e-10).
    """
    promise = "every row has its own stream, fixed by its seed"
    alone = np.asarray(sample([11]))[0]
    again = np.asarray(sample([11]))[0]
    if not np.array_equal(alone, again):
        return Finding(promise, False, "seed 11 gives different tokens in two runs")
    batch = np.asarray(sample([5, 11, None, 11]))
    if length_matters and not np.array_equal(batch[1], alone):
        return Finding(promise, False, "seed 11 gives other tokens inside a batch than alone")
    if not np.array_equal(batch[1], batch[3]):
        return Finding(promise, False, "two rows of one batch with seed 11 differ")
    if np.array_equal(batch[0], batch[1]):
        return Finding(promise, False, "seeds 5 and 11 give the same tokens")
    if batch.shape[1] > 8 and len(set(batch[2].tolist())) == 1 and len(set(batch.reshape(-1).tolist())) > 1:
        return Finding(
            promise, False, f"an unseeded row beside seeded ones is constant: {batch[2].tolist()[:8]}"
        )
    return Finding(promise, True, f"{batch.shape[1]} draws a row, alone and in a batch of 4")


def causal_rows(rows: Callable[[Sequence[int]], Any], drafts: Sequence[int], size: int) -> Finding:
    """Does target row j stay as it is when drafts j, j+1, … change? ``rows(drafts)``: shape (len(drafts) + 1, V)."""
    base = np.asarray(rows(drafts))
    for place in range(len(drafts)):
        changed = [*drafts[:place], (drafts[place] + 1) % size, *drafts[place + 1 :]]
        other = np.asarray(rows(changed))
        if not np.array_equal(base[: place + 1], other[: place + 1]):
            row = int(np.argmax((base != other).any(axis=1)))
            return Finding(
                "a row conditions on earlier tokens only", False, f"draft {place} changes target row {row}"
            )
    return Finding("a row conditions on earlier tokens only", True, f"{len(drafts)} drafts changed in turn")


def state_after_step(
    commit: Callable[[Any, Sequence[int]], Any], start: Any, tokens: Sequence[int]
) -> Finding:
    """Is the state after one step of several tokens that of token-by-token decoding? ``commit`` returns a new state."""
    together = commit(start, list(tokens))
    one_by_one = start
    for token in tokens:
        one_by_one = commit(one_by_one, [token])
    holds = bool(np.array_equal(np.asarray(together), np.asarray(one_by_one)))
    detail = f"after {list(tokens)}: {together!r} in one step, {one_by_one!r} token by token"
    return Finding("a step leaves the state of token-by-token decoding", holds, detail)


def refuses(call: Callable[[], Any], what: str) -> Finding:
    """Is an unusable input refused? A returned value, NaN or not, is the fault: nothing may be silently made of it."""
    promise = f"{what} is refused"
    try:
        returned = call()
    except Exception as error:
        return Finding(promise, True, f"{type(error).__name__}: {error}")
    return Finding(promise, False, f"returned {returned!r}")


def returns_law(call: Callable[[], Any], what: str) -> Finding:
    """Is what ``call()`` returns a law: finite, non-negative, of total mass one?"""
    promise = f"{what} is a law"
    try:
        row = law(np.asarray(call()), name=what)
    except Exception as error:
        return Finding(promise, False, f"{type(error).__name__}: {error}")
    return Finding(promise, True, f"{row.size} entries")


def accurate(found: float, exact: float, relative: float, what: str) -> Finding:
    """Is a number that the rule depends on right to ``relative`` precision?"""
    error = abs(found - exact) / abs(exact)
    detail = f"{found!r} for {exact!r}, relative error {error:.2g}, allowed {relative:.2g}"
    return Finding(f"{what} is accurate", error <= relative, detail, {"relative_error": error})

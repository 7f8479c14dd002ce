"""Every contract check: one engine that keeps the promise and one, planted, that breaks it."""

from fractions import Fraction

import numpy as np
import pytest

from resispec_core.audit import contract
from resispec_core.errors import InputError

Q = [0.5, 0.3, 0.2]
RAW = np.log([0.5, 0.25, 0.15, 0.1])


def pick(row):
    return lambda rng: (int(rng.choice(3, p=row)), Q)


@pytest.mark.parametrize(
    ("propose", "holds", "gap"),
    [
        (pick(Q), True, 0),
        (lambda rng: (0, Q), False, 0.5),
        (pick([0.5, 0.2, 0.3]), False, 0.1),
        (pick([0.625, 0.375, 0]), False, 0.2),
        (lambda rng: (int(np.argmax(np.log(Q) + rng.gumbel(size=3))), Q), True, 0),
        (lambda rng: (1, [0, 1, 0]), True, 0),
        (lambda rng: (int(rng.random() < 1 / 3), [Fraction(2, 3), Fraction(1, 3)]), True, 0),
    ],
)
def test_draft_law(propose, holds, gap):
    finding = contract.draft_law(propose)
    assert finding.holds is holds, str(finding)
    assert finding.figures["total_variation"] == pytest.approx(gap, abs=1e-9)
    assert finding.exit_code == (0 if holds else 1)


def test_draft_law_that_changes_with_the_draw_is_an_input_error():
    def propose(rng):
        token = int(rng.choice(3, p=Q))
        return token, np.eye(3)[token]

    with pytest.raises(InputError, match="changes with the draw"):
        contract.draft_law(propose)


@pytest.mark.parametrize(("bad", "place"), [(None, None), (0, 0), (2, 2)])
def test_rows_filtered(bad, place):
    from resispec_core import law_from_logits

    rows = [law_from_logits(RAW, temperature=0.7, top_k=2).astype(np.float32) for _ in range(3)]
    if bad is not None:
        rows[bad] = law_from_logits(RAW, temperature=0.7).astype(np.float32)
    finding = contract.rows_filtered([RAW] * 3, rows, temperature=0.7, top_k=2)
    assert finding.holds is (bad is None)
    if bad is not None:
        assert finding.figures["row"] == place


def test_independent_streams():
    def shared(rng):
        coin = rng.random()
        if coin < 0.5:
            return 0
        return 1 if coin < 0.7 else 2

    def separate(rng):
        if rng.random() < 0.5:
            return 0
        return 1 if rng.random() < 0.4 else 2

    def shared_noise(rng):
        noise = rng.gumbel(size=3)
        first = int(np.argmax(np.log(Q) + noise))
        return first if rng.random() < 0.5 else int(np.argmax(np.log([0.2, 0.3, 0.5]) + noise))

    assert contract.independent_streams(separate).holds
    assert not contract.independent_streams(shared).holds
    finding = contract.independent_streams(shared_noise)
    assert not finding.holds
    assert "raced again" in finding.detail


ROWS = np.array([[0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1], [0.0, 0.5, 0.5, 0.0]])
DRAFTS = ROWS[[2, 0, 3, 1]]
CANDIDATES = np.array([[0], [3], [1], [2]])
COINS = np.array([[0.9, 0.3], [0.2, 0.6], [0.5, 0.5], [0.99, 0.01]])


def verify_rows(targets, drafts, candidates, coins):
    tokens = []
    for p, q, (x, *_), (coin, last) in zip(targets, drafts, candidates, coins, strict=True):
        if coin * q[x] < p[x]:
            tokens.append(int(x))
        else:
            left = np.maximum(p - q, 0)
            tokens.append(int(np.searchsorted(np.cumsum(left / left.sum()), last, side="right")))
    return np.array(tokens)


def neighbour(targets, drafts, candidates, coins):
    return verify_rows(targets, np.roll(drafts, 1, axis=0) if len(targets) > 4 else drafts, candidates, coins)


def batch_mean(targets, drafts, candidates, coins):
    return verify_rows(targets, drafts, candidates, np.broadcast_to(coins.mean(axis=0), coins.shape))


def ignores_strides(targets, drafts, candidates, coins):
    if not targets.flags.c_contiguous:
        targets = targets.base[: len(targets)]  # a pointer and a length, as if the rows were dense
    return verify_rows(targets, drafts, candidates, coins)


@pytest.mark.parametrize(
    ("verify", "detail"),
    [(verify_rows, None), (neighbour, "padded"), (batch_mean, "in a batch"), (ignores_strides, "strided")],
)
def test_batch_invariance(verify, detail):
    finding = contract.batch_invariance(verify, ROWS, DRAFTS, CANDIDATES, COINS)
    assert finding.holds is (detail is None), str(finding)
    if detail is not None:
        assert detail in finding.detail


def test_vocabulary_map():
    ids = [0, 3, 5]

    def right(row):
        wide = np.zeros(6)
        wide[ids] = row
        return wide

    assert contract.vocabulary_map(right, Q, ids, 6).holds
    assert not contract.vocabulary_map(lambda row: np.pad(row, (0, 3)), Q, ids, 6).holds
    assert not contract.vocabulary_map(lambda row: row, Q, [2, 0, 1], 3).holds
    assert not contract.vocabulary_map(lambda row: row, Q, ids, 6).holds


def test_placeholder_ids():
    p, q = [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]

    def stale(target, draft, candidates, rng):
        x = candidates[0]
        return x % 3 if rng.random() * draft[x] < target[x] else int(rng.choice(3, p=target))

    def wrong_id(target, draft, candidates, rng):
        return candidates[0]

    def skips(target, draft, candidates, rng):
        return int(rng.choice(3, p=target))

    def refuses(target, draft, candidates, rng):
        raise InputError("candidate -1 is no token")

    assert contract.placeholder_ids(skips, p, q).holds
    assert contract.placeholder_ids(refuses, p, q).holds
    assert not contract.placeholder_ids(stale, p, q).holds
    assert not contract.placeholder_ids(wrong_id, p, q).holds


def test_seeds_per_row():
    def right(seeds):
        fresh = np.random.default_rng(99)
        return np.array(
            [(fresh if seed is None else np.random.default_rng(seed)).integers(2, size=32) for seed in seeds]
        )

    def by_row(seeds):
        return np.array(
            [np.random.default_rng([seed or 0, row]).integers(2, size=32) for row, seed in enumerate(seeds)]
        )

    def one_stream(seeds):
        return np.array([np.random.default_rng(0).integers(2, size=32) for _ in seeds])

    shared = np.random.default_rng(1)
    assert contract.seeds_per_row(right).holds
    assert "inside a batch" in contract.seeds_per_row(by_row).detail
    assert "seeds 5 and 11" in contract.seeds_per_row(one_stream).detail
    assert (
        "two runs" in contract.seeds_per_row(lambda seeds: shared.integers(2, size=(len(seeds), 32))).detail
    )


def test_causal_rows():
    table = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])
    assert contract.causal_rows(lambda drafts: table[[0, *drafts]], [1, 2], 3).holds
    finding = contract.causal_rows(lambda drafts: table[[drafts[-1], *drafts]], [1, 2], 3)
    assert not finding.holds
    assert "draft 1 changes target row 0" in finding.detail


def test_state_after_step():
    def right(state, tokens):
        return np.array(state) + np.bincount(tokens, minlength=2)

    def last_only(state, tokens):
        return np.array(state) + np.bincount(tokens[-1:], minlength=2)

    assert contract.state_after_step(right, [0, 0], [0, 1, 0, 1]).holds
    assert not contract.state_after_step(last_only, [0, 0], [0, 1, 0, 1]).holds


def test_refuses_returns_law_and_accurate():
    def raises():
        raise InputError("NaN at token 0")

    assert contract.refuses(raises, "a NaN row").holds
    assert not contract.refuses(lambda: 3, "a NaN row").holds
    assert contract.returns_law(lambda: [0.5, 0.5], "row").holds
    assert not contract.returns_law(lambda: [np.nan, 0.5], "row").holds
    assert not contract.returns_law(lambda: [0.5, 0.4], "row").holds
    assert contract.accurate(1.0000001, 1.0, 1e-6, "x").holds
    assert not contract.accurate(1.01, 1.0, 1e-6, "x").holds
    assert contract.accurate(1.0, 1.0, 1e-6, "x").to_json()["holds"]

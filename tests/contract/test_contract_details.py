"""What a finding says: its figures and the place it names, worked out by hand for each input."""

import numpy as np
import pytest

from resispec_core.audit import contract
from resispec_core.errors import InputError

Q = [0.5, 0.25, 0.25]


def test_a_finding_in_words_and_in_json():
    held, broken = (contract.Finding("x is y", holds, "why", {"n": 3}) for holds in (True, False))
    assert (str(held), held.exit_code) == ("held: x is y: why", 0)
    assert (str(broken), broken.exit_code) == ("BROKEN: x is y: why", 1)
    assert broken.to_json() == {"promise": "x is y", "holds": False, "detail": "why", "n": 3}


def test_draft_law_gives_both_laws():
    finding = contract.draft_law(lambda rng: (int(rng.choice(3, p=[0.25, 0.5, 0.25])), Q))
    assert finding.figures == {
        "total_variation": 0.25,
        "drawn": ["1/4", "1/2", "1/4"],
        "declared": ["1/2", "1/4", "1/4"],
    }
    assert finding.detail == "TV between the drawn and the declared law is 0.25, 3 paths"


def test_a_draft_that_crashes_is_no_law():
    def crashes(rng):
        if rng.random() < 0.5:
            raise RuntimeError("out of memory")
        return 0, [1.0, 0.0]

    finding = contract.draft_law(crashes)
    assert not finding.holds
    assert "out of memory" in finding.detail
    assert finding.figures["total_variation"] == 1


def test_rows_filtered_names_the_worst_row():
    logits = [np.log([0.5, 0.25, 0.25])] * 3
    rows = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.375, 0.375, 0.25]]
    finding = contract.rows_filtered(logits, rows)
    assert not finding.holds
    assert finding.figures["row"] == 1
    assert finding.figures["total_variation"] == pytest.approx(0.25, abs=1e-15)
    assert finding.detail == "largest TV from the plain sampler's law is 0.25, at row 1 of 3"
    assert contract.rows_filtered(logits[:1], rows[:1]).holds
    assert not contract.rows_filtered(logits[:1], [[0.5 + 1e-4, 0.25 - 1e-4, 0.25]]).holds
    assert not contract.rows_filtered(logits[:1], [[np.nan, 0.25, 0.25]]).holds
    assert contract.rows_filtered(logits[:1], [[0.5, 0.5]]).detail == "row 0 has shape (2,), not (3,)"
    with pytest.raises(InputError, match="2 rows of logits and 1 rows of probabilities"):
        contract.rows_filtered(logits[:2], rows[:1])


def test_a_coin_used_twice_is_named_by_its_two_places():
    def shared(rng):
        coin = rng.random()
        low = coin < 0.5
        return 0 if low else 1 + (coin < 0.75)

    finding = contract.independent_streams(shared)
    assert not finding.holds
    assert finding.detail.count("test_contract_details.py") == 2
    finding = contract.independent_streams(lambda rng: int(rng.choice(3)))
    assert finding.detail == "no coin is used twice, 3 paths"


def test_vocabulary_map_names_the_first_wrong_column():
    finding = contract.vocabulary_map(lambda row: np.array([0.0, *row]), Q, [0, 1, 2], 4)
    assert finding.detail == "target id 0 has draft probability 0, it must be 0.5"
    assert contract.vocabulary_map(lambda row: row, Q, [0, 1, 2], 3).detail == "3 columns agree"
    assert (
        contract.vocabulary_map(lambda row: row, Q, [0, 1, 3], 4).detail == "the row has shape (3,), not (4,)"
    )


def test_batch_invariance_names_the_row():
    rows = np.array([[0.5, 0.5], [0.25, 0.75]])
    tokens, coins = np.array([[0], [1]]), np.array([[0.1], [0.2]])

    def last_row_is_dropped(targets, drafts, candidates, coins):
        return np.array([*candidates[:-1, 0], 0]) if len(targets) == 2 else candidates[:, 0]

    finding = contract.batch_invariance(last_row_is_dropped, rows, rows, tokens, coins)
    assert finding.detail == "row 1 gives token 1 alone and 0 in a batch of 2 rows"
    finding = contract.batch_invariance(lambda p, q, x, u: x[:, 0], rows, rows, tokens, coins)
    assert finding.detail == "2 rows alone and in 4 layouts"


def test_a_batch_is_permuted_and_strided_as_a_whole():
    """Every row of every layout is one of the rows given, all of its four parts together."""
    rows = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.125, 0.125, 0.75]])
    tokens, coins = np.array([[0], [1], [2]]), np.array([[0.1], [0.2], [0.3]])
    seen = []

    def verify(p, q, x, u):
        seen.append([tuple(map(float, (*a, *b, *c, *d))) for a, b, c, d in zip(p, q, x, u, strict=True)])
        return x[:, 0]

    assert contract.batch_invariance(verify, rows, rows[::-1], tokens, coins).holds
    given = [tuple(map(float, (*rows[i], *rows[2 - i], *tokens[i], *coins[i]))) for i in range(3)]
    assert seen[:3] == [[row] for row in given]
    assert given in seen[3:]
    assert given[::-1] in seen[3:]
    padded = next(batch for batch in seen[3:] if len(batch) == 6)
    assert padded[:3] == given
    assert sum(batch == given for batch in seen[3:]) == 2  # in a batch, and in strided memory


def test_placeholder_ids_says_what_was_tried():
    def good(target, draft, candidates, rng):
        assert candidates == [-1]
        return int(rng.choice(2, p=target))

    finding = contract.placeholder_ids(good, [0.5, 0.5], [0.25, 0.75], trials=5)
    assert (finding.holds, finding.detail) == (True, "5 seeds, 4 stale rows")
    finding = contract.placeholder_ids(lambda p, q, x, rng: 2, [0.5, 0.5], [0.25, 0.75])
    assert (finding.holds, finding.detail) == (False, "seed 0: token [2, 2, 2, 2] returned")
    finding = contract.placeholder_ids(lambda p, q, x, rng: int(np.argmax(q)), [0.5, 0.5], [0.25, 0.75])
    assert finding.detail == "seed 0: the stale draft row changes the token: [1, 0, 0, 1]"


def streams(seeds):
    fresh = np.random.default_rng(99)
    return np.array([(fresh if s is None else np.random.default_rng(s)).integers(2, size=32) for s in seeds])


def test_seeds_per_row_sees_each_fault():
    def constant(seeds):
        return np.array([np.zeros(32, int) if s is None else streams([s])[0] for s in seeds])

    def second_copy(seeds):
        rows = streams(seeds)
        if len(seeds) == 4:
            rows[3] = 1 - rows[3]
        return rows

    assert contract.seeds_per_row(streams).detail == "32 draws a row, alone and in a batch of 4"
    assert "constant: [0, 0, 0, 0, 0, 0, 0, 0]" in contract.seeds_per_row(constant).detail
    assert contract.seeds_per_row(second_copy).detail == "two rows of one batch with seed 11 differ"
    assert contract.seeds_per_row(lambda seeds: constant(seeds)[:, :8]).holds  # eight draws say too little


def test_a_stream_that_depends_on_the_length_may_be_declared():
    def by_length(seeds):
        return np.array([np.random.default_rng([s or 0, len(seeds)]).integers(2, size=32) for s in seeds])

    assert not contract.seeds_per_row(by_length).holds
    assert contract.seeds_per_row(by_length, length_matters=False).holds


def test_causal_rows_changes_every_draft():
    def future(drafts):
        rows = np.zeros((3, 2))
        rows[1] = drafts[1]
        return rows

    assert contract.causal_rows(future, [0, 1], 2).detail == "draft 1 changes target row 1"
    assert (
        contract.causal_rows(lambda drafts: np.zeros((3, 2)), [0, 1], 2).detail == "2 drafts changed in turn"
    )


def test_small_checks_say_what_they_saw():
    finding = contract.state_after_step(lambda state, tokens: state + len(tokens), 0, [1, 1])
    assert finding.detail == "after [1, 1]: 2 in one step, 2 token by token"
    assert contract.refuses(lambda: 3, "it").detail == "returned 3"
    assert contract.returns_law(lambda: [0.5, 0.25, 0.25], "it").detail == "3 entries"
    finding = contract.accurate(1.5, 2.0, 0.25, "x")
    assert finding.holds
    assert finding.figures == {"relative_error": 0.25}
    assert not contract.accurate(-2.0, 2.0, 1.0, "x").holds
    assert contract.accurate(-2.0, -2.0, 0.0, "x").holds

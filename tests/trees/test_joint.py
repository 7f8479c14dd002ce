"""The law of whole sequences: exact for every exact rule on every topology that fits; a bias is found where it is."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_cases import EXACT, fits, ordered_trees, quick, topologies

from resispec_core import BudgetExceededError, InputError
from resispec_core.arrays import as_float
from resispec_core.audit.replay.tables import Markov, hard_pair
from resispec_core.audit.verdict import Verdict
from resispec_core.drafts import DRAW_MODES
from resispec_core.rules import RULES, ResiSpec
from resispec_core.rules import rule as named_rule
from resispec_core.rules.resispec import REDISTRIBUTIONS
from resispec_core.testing import markov_tables
from resispec_core.trees import Topology, audit_tree, chain, complete, replay_tree, unlikely

SMALL = [topology for nodes in range(1, 8) for topology in ordered_trees(nodes, 3)]
"""All 64 topologies of at most seven nodes and three levels."""
CASES = pytest.mark.parametrize(("name", "draw"), EXACT, ids=lambda value: str(value))


@CASES
def test_every_small_topology_is_exact(name, draw):
    rule = named_rule(name)
    for topology in SMALL:
        if fits(name, topology):
            report = audit_tree(rule, *hard_pair(3), topology, draw=draw)
            assert (report.verdict, report.total_variation) == (Verdict.EXACT, 0), topology
            assert report.law == report.expected
            assert report.witness is None


@pytest.mark.parametrize("draw", DRAW_MODES)
def test_random_tables_are_exact(draw):
    """200 tables a draw mode, each with its own topology, for every rule; some trees are cut short by their draft."""
    names = [name for name, mode in EXACT if mode == draw]
    assert names

    @settings(max_examples=200)
    @given(markov_tables(2, 3), topologies(), st.sampled_from([None, Fraction(1, 4), Fraction(1, 2)]))
    def check(tables, topology, threshold):
        stop = None if threshold is None else unlikely(threshold)
        for name in names:
            tree = topology if quick(name, topology) else chain(topology.depth - 1)
            report = audit_tree(name, *tables, tree, draw=draw, stop=stop)
            assert (name, report.verdict, report.total_variation) == (name, Verdict.EXACT, 0)
            assert 1 <= report.accepted_length <= tree.depth

    check()


SHAPES = [Topology((-1, 0, 0)), chain(2), Topology((-1, 0, 0, 1))]


REPLAYED = [*EXACT, ("resispec", "iid"), ("resispec", "without-replacement"), ("typical", "iid")]


@pytest.mark.parametrize(
    ("name", "draw", "shape"),
    [(name, draw, shape) for shape in SHAPES for name, draw in REPLAYED if fits(name, shape)],
    ids=str,
)
def test_the_walk_itself_has_the_summed_law(name, draw, shape):
    """Every draft tree and every coin through ``draft_tree`` and ``walk``, against the sum over subtrees."""
    tables = hard_pair(2 if len(shape) > 3 else 3)
    summed = audit_tree(name, *tables, shape, draw=draw, horizon=2)
    replayed = replay_tree(name, *tables, shape, draw=draw, horizon=2)
    assert replayed.total_variation == summed.total_variation
    assert {tuple(key): mass for key, mass in replayed.law.items()} == summed.law


def test_the_walk_itself_with_a_stop_and_with_empty_slots():
    """Seven slots, of which the draft leaves some empty or undrafted, differently in different contexts."""
    for draw, stop in (("iid", unlikely(Fraction(1, 2))), ("without-replacement", None)):
        summed = audit_tree("specinfer", *hard_pair(2), complete(3, 2), draw=draw, stop=stop)
        replayed = replay_tree("specinfer", *hard_pair(2), complete(3, 2), draw=draw, stop=stop)
        assert replayed.verdict is summed.verdict is Verdict.EXACT
        assert replayed.law == summed.law
    tables = Markov((1, 0, 0), [(1, 0, 0)] * 3), Markov((0, 1, 0), [(0, 0, 1), (0, 1, 0), (1, 0, 0)])
    report = replay_tree("specinfer", *tables, complete(3, 2), draw="without-replacement")
    assert report.verdict is Verdict.EXACT


# The published rule.


@pytest.mark.parametrize("redistribution", REDISTRIBUTIONS)
@pytest.mark.parametrize("draw", ["iid", "without-replacement"])
def test_the_published_rule_is_biased_on_trees(redistribution, draw):
    """Measured on one table; the witness is a sequence that comes out too often."""
    report = audit_tree(ResiSpec(redistribution), *hard_pair(3), complete(3, 2), draw=draw)
    assert report.verdict is Verdict.BIASED
    assert report.exit_code == 1
    tokens, found, expected = report.witness
    assert found == report.law[tokens] > expected == report.expected.get(tokens, 0)
    assert report.total_variation >= found - expected > 0
    assert list(report.by_length) == sorted(report.by_length)
    assert report.by_length[-1] == report.total_variation
    assert (
        replay_tree(ResiSpec(redistribution), *hard_pair(3), chain(2), draw=draw, horizon=2).verdict
        is Verdict.BIASED
    )


def test_the_stated_joint_bias():
    """One table in exact figures: the first token alone, two, three."""
    report = audit_tree("resispec", *hard_pair(3), complete(3, 2))
    assert report.by_length == (Fraction(11, 54), Fraction(102607, 423738), Fraction(15083239, 62289486))


def test_the_published_rule_is_biased_on_most_tables():
    """The audit of a biased rule is not by accident: with three tokens and full support nearly every table shows it."""
    biased = []

    @settings(max_examples=100)
    @given(markov_tables(3, 3))
    def look(tables):
        biased.append(audit_tree("resispec", *tables, complete(3, 2)).verdict is Verdict.BIASED)

    look()
    assert sum(biased) > len(biased) / 2


def test_the_bias_of_later_positions_adds_to_that_of_the_first():
    """Exact first rows, biased later ones: the first token's law is right, the sequence's is not."""
    target, draft = hard_pair(3)
    same = Markov(target.start, draft.rows)
    report = audit_tree("resispec", target, same, complete(3, 2))
    assert report.by_length[0] == 0 < report.by_length[1] <= report.by_length[2]


# What a report says.


def test_lossy_rules_are_measured_not_failed():
    report = audit_tree("typical", *hard_pair(3), complete(2, 2))
    assert (report.verdict, report.exit_code) == (Verdict.LOSSY_BY_DESIGN, 0)
    assert report.total_variation > 0


@pytest.mark.parametrize("name", ["specinfer", "shaped", "optimal", "resispec"])
def test_float_tables_agree_with_rational_ones_within_the_stated_rounding(name):
    exact = hard_pair(3)
    floats = [Markov(as_float(table.start), [as_float(row) for row in table.rows]) for table in exact]
    true, found = (audit_tree(name, *tables, complete(3, 2)) for tables in (exact, floats))
    assert 0 < found.rounding < 1e-13
    gap = sum(abs(float(true.law.get(tokens, 0)) - mass) for tokens, mass in found.law.items()) / 2
    assert gap <= found.rounding
    assert found.verdict is (Verdict.EXACT_WITHIN if true.verdict is Verdict.EXACT else true.verdict)
    assert found.accepted_length == pytest.approx(float(true.accepted_length))
    if name != "resispec":
        assert found.total_variation <= found.rounding


def test_a_rounding_bound_that_is_too_small_would_be_noticed():
    """The bound above is not vacuous: single precision breaks it."""

    def single(table):
        rows = [as_float(row).astype("float32").astype(float) for row in [table.start, *table.rows]]
        rows = [row / row.sum() for row in rows]
        return Markov(rows[0], rows[1:])

    target, draft = hard_pair(3)
    exact = audit_tree("specinfer", target, draft, complete(3, 2))
    found = audit_tree("specinfer", single(target), single(draft), complete(3, 2))
    gap = sum(abs(float(exact.law.get(tokens, 0)) - mass) for tokens, mass in found.law.items()) / 2
    assert gap > found.rounding


def test_accepted_length_of_known_cases():
    same = hard_pair(3)[0], hard_pair(3)[0]
    assert audit_tree("specinfer", *same, chain(3)).accepted_length == 4  # p = q: everything is accepted
    assert audit_tree("autoregressive", *same, complete(3, 2)).accepted_length == 1
    p, q = (1, 1), (1, 3)
    pair = Markov(half(p), [half(p)] * 2), Markov(half(q), [half(q)] * 2)
    a = Fraction(3, 4)  # Σ min(p, q)
    assert audit_tree("single-draft", *pair, chain(2)).accepted_length == 1 + a + a**2


def half(weights):
    return [Fraction(weight, sum(weights)) for weight in weights]


def test_equal_subtrees_are_summed_once():
    """A complete tree has as many shapes as levels: the states do not grow with the branching."""
    deep = audit_tree("specinfer", *hard_pair(2), complete(6, 3), horizon=2)
    assert deep.verdict is Verdict.EXACT
    assert deep.topology.cost == 364
    assert deep.states < 100


def test_a_prompt_and_a_longer_horizon():
    report = audit_tree("shaped", *hard_pair(3), complete(2, 3), prompt=(2, 1), horizon=5)
    assert report.verdict is Verdict.EXACT
    assert sum(report.law.values()) == 1
    assert {len(tokens) for tokens in report.law} == {5}
    table = hard_pair(3)[0]
    assert sum(mass for tokens, mass in report.law.items() if tokens[0] == 0) == table((2, 1))[0]


def test_the_json_is_plain():
    data = audit_tree("resispec", *hard_pair(3), complete(2, 2), horizon=2).to_json()
    assert data["verdict"] == "BIASED"
    assert data["by_length"][0] == "11/54"
    assert data["parents"] == [-1, 0, 0]
    assert set(data["witness"]) == {"tokens", "law", "target"}
    assert sum(Fraction(mass) for _, mass in data["law"]) == 1
    assert "law" not in audit_tree("specinfer", *hard_pair(2), chain(1)).to_json(with_law=False)


def test_bad_questions_are_refused(monkeypatch):
    with pytest.raises(InputError, match="horizon is 0; at least one token must be compared"):
        audit_tree("specinfer", *hard_pair(2), chain(1), horizon=0)
    with pytest.raises(InputError, match="rule 'optimal' is meant for candidates drawn iid"):
        audit_tree("optimal", *hard_pair(2), chain(1), draw="top-k")
    with pytest.raises(InputError, match="target has 2 tokens and draft has 3"):
        audit_tree("specinfer", hard_pair(2)[0], hard_pair(3)[1], chain(1))
    with pytest.raises(BudgetExceededError, match=r"V\^L = 3\^20"):
        audit_tree("specinfer", *hard_pair(3), chain(1), horizon=20)
    monkeypatch.setattr("resispec_core.trees.joint.MAX_STATES", 500)
    with pytest.raises(BudgetExceededError, match=r"more than 500 \(subtree, prefix\) states"):
        audit_tree("specinfer", *hard_pair(2), chain(40), horizon=1)
    with pytest.raises(BudgetExceededError, match="the tree has 201 levels, over the budget of 128"):
        audit_tree("specinfer", *hard_pair(2), chain(200), horizon=1)


def test_every_rule_is_covered():
    assert {name for name, _ in EXACT} == {name for name, kind in RULES.items() if not kind.lossy} - {
        "resispec"
    }

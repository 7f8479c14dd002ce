"""Topologies: shapes, numbering, text, files, and what is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_cases import ordered_trees, topologies

from resispec_core import InputError
from resispec_core.testing import draft_trees
from resispec_core.trees import (
    ABSENT,
    DraftTree,
    Topology,
    breadth_first,
    chain,
    complete,
    describe,
    load,
    parse_topology,
    picture,
    read_topology,
    save,
    tree_of,
)


@pytest.mark.parametrize(
    ("text", "cost"), [("d5b3", 121), ("d7b2", 127), ("d4b5", 156), ("d3b11", 133), ("d4b4", 85)]
)
def test_the_papers_verification_costs(text, cost):
    topology = parse_topology(text)
    assert topology.cost == cost == len(topology) == topology.drafted + 1
    assert topology == parse_topology(text[1:].replace("b", "x")) == parse_topology(text.upper())
    depth, branching = map(int, text[1:].split("b"))
    assert (topology.depth, topology.branching) == (depth, branching)
    assert [len(level) for level in topology.levels] == [branching**level for level in range(depth)]


def test_a_chain_drafts_one_sequence():
    assert chain(4) == complete(5, 1) == parse_topology("5x1")
    assert chain(0) == Topology((-1,))
    assert chain(4).path(4) == (0, 1, 2, 3, 4)


@given(topologies(8, 8))
def test_a_topology_is_consistent(topology):
    assert sorted(child for node in range(len(topology)) for child in topology.children(node)) == list(
        range(1, len(topology))
    )
    for node in range(1, len(topology)):
        parent = topology.parents[node]
        assert topology.children(parent)[topology.ranks()[node]] == node
        assert topology.path(node) == (*topology.path(parent), node)
        assert topology.depths[node] == len(topology.path(node))
    assert [node for level in topology.levels for node in level] == list(range(len(topology)))
    assert topology.depths == tuple(sorted(topology.depths))


@given(draft_trees(8, 3))
def test_any_order_with_parents_first_becomes_breadth_first_and_stays_the_same_tree(nodes):
    tree = tree_of(nodes)
    parents = [-1, *(parent + 1 for parent, _ in nodes)]
    topology, old = breadth_first(parents)
    assert topology == tree.topology
    assert sorted(old) == list(range(len(parents)))
    for node in range(1, len(old)):
        assert old[topology.parents[node]] == parents[old[node]]
        assert tree.tokens[node] == nodes[old[node] - 1][1]
    for node in range(len(old)):  # siblings keep their order
        own = [old[child] for child in topology.children(node)]
        assert own == sorted(own)


def test_every_ordered_tree_is_listed_once():
    """Catalan numbers, and 2^(n−2) with at most three levels."""
    assert [len(set(ordered_trees(nodes))) for nodes in range(1, 8)] == [1, 1, 2, 5, 14, 42, 132]
    assert [len(list(ordered_trees(nodes, 3))) for nodes in range(2, 8)] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ((), "parents is empty"),
        ((0,), "parents starts with 0; node 0 is the root"),
        ((-1, 1), "node 1 has parent 1; a parent is an earlier node, 0 to 0"),
        ((-1, 0, -1), "node 2 has parent -1"),
        ((-1, 0, 1, 0), "node 3 has parent 0 after a child of node 1; number the nodes breadth first"),
    ],
)
def test_a_malformed_topology_is_refused(parents, message):
    with pytest.raises(InputError, match="topology: ") as error:
        Topology(parents)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "'5' is not understood; write depth x branching"),
        ("d5", "is not understood"),
        ("5x3x2", "is not understood"),
        ("0x3", "depth is 0 and branching 3; both are at least 1"),
        ("3x0", "depth is 3 and branching 0"),
        ("60x5", "more than 65536 nodes"),
        ("999999x1", "more than 65536 nodes"),
    ],
)
def test_a_topology_that_cannot_be_read_is_refused(text, message):
    with pytest.raises(InputError) as error:
        parse_topology(text)
    assert message in str(error.value)


def test_bad_questions_are_refused():
    with pytest.raises(InputError, match="node 3 is not in this topology of 3 nodes"):
        chain(2).children(3)
    with pytest.raises(InputError, match="node 2 is kept without its parent 1"):
        chain(2).keep([2])
    with pytest.raises(InputError, match="node 2 has parent 3"):
        breadth_first([-1, 0, 3])
    with pytest.raises(InputError, match="a chain drafts 0 tokens or more"):
        chain(-1)


PICTURE = """\
0
├── 1
│   ├── 4
│   └── 5
│       └── 6
├── 2
└── 3"""


def test_the_picture():
    topology = Topology((-1, 0, 0, 0, 1, 1, 5))
    assert picture(topology) == PICTURE
    assert describe(topology) == "depth 4, 7 positions (6 drafted), levels 1 · 3 · 2 · 1"
    assert picture(chain(3000)).count("\n") == 3000  # deeper than Python recurses


@given(topologies(8, 8))
def test_a_picture_has_one_line_a_node_in_walking_order(topology):
    lines = picture(topology).split("\n")
    order = [int(line.split()[-1]) for line in lines]
    assert sorted(order) == list(range(len(topology)))
    for line, node in zip(lines, order, strict=True):
        assert len(line) - len(str(node)) == 4 * (topology.depths[node] - 1)
        own = [child for child in order if topology.parents[child] == node]
        assert own == list(topology.children(node))


@given(topologies(8, 8))
def test_files_keep_the_topology(tmp_path_factory, topology):
    path = tmp_path_factory.mktemp("files") / "tree.json"
    save(topology, path)
    assert load(path) == topology == read_topology(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1]", 'its "format" must be "resispec-topology"'),
        ('{"format": "other"}', 'its "format" must be "resispec-topology"'),
        (
            '{"format": "resispec-topology", "version": 2, "parents": [-1]}',
            "version 2 of the topology format",
        ),
        ('{"format": "resispec-topology", "version": 1}', '"parents" must be a list of integers'),
        ('{"format": "resispec-topology", "version": 1, "parents": [-1, true]}', "list of integers"),
        ('{"format": "resispec-topology", "version": 1, "parents": [-1, 5]}', "node 1 has parent 5"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"none\.json: no such file"):
        read_topology(str(tmp_path / "none.json"))


@given(draft_trees(8, 3), st.data())
def test_compact_drops_the_empty_slots_and_nothing_else(nodes, data):
    full = tree_of(nodes)
    tokens = list(full.tokens)
    for node in range(1, len(tokens)):
        above = full.topology.parents[node]
        if (above and tokens[above] == ABSENT) or data.draw(st.booleans()):
            tokens[node] = ABSENT
    tree = DraftTree(full.topology, tuple(tokens))
    small, old = tree.compact()
    assert [tree.tokens[node] for node in old[1:]] == [token for token in tokens if token != ABSENT]
    for node, before in enumerate(old):
        assert small.prefix(node) == tree.prefix(before)
        assert [old[child] for child in small.children(node)] == list(tree.children(before))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ((-1, 0), "2 tokens given for a topology of 3 nodes"),
        ((0, 0, 0), "the root has token 0"),
        ((-1, 0, -2), "node 2 has token -2"),
        ((-1, -1, 4), "node 2 has token 4, but its parent 1 is an empty slot"),
    ],
)
def test_a_malformed_draft_tree_is_refused(tokens, message):
    with pytest.raises(InputError) as error:
        DraftTree(chain(2), tokens)
    assert message in str(error.value)


def test_the_file_is_small_and_plain(tmp_path):
    save(complete(2, 2), tmp_path / "tree.json")
    assert json.loads((tmp_path / "tree.json").read_text()) == {
        "format": "resispec-topology",
        "version": 1,
        "parents": [-1, 0, 0],
    }

"""Positions in columns: the entries that went in come out, at a tenth of the memory."""

import tracemalloc
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resispec_core.llama.positions import Position, Positions

TEXT = st.text(st.characters(codec=None), max_size=12)  # lone surrogates, too
ENTRIES = st.lists(
    st.builds(Position, st.integers(0, 9), st.integers(1, 99), TEXT, st.integers(0, 2**31), TEXT), max_size=5
)


@given(ENTRIES)
def test_what_went_in_comes_out(entries):
    positions = Positions([asdict(entry) for entry in entries])
    assert list(positions) == entries
    assert [positions[-1 - place] for place in range(len(entries))] == entries[::-1]
    assert positions[1:] == entries[1:]
    for outside in (len(entries), -len(entries) - 1):
        with pytest.raises(IndexError):
            positions[outside]


def test_a_position_takes_about_a_hundred_bytes():
    """40 bytes, and two texts of 45 and 8 bytes here."""
    entries = [asdict(Position(0, 1, f"{place:045}", 7, f"{place:08}")) for place in range(10_000)]
    tracemalloc.start()
    positions = Positions(entries)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(positions) == 10_000
    assert held / len(positions) < 120

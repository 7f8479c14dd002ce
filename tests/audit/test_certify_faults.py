"""Planted faults in the certified bracket: each must make a check of ``certify_cases`` or of the widths fail."""

from dataclasses import replace
from functools import lru_cache
from importlib import import_module

import numpy as np
import pytest
from certify_cases import REDISTRIBUTIONS, SMALL, assert_holds, sharpened, truth

from resispec_core import law_from_logits
from resispec_core.audit import certify
from resispec_core.audit.certify.owed import Owed
from resispec_core.llama.store import sample_store

BRACKET, FORMS, GROUPS, OWED, PUBLISHED, SPREAD, STATES, THIRD = (
    import_module(f"resispec_core.audit.certify.{name}")
    for name in ("bracket", "forms", "groups", "owed", "published", "spread", "states", "third")
)


@lru_cache
def cases():
    """(redistribution, p, q, n, the rational truth) of fourteen seeded runs over 5 tokens.

    Most of p is on one token, so that the others can be rejected again and again.
    """
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        p, q = rng.dirichlet(np.full(5, 2.0), size=2)
        p = sharpened(p)
        candidates = 3 if seed % 3 else 2
        found += [
            (name, p, q, candidates, truth(name, p, q, candidates))
            for name in REDISTRIBUTIONS[: 3 if candidates == 2 else 2]
        ]
    return found


def every_bracket_holds():
    for name, p, q, candidates, true in cases():
        for budget in SMALL:
            assert_holds(name, p, q, candidates, budget, true)


def the_widest_position_is_narrow():
    p, q = (law_from_logits(row) for row in sample_store().row(13))
    assert certify("resispec", p, q, 2).width <= 1e-3


def assert_noticed(monkeypatch, module, name, fault, check):
    """``check`` passes, and fails once ``module.name`` is the faulty version."""
    check()
    with monkeypatch.context() as patch:
        patch.setattr(module, name, fault)
        with pytest.raises(AssertionError):
            check()


def inward(low, high, rounding):
    return low + rounding, high - rounding


def no_rounding_upwards(low, high, rounding):
    return low + 64 * rounding, high


def nothing_unexplored(*given, whole=FORMS.published_marginal):
    return replace(whole(*given), unexplored=0.0)


def upper_edge(row, pairs, budget, whole=GROUPS.group):
    """Every group takes the largest probability of its pairs, not the smallest."""
    groups = whole(row, pairs, budget)
    high = groups.low.copy()
    inside = groups.of >= 0
    np.maximum.at(high, groups.of[inside], pairs.mass[inside])
    return groups._replace(low=high)


def one_too_many(row, pairs, budget, whole=GROUPS.group):
    groups = whole(row, pairs, budget)
    return groups._replace(size=groups.size + 1)


def tangent(row, groups, mass, whole=THIRD._chord):
    """min(W·q, p) taken as W·q: an upper bound."""
    found = whole(row, groups, mass)
    level = np.full(mass.size, 1e-200)
    return Owed(level, row.below(level), mass / level, found.share, found.spill)


def whole_tail(row, first, reach, x, y, mass, largest, whole=STATES._tail):
    """The tail without taking out the pairs that are listed."""
    nothing = np.zeros(0, dtype=int)
    return whole(row, first, reach, nothing, nothing, np.zeros(0), largest)


def no_holes_in_the_tail(*given, whole=STATES._tail):
    tail = whole(*given)
    return tail._replace(through=0 * tail.through)


def nothing_taken_back(*given):
    del given


def no_holes(self, index, mass):
    del self, index, mass


def full_share(row, mass, stay, holes, redistribution, whole=OWED.owed):
    found = whole(row, mass, stay, holes, redistribution)
    return found._replace(share=np.minimum(1, 2 * found.share))


def level_too_high(row, mass, holes, whole=OWED._water_level):
    level, spill = whole(row, mass, holes)
    return level * (1 + 1e-9), spill


FAULTS = [
    (BRACKET, "outward", inward),
    (BRACKET, "outward", no_rounding_upwards),
    (BRACKET, "published_marginal", nothing_unexplored),
    (THIRD, "group", upper_edge),
    (THIRD, "group", one_too_many),
    (THIRD, "_chord", tangent),
    (THIRD, "_take_back", nothing_taken_back),
    (THIRD, "owed", full_share),
    (STATES, "owed", full_share),
    (STATES, "_tail", whole_tail),
    (STATES, "_tail", no_holes_in_the_tail),
    (SPREAD.Spread, "remove", no_holes),
    (OWED, "_water_level", level_too_high),
]


@pytest.mark.parametrize(("module", "name", "fault"), FAULTS, ids=[fault.__name__ for *_, fault in FAULTS])
def test_a_bound_on_the_wrong_side_is_noticed(monkeypatch, module, name, fault):
    assert_noticed(monkeypatch, module, name, fault, every_bracket_holds)


def test_a_dropped_tail_is_noticed(monkeypatch):
    """Dropping it keeps the bracket valid, for what is not counted is unexplored; the width shows it."""

    def dropped(*given):
        del given

    assert_noticed(monkeypatch, PUBLISHED, "_add_tail", dropped, the_widest_position_is_narrow)


def test_a_tail_dropped_without_a_word_is_noticed(monkeypatch):
    """Renormalising what was counted, as if nothing had been left out."""

    def renormalised(*given, whole=FORMS.published_marginal):
        found = whole(*given)
        scale = 1 / (1 - found.unexplored)
        return replace(found, parts=tuple(part * scale for part in found.parts), unexplored=0.0)

    assert_noticed(monkeypatch, BRACKET, "published_marginal", renormalised, every_bracket_holds)

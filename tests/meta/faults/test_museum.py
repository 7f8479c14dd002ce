"""Every exhibit is flagged with the stated law; no control is; the page in docs/ is up to date."""

from pathlib import Path

import numpy as np
import pytest
from museum import EXHIBITS, NOT_REPRODUCIBLE, chain
from write_table import table

FAULTS = [exhibit for exhibit in EXHIBITS if not exhibit.control]
CONTROLS = [exhibit for exhibit in EXHIBITS if exhibit.control]


@pytest.mark.parametrize("exhibit", FAULTS, ids=lambda exhibit: exhibit.name)
def test_fault_is_flagged_with_its_stated_law(exhibit):
    seen = exhibit.look()
    assert seen.flagged, seen.detail
    if exhibit.faulty is not None:
        np.testing.assert_allclose(seen.law, exhibit.faulty, atol=exhibit.tolerance)


@pytest.mark.parametrize("exhibit", CONTROLS, ids=lambda exhibit: exhibit.name)
def test_control_is_not_flagged(exhibit):
    seen = exhibit.look()
    assert not seen.flagged, seen.detail


def test_in_place_update_is_reported_beside_the_verdict():
    seen = {
        exhibit.name: exhibit.look()
        for exhibit in EXHIBITS
        if exhibit.name in ("MCSD-5", "ASC-2881", "EAGLE-221")
    }
    assert any("in place" in note for note in seen["MCSD-5"].notes)
    assert any("in place" in note for note in seen["ASC-2881"].notes)


def test_shared_uniform_is_named():
    seen = next(exhibit for exhibit in EXHIBITS if exhibit.name == "FI-424").look()
    assert any("reused randomness" in note for note in seen.notes)


def test_every_case_is_shown_or_listed_as_not_reproducible():
    names = [exhibit.name.rstrip("ab") for exhibit in EXHIBITS if exhibit.name != "LCPP-5625a"]
    assert len({*names, "LCPP-5625a", *NOT_REPRODUCIBLE}) == 55


def test_accepted_count_of_the_stated_mask():
    mask = [True, False, True]
    assert sum(mask) == 2  # the faulty count of VLLM-2658
    right, _ = chain(lambda passed: int(np.cumprod(passed).sum()))
    assert int(np.cumprod(mask).sum()) == 1
    assert len(right(np.random.default_rng(0))) >= 1


def test_the_right_chain_passes():
    from museum import replayed

    sample, rows = chain(lambda passed: int(np.cumprod(passed).sum()))
    assert not replayed(sample, None, horizon=3, rows=rows).flagged


def test_page_is_up_to_date():
    page = Path(__file__).parents[3] / "docs" / "faults.md"
    assert page.read_text(encoding="utf-8") == table()

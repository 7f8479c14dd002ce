"""The tape's cells on kernels whose thresholds lie on the grid: there the measured law is exact."""

import numpy as np
import pytest

from resispec_core.audit import Verdict, tape
from resispec_core.audit.tape import tape_audit
from resispec_core.errors import InputError

EIGHTH = 2.0**-3
ONE_HOT = [1.0, 0.0, 0.0]
LAW = [0.25, 0.625, 0.125]


def by_cuts(cuts):
    """Token i where the coin is in [cuts[i], cuts[i + 1])."""
    return lambda target, draft, candidates, uniforms: int(np.searchsorted(cuts, uniforms[-1], side="right"))


@pytest.mark.parametrize("coins", [1, 2, 3])
def test_thresholds_on_the_grid_are_measured_exactly(coins):
    report = tape_audit(by_cuts([2 * EIGHTH, 7 * EIGHTH]), LAW, LAW, coins=coins)
    assert report.law.tolist() == LAW
    assert report.total_variation == 0
    assert report.missed == 0
    assert report.findings == []
    assert report.verdict is Verdict.NOT_REFUTED
    assert report.expected.tolist() == LAW


@pytest.mark.parametrize("cut", [1, 2, 3, 2**23, 2**24 - 2, 2**24 - 1])
def test_a_threshold_anywhere_on_the_grid(cut):
    share = cut / 2**24
    report = tape_audit(by_cuts([share]), [share, 1 - share], [0.5, 0.5], coins=1)
    assert report.law.tolist() == [share, 1 - share]


@pytest.mark.parametrize("bits", [8, 24, 30])
def test_coins_are_multiples_of_the_grid_below_one(bits):
    seen = []

    def kernel(target, draft, candidates, uniforms):
        seen.append(uniforms)
        return int(uniforms[0] >= 0.5)

    report = tape_audit(kernel, [0.5, 0.5], [0.5, 0.5], coins=1, bits=bits)
    assert report.law.tolist() == [0.5, 0.5]
    values = np.concatenate(seen)
    assert values.dtype == (np.float32 if bits <= 24 else np.float64)
    assert values.min() == 0
    assert values.max() == 1 - 2.0**-bits
    assert np.array_equal(values * 2.0**bits, np.rint(values.astype(float) * 2.0**bits))
    assert report.calls == len(seen)


def test_a_kernel_gets_fresh_rows_and_its_candidates():
    def kernel(target, draft, candidates, uniforms):
        assert target.tolist() == LAW
        assert draft.tolist() == [0.5, 0.25, 0.25]
        assert candidates.dtype == np.int64
        assert len(uniforms) == 2
        target[:] = draft[:] = 0
        return candidates[0]

    report = tape_audit(kernel, LAW, [0.5, 0.25, 0.25])
    assert report.law.tolist() == [0.5, 0.25, 0.25]
    assert report.total_variation == 0.375
    assert report.verdict is Verdict.BIASED
    assert report.exit_code == 1


def test_tokens_outside_the_vocabulary_are_lost_mass():
    report = tape_audit(by_cuts([0.25, 0.5]), [0.5, 0.5], [0.5, 0.5], coins=1)
    assert report.law.tolist() == [0.25, 0.25]
    assert report.total_variation == 0.5  # (1/4 + 1/4 + 1/2) / 2
    assert all("returned 2, outside the vocabulary" in finding for finding in report.findings)
    assert 0 < len(report.findings) <= 20


def test_a_finding_can_be_run_again():
    def kernel(target, draft, candidates, uniforms):
        if uniforms[0] == 0.5:
            raise OverflowError("at a half")
        return 1 if uniforms[0] == 0.75 else 0

    report = tape_audit(kernel, ONE_HOT, [0.5, 0.5, 0.0], coins=1)
    assert report.verdict is Verdict.NOT_REFUTED  # single points that no probe meets
    with_cells = tape_audit(
        lambda p, q, x, u: kernel(p, q, x, u) if u[0] < 0.5 else kernel(p, q, x, u * 0 + 0.5),
        ONE_HOT,
        ONE_HOT,
        coins=1,
    )
    assert with_cells.verdict is Verdict.BIASED
    assert any(
        finding == "with candidates [0] and uniforms [0.5] the kernel raised OverflowError: at a half"
        for finding in with_cells.findings
    )
    impossible = tape_audit(by_cuts([0.5]), ONE_HOT, ONE_HOT, coins=1)
    assert (
        "with candidates [0] and uniforms [0.5] the kernel returned token 1, which the target gives probability zero"
        in impossible.findings
    )
    assert str(impossible).startswith(
        f"BIASED (measured, {impossible.calls} calls), TV = 0.5; with candidates [0]"
    )
    assert impossible.to_json()["total_variation"] == 0.5


def test_an_adapters_input_error_is_passed_on():
    def kernel(target, draft, candidates, uniforms):
        raise InputError("no such device")

    with pytest.raises(InputError, match="no such device"):
        tape_audit(kernel, LAW, LAW)


@pytest.mark.parametrize("coins", [0, 7])
def test_one_to_six_coins(coins):
    with pytest.raises(InputError, match=f"coins is {coins}; the tape measures 1 to 6"):
        tape_audit(by_cuts([0.5]), [0.5, 0.5], [0.5, 0.5], coins=coins)


def test_what_cells_miss_is_counted_and_allowed_for():
    """A comb of 2^10 teeth between the probes: the random checks see it, and nothing is called biased for it."""

    def comb(target, draft, candidates, uniforms):
        return int(uniforms[0] * 2**10) % 2

    report = tape_audit(comb, [0.5, 0.5], [0.5, 0.5], coins=1)
    assert report.missed > 0.2
    assert report.verdict is not Verdict.BIASED
    assert tape.RANDOM_CHECKS == 64
    assert (report.missed * 2 * 64).is_integer()


def test_boxes_tile_the_cube():
    """Two coins with a slanted border: every grid point is in one box, and the boxes' volume is 1."""
    budget = [0, 10**6]
    run = tape._Kernel(lambda uniforms: int(uniforms[0] + uniforms[1] > 1), 2, 5, np.float32, budget)
    cells = tape._cells(run, ())
    hits = np.zeros((32, 32), dtype=int)
    for ((a, b), (c, d)), _ in cells:
        hits[a:b, c:d] += 1
    assert (hits == 1).all()
    for point in ((0, 0), (31, 31), (16, 15)):
        assert tape._look_up(cells, point) == run(point)
    with pytest.raises(AssertionError, match="do not tile"):
        tape._look_up(cells, (32, 0))

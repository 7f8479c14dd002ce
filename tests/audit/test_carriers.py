"""The path kept for each token, against the same choice made one token at a time."""

from fractions import Fraction

import numpy as np
import pytest

from resispec_core.audit.carriers import Carriers, Path


def chosen(target, seen):
    """What ``Carriers`` promises, token by token."""
    found = []
    for token in range(target.size):
        kept, settled = Path((), token, False, 0 * target[0]), False
        for masses, drawn, accepted in seen:
            row = int(np.argmax(masses[:, token])) if len(masses) else 0
            mass = masses[row, token] if len(masses) else 0
            first = accepted and drawn.shape[1] == 0
            only_first = kept.accepted and not kept.rejected
            if mass > 0 and not settled and (first or only_first or mass > kept.mass):
                kept = Path(tuple(drawn[row].tolist()), token, accepted, mass)
                settled = bool(first and mass > target[token])
        found.append(kept)
    return found


def stages(rng, size, exact):
    """Masses as an audit sees them: candidate 1, candidates after one and two rejections, a resample."""
    for length, paths, accepted in ((0, 1, True), (1, 3, True), (2, 4, True), (2, 0, True), (2, 4, False)):
        masses = rng.integers(0, 4, (paths, size)) * rng.integers(0, 2, (paths, size))
        yield (
            masses * Fraction(1, 8) if exact else masses / 8,
            rng.integers(0, size, (paths, length)),
            accepted,
        )


@pytest.mark.parametrize("exact", [True, False])
def test_the_kept_paths_are_those_chosen_one_by_one(exact):
    rng, kinds = np.random.default_rng(0), set()
    for _ in range(300):
        target = rng.integers(0, 3, 5) * (Fraction(1, 8) if exact else 0.125)
        seen = list(stages(rng, 5, exact))
        carriers = Carriers(target)
        for stage in seen:
            carriers.see(*stage)
        wanted = chosen(target, seen)
        assert list(carriers) == wanted
        assert carriers[1:3] == wanted[1:3]
        assert carriers[-1] == wanted[-1]
        longest = max(len(path.rejected) for path in wanted)
        heaviest = max((path for path in wanted if len(path.rejected) == longest), key=lambda path: path.mass)
        assert carriers.heaviest_rejections() == heaviest.rejected
        kinds |= {(len(path.rejected), path.accepted, path.mass > 0) for path in wanted}
    # Every kind of path was there: none, direct, accepted later, resampled.
    assert kinds == {(0, False, False), (0, True, True), (1, True, True), (2, True, True), (2, False, True)}


def test_nothing_seen():
    carriers = Carriers(np.array([0.5, 0.5]))
    assert carriers.heaviest_rejections() == ()
    assert carriers[1] == Path((), 1, False, 0.0)

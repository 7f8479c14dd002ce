"""The verification rule as published, with one seam a fault: the parts every exhibit of the museum is built from."""

import numpy as np


def pick(row, rng):
    """A token drawn from ``row``."""
    return int(rng.choice(len(row), p=np.asarray(row) / np.sum(row)))


def residual(p, q):
    """What is owed after a rejection."""
    left = np.maximum(p - q, 0 * p)
    return left / left.sum()


def ratio(p, q):
    """Acceptance probability of every token; 1 where the draft has no mass."""
    return np.array([min(1, p[x] / q[x]) if q[x] > 0 else 1 for x in range(len(p))])


def sampler(p, q, *, draft=None, accept=None, owed=None):
    """Speculative sampling of one token.

    ``draft(rng)``: the token proposed (default: from q); ``accept``: acceptance by token; ``owed``: the law after a
    rejection.
    """
    p, q = np.array(p, dtype=float), np.array(q, dtype=float)
    chance = ratio(p, q) if accept is None else np.array(accept, dtype=float)

    def sample(rng):
        x = pick(q, rng) if draft is None else draft(rng)
        if rng.random() < chance[x]:
            return [x]
        return [pick(residual(p, q) if owed is None else owed, rng)]

    return sample


def softmax(logits):
    """Softmax."""
    weights = np.exp(np.asarray(logits, dtype=float) - np.max(logits))
    return weights / weights.sum()

"""A user's file, as the command line loads it."""

import numpy as np


def residual(p, q):
    left = np.maximum(p - q, 0 * p)
    return left / left.sum()


def good(target, draft, candidates, rng):
    for x in candidates:
        if rng.random() * draft[x] < target[x]:
            return x
        target = residual(target, draft)
    return int(rng.choice(len(target), p=target))


def redraws_from_target(target, draft, candidates, rng):
    for x in candidates:
        if rng.random() * draft[x] < target[x]:
            return x
    return int(rng.choice(len(target), p=target))


def stale_residual(target, draft, candidates, rng):
    owed = residual(target, draft) if (target != draft).any() else target
    for x in candidates:
        if rng.random() * draft[x] < target[x]:
            return x
    return int(rng.choice(len(target), p=owed))


def scalar_residual(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] < target[x]:
        return x
    left = np.maximum(target - draft[x], 0 * target)
    row = left / left.sum() if left.sum() > 0 else target
    return int(rng.choice(len(row), p=row))


def argument_order(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * target[x] < draft[x]:
        return x
    return int(rng.choice(len(target), p=target))


def squared_ratio(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] ** 2 < target[x] ** 2:
        return x
    return int(rng.choice(len(target), p=residual(target, draft)))


def keeps_rejected(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] < target[x]:
        return x
    return candidates[-1]


def smoothed(target, draft, candidates, rng):
    row = target + (target.sum() - target.sum() * 0) / 20
    return int(rng.choice(len(row), p=row / row.sum()))


def greedy(target, draft, candidates, rng):
    return int(np.argmax(target))


def no_mask(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] <= target[x] or target[x] == 0:
        return x
    return int(rng.choice(len(target), p=residual(target, draft)))


def crashes_at_zero(target, draft, candidates, rng):
    if target[candidates[0]] == 0:
        raise ZeroDivisionError("no mass")
    return good(target, draft, candidates, rng)


FAULTS = [
    redraws_from_target, stale_residual, scalar_residual, argument_order, squared_ratio, keeps_rejected, smoothed,
    greedy, no_mask, crashes_at_zero,
]  # fmt: skip


def kernel(target, draft, candidates, uniforms):
    x = candidates[0]
    if uniforms[0] * draft[x] <= target[x]:
        return x
    return int(np.argmax(np.cumsum(residual(target, draft)) > uniforms[-1]))


def step(target_model, draft_model, prefix, rng):
    prefix = list(prefix)
    x = int(rng.choice(len(draft_model(prefix)), p=draft_model(prefix)))
    p, q = target_model(prefix), draft_model(prefix)
    if rng.random() * q[x] < p[x]:
        row = target_model([*prefix, x])
        return [x, int(rng.choice(len(row), p=row))]
    return [int(rng.choice(len(p), p=residual(p, q)))]


def greedy_bonus(target_model, draft_model, prefix, rng):
    tokens = step(target_model, draft_model, prefix, rng)
    return [*tokens[:1], int(np.argmax(target_model([*prefix, tokens[0]])))] if len(tokens) == 2 else tokens


def unclear(a, b, c, d):
    return 0


NUMBER = 3

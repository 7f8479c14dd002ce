"""Speculative sampling as one might write it: once right, and with three faults that tests of one draw do not see."""

import numpy as np


def residual(target, draft):
    left = np.maximum(target - draft, 0 * target)
    return left / left.sum()


def right(target, draft, candidates, rng):
    for token in candidates:
        if rng.random() * draft[token] < target[token]:
            return token
        target = residual(target, draft)
    return int(rng.choice(len(target), p=target))


def verify(target, draft, candidates, rng):
    for token in candidates:
        if rng.random() * draft[token] < target[token]:
            return token
    return int(rng.choice(len(target), p=target))  # what was rejected is owed no longer


def step(target_model, draft_model, prefix, rng):
    p, q = target_model(prefix), draft_model(prefix)
    token = int(rng.choice(len(q), p=q))
    if rng.random() * q[token] < p[token]:
        return [token, int(np.argmax(target_model([*prefix, token])))]  # a greedy bonus token
    return [int(rng.choice(len(p), p=residual(p, q)))]


def kernel(target, draft, candidates, uniforms):
    token = candidates[0]
    if uniforms[0] * draft[token] <= target[token]:  # at a coin of exactly 0 also where the target is 0
        return token
    return int(np.argmax(np.cumsum(residual(target, draft)) > uniforms[1]))

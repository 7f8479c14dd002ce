"""Exact single-token samplers and verifiers in the styles people write them; all return tokens with law p."""

import bisect
import math
import random

import numpy as np


def residual(p, q):
    left = np.maximum(p - q, 0 * p)
    return left / left.sum()


def leviathan(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() * draft[x] < target[x]:
        return x
    return int(rng.choice(len(target), p=residual(target, draft)))


def ratio_form(target, draft, candidates, rng):
    x = candidates[0]
    if rng.random() < min(1, target[x] / draft[x]):
        return x
    return rng.choice(len(target), p=residual(target, draft))


def recursive(target, draft, candidates, rng):
    for x in candidates:
        if rng.random() * draft[x] < target[x]:
            return x
        target = residual(target, draft)
    return int(np.searchsorted(np.cumsum(target), rng.random(), side="right"))


def vector_of_coins(target, draft, candidates, rng):
    coins = rng.random(2)
    x = candidates[0]
    if np.all(coins[:1] < target[x] / draft[x]):
        return x
    return int(np.argmax(np.cumsum(residual(target, draft)) > coins[1]))


def python_random(target, draft, candidates, rng):
    x = candidates[0]
    if random.random() < target[x] / draft[x]:
        return x
    return random.choices(range(len(target)), weights=list(residual(target, draft)))[0]


def legacy_numpy(target, draft, candidates, rng):
    x = candidates[0]
    if np.random.rand() < target[x] / draft[x]:
        return x
    return np.random.choice(len(target), p=residual(target, draft))


def own_generator(target, draft, candidates, rng):
    return int(np.random.default_rng().choice(len(target), p=target))


def own_python_generator(target, draft, candidates, rng):
    return random.Random().choices(range(len(target)), list(target))[0]


def logarithm(target, draft, candidates, rng):
    x = candidates[0]
    if math.log(rng.uniform()) < math.log(target[x]) - math.log(draft[x]):
        return x
    return int(rng.choice(len(target), p=residual(target, draft)))


def gumbel(target, draft, candidates, rng):
    with np.errstate(divide="ignore"):
        return int(np.argmax(np.log(target) + rng.gumbel(size=len(target))))


def gumbel_from_uniforms(target, draft, candidates, rng):
    with np.errstate(divide="ignore"):
        return int((np.log(target) - np.log(-np.log(rng.random(len(target))))).argmax())


def gumbel_in_python(target, draft, candidates, rng):
    keys = [math.log(weight) - math.log(-math.log(rng.random())) for weight in target]
    return max(range(len(keys)), key=lambda token: keys[token])


def exponential_race(target, draft, candidates, rng):
    return int(np.argmin(rng.exponential(size=len(target)) / target))


def reciprocal_race(target, draft, candidates, rng):
    return int(np.argmax(target / rng.standard_exponential(len(target))))


def weighted_keys(target, draft, candidates, rng):
    return int(np.argsort(rng.random(len(target)) ** (1 / target))[-1])


def bisection(target, draft, candidates, rng):
    return bisect.bisect(list(np.cumsum(target)), random.uniform(0, 1))


def loop(target, draft, candidates, rng):
    left = rng.random()
    for token, weight in enumerate(target):
        left = left - weight
        if left < 0:
            return token
    return len(target) - 1


def one_hot(target, draft, candidates, rng):
    return int(np.argmax(rng.multinomial(1, target)))


def permuted(target, draft, candidates, rng):
    order = rng.permutation(len(target))
    return int(order[rng.choice(len(target), p=target[order])])


STYLES = [
    leviathan, ratio_form, recursive, vector_of_coins, python_random, legacy_numpy, own_generator,
    own_python_generator, logarithm, gumbel, gumbel_from_uniforms, gumbel_in_python, exponential_race,
    reciprocal_race, weighted_keys, bisection, loop, one_hot, permuted,
]  # fmt: skip

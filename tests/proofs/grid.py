"""Small grids of laws, and the walk that compares a Python rule with a procedure coin by coin."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from definitions import Law, Procedure, acceptance, output

from resispec_core.audit.enumerate import accept_rows, enumerate_paths, reject_rows
from resispec_core.drafts import DrawMode
from resispec_core.rules import SequentialRule, Stage


@cache
def laws(size: int, largest: int) -> tuple[Law, ...]:
    """Every law on ``size`` tokens whose weights have denominators of at most ``largest``."""
    weights = sorted({Fraction(a, d) for d in range(1, largest + 1) for a in range(d + 1)})
    return tuple(w for w in product(weights, repeat=size) if sum(w) == 1)


def pairs(size: int, largest: int) -> Iterator[tuple[Law, Law]]:
    return product(laws(size, largest), repeat=2)


def row(law: Law) -> Any:
    return np.array(law, dtype=object)


def walk_faults(
    rule: SequentialRule, mode: DrawMode, model: Procedure, start: Any, pair: tuple[Law, Law], n: int
) -> str | None:
    """The first place where ``rule`` and ``model`` part, over every path of positive probability; None if none.

    Compared: the law of each candidate, its acceptance probability wherever it can be drawn, and the law of the
    token after n rejections. Arrays hold one row a path, as in an audit.
    """
    target, draft = row(pair[0]), row(pair[1])
    plan = rule.plan(target, draft, n)
    states, drawn, residual = [start], np.empty((1, 0), dtype=int), target[None, :]
    for index in range(n):
        shape = residual.shape
        drafts = np.broadcast_to(mode.conditional(draft, drawn, n), shape)
        stage = Stage(np.broadcast_to(target, shape), drafts, residual, index, n, plan)
        coins = accept_rows(rule, stage)
        go_on, next_states = [], []
        for path, state in enumerate(states):
            place = f"{pair}, rejected {tuple(drawn[path].tolist())}"
            draw, accept = model.draw(state), model.acc(state)
            if tuple(drafts[path]) != draw:
                return f"{place}: drawn from {drafts[path]}, not {draw}"
            for x, mass in enumerate(draw):
                if mass and coins[path, x] != accept[x]:
                    return f"{place}: {x} accepted with {coins[path, x]}, not {accept[x]}"
                if mass and accept[x] != 1:
                    go_on.append((path, x))
                    next_states.append(model.next(state, x))
        if not go_on:
            return None
        came_from, token = np.array(go_on).T
        residual = reject_rows(rule, stage, came_from, token)
        drawn, states = np.concatenate([drawn[came_from], token[:, None]], axis=1), next_states
    for path, state in enumerate(states):
        if tuple(residual[path]) != model.fin(state):
            place = f"{pair}, rejected {tuple(drawn[path].tolist())}"
            return f"{place}: the token comes from {residual[path]}, not {model.fin(state)}"
    return None


def law_faults(
    rule: SequentialRule, mode: DrawMode, model: Procedure, start: Any, pair: tuple[Law, Law], n: int
) -> str | None:
    """Whether the law and the acceptance that an audit sums up are ``output`` and ``acceptance``; None if so."""
    found = enumerate_paths(rule, row(pair[0]), row(pair[1]), n, drawn_as=mode, assumed=mode)
    law = output(model, n, start)
    if tuple(found.law) != law:
        return f"{pair}: the audit has the law {found.law}, not {law}"
    hits = acceptance(model, n, start)
    return (
        None
        if sum(found.accepted) == hits
        else f"{pair}: the audit accepts {sum(found.accepted)}, not {hits}"
    )

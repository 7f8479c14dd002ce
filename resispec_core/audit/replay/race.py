"""Races: exponential or Gumbel noise and an argmax, recognised as Plackett-Luce.

Keys that are one monotone function of ``e_i / w_i``, with independent e_i ~ Exp(1), are won by i with probability
``w_i / Σ w``, and what a race tells about the losers is a tree: everything in a tree is later than its root. Two
trees with total weights A and B are merged with probability A/(A+B) for the first root to be earlier (the hook
formula for forests), so pairwise comparisons, argmax, top-k and sorting are all exact.

A second race over the same noise with other weights (noise that is reused) is exact too: see ``_second_race``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from resispec_core.audit.replay.coin import Symbol, Unit
from resispec_core.audit.replay.trail import ONE, ZERO, RefusalError, call_site

EXHAUSTED = Fraction(-1)
"""Weight of a unit that took part in two different races: no third is followed."""

Key = tuple[str, Fraction, Fraction]
"""Family of the monotone function, its parameter, and w."""


def race_key(symbol: Symbol) -> tuple[Key, bool]:
    """(family, parameter, w) and whether an earlier arrival (smaller e/w) gives a larger value."""
    kind, exponent = symbol.base
    scale, shift = symbol.scale, symbol.shift
    if kind in ("e", "f"):
        return ("linear", shift, 1 / abs(scale)), scale < 0
    if kind in ("re", "rf"):
        return ("reciprocal", shift, abs(scale)), scale > 0
    if kind in ("ge", "gf"):
        symbol.trail.inexact += shift != 0
        weight = ONE if shift == 0 else Fraction(math.exp(shift / scale))
        return ("gumbel", abs(scale), weight), scale > 0
    if scale == 1 and shift == 0:
        return ("power", ZERO, 1 / abs(exponent)), exponent > 0
    raise symbol.trail.refuse(
        RefusalError(
            f"two coins are compared at {call_site()} in a form that is not a race the harness knows"
        )
    )


def first_of_two(left: Symbol, right: Symbol) -> bool:
    """Whether ``left < right`` in value: a fork."""
    (a, falling), (b, also) = race_key(left), race_key(right)
    _check(left, [left, right], [a, b], [falling, also])
    earlier = _earlier(left, right, a[2], b[2])
    return not earlier if falling else earlier


def _check(symbol: Symbol, symbols: Sequence[Symbol], keys: Sequence[Key], falling: Sequence[bool]) -> None:
    if len({(key[0], key[1]) for key in keys}) > 1 or len(set(falling)) > 1:
        raise symbol.trail.refuse(
            RefusalError(f"coins in different forms are compared with each other at {call_site()}")
        )
    if symbol.trail.grid:
        raise symbol.trail.refuse(
            RefusalError("grid mode counts thresholds, not races; audit this sampler without it")
        )
    for entrant in symbols:
        if not entrant.unit.untouched:
            raise symbol.trail.refuse(
                RefusalError(f"a coin that was compared with a number takes part in a race at {call_site()}")
            )


def _enter(symbol: Symbol, weight: Fraction) -> bool:
    """Put a unit into the forest with its weight; False where it raced before with another weight."""
    unit = symbol.unit
    if unit.weight is None:
        unit.weight, unit.tree, unit.noise = weight, weight, "f" if symbol.base[0].endswith("f") else "e"
        return True
    return unit.weight == weight


def _above(unit: Unit) -> list[Unit]:
    chain = []
    while unit.parent is not None:
        unit = unit.parent
        chain.append(unit)
    return chain


def _attach(child: Unit, parent: Unit) -> None:
    """Make ``child`` later than ``parent``; both are roots, or have the same parent, whose weight stays."""
    child.parent = parent
    parent.tree += child.tree


def _earlier(left: Symbol, right: Symbol, first: Fraction, second: Fraction) -> bool:
    a, b, trail = left.unit, right.unit, left.trail
    if not (_enter(left, first) and _enter(right, second)):
        raise trail.refuse(
            RefusalError(f"noise raced before is compared pairwise with other weights at {call_site()}")
        )
    if a in _above(b):
        return True
    if b in _above(a):
        return False
    if a.parent is not b.parent:
        raise trail.refuse(RefusalError(f"losers of different races are compared at {call_site()}"))
    total = a.tree + b.tree
    wins = (
        trail.choose(
            [a.tree / total, b.tree / total], f"race between coins {a.number + 1} and {b.number + 1}"
        )
        == 0
    )
    _attach(b, a) if wins else _attach(a, b)
    return wins


def ranking(values: Sequence[Any], count: int, *, largest: bool) -> list[int]:
    """Indices of the ``count`` largest (or smallest) of ``values``, symbols and numbers mixed, best first.

    Numbers may stand beside symbols only where every symbol is certain to beat them (a token of probability zero).
    """
    entrants = [index for index, value in enumerate(values) if isinstance(value, Symbol)]
    rest = [index for index in range(len(values)) if index not in set(entrants)]
    nan = [index for index in rest if values[index] != values[index]]
    symbols = [values[index] for index in entrants]
    head = symbols[0]
    keys, falling = zip(*(race_key(symbol) for symbol in symbols), strict=True)
    _check(head, symbols, keys, falling)
    if falling[0] != largest and len(entrants) > 1:
        raise head.trail.refuse(
            RefusalError(f"the last arrival of a race is wanted at {call_site()}; only the first is")
        )
    for index in rest:
        if index not in nan and not _certainly_beats(head, keys[0][0], float(values[index]), largest):
            raise head.trail.refuse(
                RefusalError(
                    f"a number and a coin compete in one race at {call_site()}; only a sure loser may"
                )
            )
    order = sorted(rest, key=lambda index: -values[index] if largest else values[index])
    order = [index for index in order if index not in nan]
    won: list[int] = []
    fresh = [_enter(symbol, key[2]) for symbol, key in zip(symbols, keys, strict=True)]
    if not all(fresh):
        won = [_second_race(symbols, [key[2] for key in keys])]
    else:
        open_units = list(range(len(symbols)))
        while open_units and len(won) < min(count, len(symbols)) - len(nan):
            won.append(_winner(symbols, open_units))
            open_units.remove(won[-1])
    places = nan + [entrants[place] for place in won] + (order if len(won) == len(symbols) else [])
    if len(places) < count:
        raise head.trail.refuse(RefusalError(f"reused noise is ranked past its winner at {call_site()}"))
    return places[:count]


def _certainly_beats(symbol: Symbol, family: str, number: float, largest: bool) -> bool:
    if math.isinf(number):
        return (number < 0) == largest
    if family == "reciprocal":
        return largest and number <= symbol.shift
    if family == "power":
        return number <= 0 if largest else number >= 1
    if family == "linear":
        return largest is False and number == math.inf
    return False


def _winner(symbols: Sequence[Symbol], open_places: Sequence[int]) -> int:
    trail = symbols[0].trail
    units = [symbols[place].unit for place in open_places]
    top = [
        place for place, unit in zip(open_places, units, strict=True) if not set(_above(unit)) & set(units)
    ]
    roots = [symbols[place].unit for place in top]
    if len({id(unit.parent) for unit in roots}) > 1:
        raise trail.refuse(RefusalError(f"a race between parts of different races at {call_site()}"))
    total = sum((unit.tree for unit in roots), ZERO)
    taken = trail.choose(
        [unit.tree / total for unit in roots], lambda index: f"race won by entry {top[index]}"
    )
    for place, unit in enumerate(roots):
        if place != taken:
            _attach(unit, roots[taken])
    return top[taken]


def _second_race(symbols: Sequence[Symbol], weights: Sequence[Fraction]) -> int:
    """The winner of a second race, with new weights, over noise whose first winner is known.

    With rates w for the first race (won by x) and r for the second, y ≠ x wins where every other e_j is at least
    ``max(e_x w_j/w_x, e_y r_j/r_y)``. Integrating the exponentials leaves one integral over ρ = e_y/e_x of
    ``1/(A + Bρ)²``, piecewise between the breakpoints: rational in the weights.
    """
    trail = symbols[0].trail
    units = [symbol.unit for symbol in symbols]
    known = _known_race(symbols, units)
    first, x = known
    second = dict(zip(map(id, units), weights, strict=True))
    everyone = {**first, **{key: ZERO for key in second if key not in first}}
    probabilities = [
        _joint(first, id(x), second, id(unit), list(everyone)) if second[id(unit)] > 0 else ZERO
        for unit in units
    ]
    total = first[id(x)] / sum(first.values(), ZERO)
    if sum(probabilities, ZERO) != total:
        raise trail.refuse(
            RefusalError("two races over the same noise do not add up; this is a fault of the harness")
        )
    taken = trail.choose(
        [value / total for value in probabilities],
        lambda index: f"second race over the same noise won by entry {index}",
    )
    trail.reused[f"noise raced again at {call_site()}"] += 1
    for unit in units:
        unit.weight = EXHAUSTED
    return taken


def _known_race(symbols: Sequence[Symbol], units: Sequence[Unit]) -> tuple[dict[int, Fraction], Unit]:
    trail = symbols[0].trail
    roots = {id(unit): unit for unit in ([*_above(unit)][-1] if _above(unit) else unit for unit in units)}
    entrants = {id(draw): draw for draw in trail.draws if isinstance(draw, Unit) and draw.weight is not None}
    starred = all(
        len(_above(unit)) <= 1 for unit in entrants.values() if ([unit, *_above(unit)])[-1] in roots.values()
    )
    if len(roots) != 1 or not starred or any((unit.weight or ZERO) < 0 for unit in units):
        raise trail.refuse(
            RefusalError(
                f"noise is raced again at {call_site()} after more than one plain argmax; not followed"
            )
        )
    x = next(iter(roots.values()))
    members = {key: unit.weight for key, unit in entrants.items() if ([unit, *_above(unit)])[-1] is x}
    return {key: weight for key, weight in members.items() if weight is not None}, x


def _joint(
    first: dict[int, Fraction], x: int, second: dict[int, Fraction], y: int, everyone: list[int]
) -> Fraction:
    """P(x wins the first race and y the second)."""
    if x == y:
        bound = sum(
            (max(first.get(j, ZERO) / first[x], second.get(j, ZERO) / second[x]) for j in everyone if j != x),
            ZERO,
        )
        return 1 / (1 + bound)
    low = first.get(y, ZERO) / first[x]
    if second.get(x, ZERO) == 0:
        high = None
    else:
        high = second[y] / second[x]
        if high <= low:
            return ZERO
    slopes = [
        (first.get(j, ZERO) / first[x], second.get(j, ZERO) / second[y]) for j in everyone if j not in (x, y)
    ]
    cuts = sorted({c / d for c, d in slopes if d > 0 and c / d > low and (high is None or c / d < high)})
    total, start = ZERO, low
    for stop in [*cuts, high]:
        probe = start + 1 if stop is None else (start + stop) / 2
        a, b = ONE, ONE
        for c, d in slopes:
            a, b = (a, b + d) if probe * d > c else (a + c, b)
        if stop is None:
            total += 1 / (b * (a + b * start))
        else:
            total += (stop - start) / ((a + b * start) * (a + b * stop))
        start = stop if stop is not None else start
    return total


def arrange(units: Sequence[Unit]) -> dict[Unit, float] | None:
    """A concrete u for every raced unit, in the order the races left; None after a second race."""
    raced = [unit for unit in units if unit.weight is not None]
    if any(unit.weight == EXHAUSTED for unit in raced):
        return None
    heaviest = max((float(unit.weight or 0) for unit in raced), default=1.0)
    values = {}
    for place, unit in enumerate(sorted(raced, key=lambda unit: len(_above(unit)))):
        noise = float(unit.weight or 0) / heaviest * (place + 1) / len(raced)
        values[unit] = math.exp(-noise) if unit.noise == "e" else -math.expm1(-noise)
    return values

"""Symbolic uniforms: a coin that remembers what is known about it.

A ``Unit`` is one uniform draw with the interval, in probability space, that the comparisons so far left open. A
``Symbol`` is ``scale·B(u) + shift`` for a base function B: the identity, a power, or the exponential and Gumbel
noise that samplers build from uniforms. Comparing a symbol with a number forks the run with exact weights; anything
that would turn it into an ordinary number raises.

Deliberately not a ``float`` subclass: C code would read such an object silently.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

from resispec_core.audit.replay.grid import FRACTION_53, Grid
from resispec_core.audit.replay.trail import (
    NEGLIGIBLE,
    ONE,
    ZERO,
    LeakError,
    RefusalError,
    Trail,
    call_site,
    exact_number,
)

Base = tuple[str, Fraction]
"""Kind and exponent: ("u", k) is u^k; "e" is −log u, "f" is −log(1−u), "ge"/"gf" the Gumbel −log of those, and
"re"/"rf" their reciprocals."""
IDENTITY: Base = ("u", ONE)


class Unit:
    """One uniform draw on [0, 1)."""

    __slots__ = ("grid", "high", "low", "noise", "number", "parent", "site", "tree", "weight")

    def __init__(self, trail: Trail, grid: Grid = FRACTION_53) -> None:
        self.low, self.high = ZERO, ONE
        self.grid = grid if trail.grid else None
        self.number = sum(isinstance(draw, Unit) for draw in trail.draws)
        self.site: str | None = None
        self.weight: Fraction | None = None
        """Rate this draw had in a race (see ``race``); None before."""
        self.tree = ZERO
        self.parent: Unit | None = None
        self.noise = "e"
        """Whether the raced e is −log u ("e") or −log(1 − u) ("f")."""
        trail.draws.append(self)

    @property
    def untouched(self) -> bool:
        """True while no comparison with a number has been made."""
        return self.low == 0 and self.high == 1

    def below(self, cut: Fraction, inclusive: bool) -> Fraction:
        """``P(u < cut)`` or, inclusive, ``P(u ≤ cut)``: the same unless the real coin grid is in use."""
        if self.grid is None:
            return min(max(cut, ZERO), ONE)
        return self.grid.below(cut, inclusive)

    def middle(self) -> Fraction:
        """A value of u inside what is left open (for the concrete re-run of a path)."""
        if self.grid is None:
            return (self.low + self.high) / 2
        return self.grid.inside(self.low, self.high)

    def narrow(self, trail: Trail, low: Fraction, high: Fraction, label: str) -> bool:
        """Fork on whether u falls, in probability space, into [low, high)."""
        if self.weight is not None:
            raise trail.refuse(
                RefusalError(
                    f"noise that already took part in a race is compared with a number at {call_site()}; the harness "
                    "follows a race or a threshold, not both on one draw"
                )
            )
        site = call_site()
        if self.site is None:
            self.site = site
        elif site != self.site:
            trail.reused[f"{self.site} and {site}"] += 1
        low, high = min(max(low, self.low), self.high), min(max(high, self.low), self.high)
        width = self.high - self.low
        if high <= low:
            return False
        pieces = [high - low, low - self.low, self.high - high]
        if width != 1:
            pieces = [piece / width for piece in pieces]
        if trail.neglect:
            light = [piece for piece in pieces if 0 < piece < NEGLIGIBLE]
            if light:
                trail.neglected += sum(light, ZERO) * trail.weight
                kept = [ZERO if piece < NEGLIGIBLE else piece for piece in pieces]
                if sum(piece > 0 for piece in kept) == 1:
                    return kept[0] > 0
        taken = trail.choose(
            pieces, lambda branch: f"coin {self.number + 1}: {label} {'holds' if branch == 0 else 'fails'}"
        )
        if taken == 0:
            self.low, self.high = low, high
        elif taken == 1:
            self.high = low
        else:
            self.low = high
        return taken == 0


class Symbol:
    """``scale·B(u) + shift`` of one unit; compares exactly, refuses to become a number."""

    __slots__ = ("base", "scale", "shift", "trail", "unit")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, trail: Trail, unit: Unit, base: Base = IDENTITY, scale: Fraction = ONE, shift: Fraction = ZERO
    ) -> None:
        self.trail, self.unit, self.base, self.scale, self.shift = trail, unit, base, scale, shift

    def __repr__(self) -> str:
        return f"<coin {self.unit.number + 1}>"

    # arithmetic with numbers, exact

    def _affine(self, scale: Fraction, shift: Fraction) -> Any:
        if scale == 0:
            return float(shift)
        return Symbol(self.trail, self.unit, self.base, scale, shift)

    def _special(self, other: Any) -> float | None:
        """``other`` where it is an infinity or NaN, which absorb a finite coin."""
        if isinstance(other, Symbol):
            return None
        other = plain_number(other)
        if isinstance(other, float) and not math.isfinite(other):
            return other
        return None

    def __neg__(self) -> Any:
        return self._affine(-self.scale, -self.shift)

    def __pos__(self) -> Any:
        return self

    def __add__(self, other: Any) -> Any:
        if not scalar(other):
            return NotImplemented
        if isinstance(other, Symbol):
            if other.unit is self.unit and other.base == self.base:
                return self._affine(self.scale + other.scale, self.shift + other.shift)
            raise self._refuse("added to another coin")
        special = self._special(other)
        return special if special is not None else self._affine(self.scale, self.shift + exact_number(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-other) if scalar(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other if scalar(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if not scalar(other):
            return NotImplemented
        if isinstance(other, Symbol):
            raise self._refuse("multiplied with another coin")
        special = self._special(other)
        if special is not None:
            return special * (1.0 if self._positive() else -1.0)
        factor = exact_number(other)
        return self._affine(self.scale * factor, self.shift * factor)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if not scalar(other):
            return NotImplemented
        if isinstance(other, Symbol):
            raise self._refuse("divided by another coin")
        if self._special(other) is not None:
            return self._special(other) and 0.0
        divisor = exact_number(other)
        if divisor == 0:
            return math.inf if self._positive() else -math.inf
        return self._affine(self.scale / divisor, self.shift / divisor)

    def __rtruediv__(self, other: Any) -> Any:
        if not scalar(other):
            return NotImplemented
        special = self._special(other)
        if special is not None:
            return special * (1.0 if self._positive() else -1.0)
        reciprocal = self.reciprocal()
        return reciprocal * other

    def __pow__(self, other: Any) -> Any:
        exponent = exact_number(other)
        if exponent == 1:
            return self
        if exponent == -1:
            return self.reciprocal()
        if self.base[0] == "u" and self.shift == 0 and self.scale > 0:
            if exponent == 0:
                return 1.0
            scale = ONE if self.scale == 1 else self._rounded(float(self.scale) ** float(exponent))
            return Symbol(self.trail, self.unit, ("u", self.base[1] * exponent), scale)
        raise self._refuse(f"raised to the power {float(exponent)}")

    def __rpow__(self, other: Any) -> Any:
        return (self * math.log(plain_number(other))).exp()

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    # the functions samplers build noise from

    def reciprocal(self) -> Any:
        """1/x."""
        kind, exponent = self.base
        if self.shift == 0 and kind == "u":
            return Symbol(self.trail, self.unit, ("u", -exponent), 1 / self.scale)
        if self.shift == 0 and kind in ("e", "f", "re", "rf"):
            turned = {"e": "re", "f": "rf", "re": "e", "rf": "f"}[kind]
            return Symbol(self.trail, self.unit, (turned, ONE), 1 / self.scale)
        raise self._refuse("inverted after a shift")

    def log(self) -> Any:
        """The natural logarithm."""
        kind, exponent = self.base
        if kind == "u" and exponent == 1 and self.scale < 0 and self.shift == -self.scale:
            return Symbol(self.trail, self.unit, ("f", ONE), -ONE, self._log(self.shift))  # log(c(1 − u))
        if self.shift == 0 and self.scale > 0:
            offset = self._log(self.scale)
            if kind == "u":
                return Symbol(self.trail, self.unit, ("e", ONE), -exponent, offset)
            if kind in ("e", "f"):
                return Symbol(self.trail, self.unit, ("g" + kind, ONE), -ONE, offset)
            if kind in ("re", "rf"):
                return Symbol(self.trail, self.unit, ("g" + kind[1], ONE), ONE, offset)
        raise self._refuse("passed to a logarithm after a shift")

    def exp(self) -> Any:
        """The exponential."""
        kind = self.base[0]
        if kind == "e":
            return Symbol(self.trail, self.unit, ("u", -self.scale), self._exp(self.shift))
        if kind in ("ge", "gf") and abs(self.scale) == 1:
            turned = ("re" if kind == "ge" else "rf") if self.scale == 1 else kind[1]
            return Symbol(self.trail, self.unit, (turned, ONE), self._exp(self.shift))
        raise self._refuse("passed to an exponential")

    def log1p(self) -> Any:
        """log(1 + x)."""
        return (self + 1).log()

    def expm1(self) -> Any:
        """exp(x) − 1."""
        return self.exp() - 1

    def log2(self) -> Any:
        """The binary logarithm."""
        return self.log() / math.log(2)

    def log10(self) -> Any:
        """The decimal logarithm."""
        return self.log() / math.log(10)

    def sqrt(self) -> Any:
        """The square root."""
        return self ** Fraction(1, 2)

    def floor(self) -> int:
        """The integer below: one branch per integer met."""
        low = math.floor(self._value(self.unit.low))
        high = math.floor(self._value(self.unit.high))
        for integer in range(min(low, high), max(low, high) + 1):
            if self < integer + 1:
                return integer
        return max(low, high)

    __floor__ = floor

    def __int__(self) -> int:
        return self.floor() if self._positive() else -((-self).floor())

    __trunc__ = __int__
    trunc = __int__

    def __ceil__(self) -> int:
        return -((-self).floor())

    ceil = __ceil__

    def __floordiv__(self, other: Any) -> int:
        return (self / other).floor()

    def __mod__(self, other: Any) -> Any:
        return self - self.__floordiv__(other) * other

    def conjugate(self) -> Symbol:
        """Itself: coins are real."""
        return self

    # comparisons: where a run forks

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, below=True, inclusive=False, sign="<")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, below=True, inclusive=True, sign="<=")

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, below=False, inclusive=False, sign=">")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, below=False, inclusive=True, sign=">=")

    def __eq__(self, other: Any) -> Any:
        if not scalar(other) or other is None:
            return NotImplemented if not scalar(other) else False
        if isinstance(other, Symbol):
            return other is self
        if self._special(other) is not None:
            return False
        cut = self._cut(exact_number(other))
        unit = self.unit
        return unit.narrow(
            self.trail, unit.below(cut, False), unit.below(cut, True), f"equals {_short(other)}"
        )

    def __ne__(self, other: Any) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    def __bool__(self) -> bool:
        return bool(self != 0)

    def _compare(self, other: Any, *, below: bool, inclusive: bool, sign: str) -> Any:
        if not scalar(other):
            return NotImplemented
        if isinstance(other, Symbol):
            return self._compare_coins(other, below, inclusive)
        special = self._special(other)
        if special is not None:
            return False if math.isnan(special) else (special > 0) == below
        cut = self._cut(exact_number(other))
        if not self._increasing():
            below = not below
        unit, label = self.unit, f"value {sign} {_short(other)}"
        if below:
            return unit.narrow(self.trail, ZERO, unit.below(cut, inclusive), label)
        return unit.narrow(self.trail, unit.below(cut, not inclusive), ONE, label)

    def _compare_coins(self, other: Symbol, below: bool, inclusive: bool) -> bool:
        from resispec_core.audit.replay.race import first_of_two

        if other.unit is self.unit:
            if other.base != self.base:
                raise self._refuse("compared with another function of itself")
            if other.scale == self.scale:
                gap = other.shift - self.shift
                return inclusive if gap == 0 else (gap > 0) == below
            difference = self - other
            return bool(difference._compare(0, below=below, inclusive=inclusive, sign="<" if below else ">"))
        return first_of_two(self, other) == below

    # the inverse of the base function

    def _cut(self, value: Fraction) -> Fraction:
        """The u at which the symbol equals ``value``, clipped into [0, 1]."""
        inner = (value - self.shift) / self.scale
        kind, exponent = self.base
        if kind == "u" and exponent == 1:
            return inner
        if kind == "u" and exponent == -1:
            return 1 / inner if inner > 0 else ONE + 1
        x = float(inner)
        return self._rounded(_INVERSE[kind](x) if kind != "u" else _root(x, float(exponent)))

    def _value(self, u: Fraction) -> float:
        """The symbol's value at ``u`` (an end of the open interval); may be infinite."""
        return evaluate(self, float(u))

    def _increasing(self) -> bool:
        kind, exponent = self.base
        rises = exponent > 0 if kind == "u" else kind in ("f", "ge", "re")
        return rises == (self.scale > 0)

    def _positive(self) -> bool:
        ends = self._value(self.unit.low), self._value(self.unit.high)
        if min(ends) >= 0:
            return True
        if max(ends) <= 0:
            return False
        return bool(self >= 0)

    def _rounded(self, value: float) -> Fraction:
        self.trail.inexact += 1
        return Fraction(value)

    def _log(self, value: Fraction) -> Fraction:
        return ZERO if value == 1 else self._rounded(math.log(value))

    def _exp(self, value: Fraction) -> Fraction:
        return ONE if value == 0 else self._rounded(math.exp(value))

    # leaks

    def _refuse(self, what: str) -> RefusalError:
        return self.trail.refuse(
            RefusalError(f"a coin is {what} at {call_site()}; the harness cannot follow that exactly")
        )

    def _leak(self, *_: Any, **__: Any) -> NoReturn:
        raise self.trail.refuse(
            LeakError(
                f"a coin would be read as an ordinary number at {call_site()} (float(), an index, a C function or an "
                "array of numbers); compare it, or use arithmetic, log, exp, floor or searchsorted on it"
            )
        )

    __float__ = __complex__ = __index__ = __round__ = _leak
    sin = cos = tan = tanh = arctan = cbrt = rint = _leak


def _root(x: float, exponent: float) -> float:
    if x <= 0:
        return 0.0 if exponent > 0 else 1.0
    return min(1.0, math.exp(math.log(x) / exponent))


def _safe_exp(x: float) -> float:
    return math.exp(min(x, 700.0))


_INVERSE: dict[str, Callable[[float], float]] = {
    "e": lambda v: math.exp(-v) if v > 0 else 1.0,
    "f": lambda v: -math.expm1(-v) if v > 0 else 0.0,
    "ge": lambda v: math.exp(-_safe_exp(-v)),
    "gf": lambda v: -math.expm1(-_safe_exp(-v)),
    "re": lambda v: math.exp(-1 / v) if v > 0 else 0.0,
    "rf": lambda v: -math.expm1(-1 / v) if v > 0 else 1.0,
}


def evaluate(symbol: Symbol, u: float) -> float:
    """The symbol's value at a concrete ``u``."""
    kind, exponent = symbol.base
    power = float(exponent)
    if kind == "u":
        inner = u**power if u > 0 or power > 0 else math.inf
    else:
        noise = -_log(u) if kind.endswith("e") else -_log(1 - u)
        inner = (
            {"g": -_log(noise), "r": 1 / noise if noise > 0 else math.inf}.get(kind[0], noise)
            if len(kind) == 2
            else noise
        )
    return float(symbol.scale) * inner + float(symbol.shift)


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def plain_number(value: Any) -> Any:
    """Python number of a NumPy or torch scalar."""
    return value.item() if hasattr(value, "item") else value


def scalar(value: Any) -> bool:
    """True for numbers, coins and one-element arrays without dimensions; arrays broadcast by themselves."""
    return getattr(value, "ndim", 0) == 0 and not isinstance(value, (str, bytes, list, tuple))


def _short(value: Any) -> str:
    value = plain_number(value)
    return str(value) if isinstance(value, (int, Fraction)) else f"{value:.6g}"

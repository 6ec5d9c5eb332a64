"""Numbers that carry their derivative: how a slope follows from a formula without torch.

A dual number is ``value + slope·ε`` with ε² = 0. Pushing one through a formula gives the score and, in the
same pass, its derivative in one direction. The parts may be floats, NumPy arrays or torch tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


def _comparison(compare: Callable[[Any, Any], Any]) -> Any:
    return lambda self, other: Dual(compare(self.value, lift(other).value))


class Dual:
    """A value and its derivative along one direction.

    .. math:: (a + a'ε)(b + b'ε) = ab + (a'b + ab')ε

    >>> x = Dual(3.0, 1.0)
    >>> y = x * x / (x + 1)
    >>> y.value, y.slope
    (2.25, 0.9375)

    Reference: [griewank2008]
    """

    __slots__ = ("slope", "value")
    # NumPy must not take `array * dual` apart element by element: let __rmul__ have it whole.
    __array_ufunc__ = None

    def __init__(self, value: Any, slope: Any = 0.0) -> None:
        self.value = value
        self.slope = slope

    def __add__(self, other: Any) -> Dual:
        o = lift(other)
        return Dual(self.value + o.value, _sum(self.slope, o.slope))

    def __mul__(self, other: Any) -> Dual:
        o = lift(other)
        return Dual(self.value * o.value, _sum(_times(self.slope, o.value), _times(o.slope, self.value)))

    def __truediv__(self, other: Any) -> Dual:
        o = lift(other)
        quotient = self.value / o.value
        rise = _sum(self.slope, _times(o.slope, -quotient))
        return Dual(quotient, rise if _level(rise) else rise / o.value)

    def __pow__(self, power: float) -> Dual:
        return Dual(self.value**power, _times(self.slope, power * self.value ** (power - 1)))

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    def __sub__(self, other: Any) -> Dual:
        return self + -lift(other)

    def __rsub__(self, other: Any) -> Dual:
        return lift(other) - self

    def __rtruediv__(self, other: Any) -> Dual:
        return lift(other) / self

    __radd__ = __add__
    __rmul__ = __mul__

    # A formula may ask of a value whether it is zero and go on calculating with the answer, or branch on it.
    __eq__ = _comparison(operator.eq)
    __ne__ = _comparison(operator.ne)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)

    def __bool__(self) -> bool:
        return bool(self.value)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, {self.slope!r})"


# Most slopes in a formula are nothing at all, and nothing should cost no arithmetic on arrays.
def _level(slope: Any) -> bool:
    return type(slope) is float and slope == 0.0


def _sum(a: Any, b: Any) -> Any:
    return b if _level(a) else a if _level(b) else a + b


def _times(slope: Any, by: Any) -> Any:
    return slope if _level(slope) else slope * by


def lift(x: Any) -> Dual:
    """Read a plain number as a dual one with slope zero."""
    return x if isinstance(x, Dual) else Dual(x)

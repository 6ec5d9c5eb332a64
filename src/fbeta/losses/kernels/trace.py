"""Formulas written out as straight-line code: run once on symbols, every operation becomes a line.

A metric's slopes at one operating point are a few dozen operations. On the host each would cost a Python call or more,
on a device a kernel launch, which takes longer than the pass over a million logits. Written out they are one function
of floats, or one Triton kernel. A formula that branches on its numbers cannot be traced.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, NamedTuple


class Symbol:
    """A number that is not known yet: arithmetic with it writes a line of code."""

    __array_ufunc__ = None

    def __init__(self, lines: list[str], name: str) -> None:
        self.lines, self.name = lines, name

    def write(self, expression: str) -> Symbol:
        """Add a line, and name what it computes."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return Symbol(self.lines, name)

    def _binary(self, operator: str, other: Any) -> Symbol:
        if not isinstance(other, Symbol | Real):
            return NotImplemented  # type: ignore[no-any-return]  # a dual number knows how to go on
        return self.write(f"{self.name} {operator} {_text(other)}")

    def _reflected(self, operator: str, other: Any) -> Symbol:
        return self.write(f"{_text(other)} {operator} {self.name}")

    def _compare(self, operator: str, other: Any) -> Symbol:
        return self.write(f"flag({self.name} {operator} {_text(other)})")

    __add__ = functools.partialmethod(_binary, "+")
    __sub__ = functools.partialmethod(_binary, "-")
    __mul__ = functools.partialmethod(_binary, "*")
    __truediv__ = functools.partialmethod(_binary, "/")
    __radd__ = functools.partialmethod(_reflected, "+")
    __rsub__ = functools.partialmethod(_reflected, "-")
    __rmul__ = functools.partialmethod(_reflected, "*")
    __rtruediv__ = functools.partialmethod(_reflected, "/")
    __lt__ = functools.partialmethod(_compare, "<")
    __le__ = functools.partialmethod(_compare, "<=")
    __gt__ = functools.partialmethod(_compare, ">")
    __ge__ = functools.partialmethod(_compare, ">=")
    __eq__ = functools.partialmethod(_compare, "==")
    __ne__ = functools.partialmethod(_compare, "!=")
    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Symbol:
        return self.write(f"-{self.name}")

    def __pow__(self, power: float) -> Symbol:
        if power in (0.5, -0.5):
            root = self.write(f"sqrt({self.name})")
            return root if power > 0 else 1.0 / root
        return self.write(f"power({self.name}, {float(power)!r})")

    def __bool__(self) -> bool:
        raise TypeError("a traced formula cannot branch on its numbers")


class Symbols:
    """The functions of symbols that a formula may call, under the names that NumPy and torch have for them."""

    @staticmethod
    def where(condition: Symbol, yes: Any, no: Any) -> Symbol:
        """One or the other; a condition is a number here, 1 or 0."""
        return condition.write(f"where({condition.name} > 0.5, {_text(yes)}, {_text(no)})")

    @staticmethod
    def clip(x: Symbol, low: float | None, high: float | None) -> Symbol:
        """Keep x inside [low, high]."""
        x = x if low is None else Symbols.where(x < low, low, x)
        return x if high is None else Symbols.where(x > high, high, x)

    @staticmethod
    def isfinite(x: Symbol) -> Symbol:
        """Neither infinite nor NaN, of which no comparison is true."""
        return x.write(f"flag({x.name} - {x.name} == 0.0)")

    @staticmethod
    def exp(x: Symbol) -> Symbol:
        """The exponential."""
        return x.write(f"exp({x.name})")


class Trace(NamedTuple):
    """A formula as code: names of its arguments (None for one that is absent), lines, and its results.

    >>> trace(lambda xp, x, y: (x * y[0], x + y[1]), (0, 2))
    Trace(arguments=['a0', ['a1_0', 'a1_1']], lines=['v0 = a0 * a1_0', 'v1 = a0 + a1_1'], results=['v0', 'v1'])
    """

    arguments: list[Any]
    lines: list[str]
    results: list[str]


def trace(formula: Callable[..., Sequence[Any]], sizes: tuple[int | None, ...]) -> Trace:
    """Run a formula on symbols; `sizes` are those of its arguments: 0 for a number, None for one that is absent."""
    lines: list[str] = []
    arguments: list[Any] = []
    for i, size in enumerate(sizes):
        arguments.append(None if size is None else [f"a{i}_{j}" for j in range(size)] if size else f"a{i}")

    def symbol(name: Any) -> Any:
        if isinstance(name, list):
            return [Symbol(lines, one) for one in name]
        return None if name is None else Symbol(lines, name)

    results = formula(Symbols, *map(symbol, arguments))
    return Trace(arguments, lines, [_text(x) for x in results])


@functools.lru_cache(maxsize=256)
def written(
    formula: Callable[..., Sequence[Any]], sizes: tuple[int | None, ...]
) -> Callable[..., tuple[float, ...]] | None:
    """The formula as a function of floats and lists of them; None if it cannot be traced."""
    try:
        arguments, lines, results = trace(formula, sizes)
    except (TypeError, ValueError, AttributeError, ZeroDivisionError):
        return None
    names = [f"x{i}" for i in range(len(arguments))]
    head = [
        f"{', '.join(one)}, = {name}" if isinstance(one, list) else f"{one} = {name}"
        for name, one in zip(names, arguments, strict=True)
        if one is not None
    ]
    body = "\n    ".join([*head, *lines, f"return ({', '.join(results)},)"])
    space: dict[str, Any] = {**_FUNCTIONS}
    exec(f"def function({', '.join(names)}):\n    {body}", space)
    function: Callable[..., tuple[float, ...]] = space["function"]
    return function


#: What the lines call, for floats.
_FUNCTIONS: dict[str, Any] = {
    "flag": float,
    "where": lambda condition, yes, no: yes if condition else no,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "power": math.pow,
}


def _text(x: Any) -> str:
    if isinstance(x, Symbol):
        return x.name
    number = float(x)
    return repr(number) if math.isfinite(number) else f'float("{number}")'

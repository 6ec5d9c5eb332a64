"""The few numbers between two passes, in one kernel: a metric's formula traced and written out for Triton.

Eager torch would launch hundreds of tiny kernels to take a metric's slopes at one operating point, which costs
more than the pass over millions of logits. A formula that branches on its cells cannot be traced; then `kernels`
gives None and torch does it.
"""

from __future__ import annotations

import functools
import itertools
import linecache
from typing import Any

import triton
import triton.language as tl

from fbeta.metrics import Confusion, Metric


class Symbol:
    """A number that is not known yet: arithmetic with it writes a line of code."""

    __array_ufunc__ = None

    def __init__(self, lines: list[str], name: str) -> None:
        self.lines, self.name = lines, name

    def _write(self, expression: str) -> Symbol:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return Symbol(self.lines, name)

    def _binary(self, operator: str, other: Any) -> Symbol:
        return self._write(f"{self.name} {operator} {_text(other)}")

    def _reflected(self, operator: str, other: Any) -> Symbol:
        return self._write(f"{_text(other)} {operator} {self.name}")

    def _compare(self, operator: str, other: Any) -> Symbol:
        return self._write(f"tl.where({self.name} {operator} {_text(other)}, 1.0, 0.0).to(tl.float64)")

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
        return self._write(f"-{self.name}")

    def __pow__(self, power: float) -> Symbol:
        if power == 0.5:
            return self._write(f"tl.sqrt({self.name})")
        if power == -0.5:
            return self._write(f"1.0 / tl.sqrt({self.name})")
        return self._write(f"tl.exp({float(power)!r} * tl.log({self.name}))")

    def __bool__(self) -> bool:
        raise TypeError("a traced formula cannot branch on its cells")


def _text(x: Any) -> str:
    return x.name if isinstance(x, Symbol) else repr(float(x))


def trace(metric: Metric) -> list[str]:
    """Lines that compute score, g₁ and g₀ from tp, fp, fn, tn (shares).

    >>> from fbeta import Accuracy
    >>> [line.split(" = ")[0] for line in trace(Accuracy())[-3:]]
    ['score', 'g1', 'g0']
    """
    lines: list[str] = []
    cells = Confusion(*(Symbol(lines, name) for name in ("tp", "fp", "fn", "tn")))
    g1, g0 = metric.gains(cells)
    score = metric(cells)
    return [*lines, f"score = {_text(score)}", f"g1 = {_text(g1)}", f"g0 = {_text(g0)}"]


_HEAD = """
@triton.jit
def load_point(counts_ptr, population, HAS_POPULATION: tl.constexpr):
    tp, fp = tl.load(counts_ptr), tl.load(counts_ptr + 1)
    fn, tn = tl.load(counts_ptr + 2), tl.load(counts_ptr + 3)
    positives, negatives = tp + fn, fp + tn
    if HAS_POPULATION:
        t, u = tp / tl.where(positives > 0, positives, 1.0), fp / tl.where(negatives > 0, negatives, 1.0)
        pi = tl.load(population)
        tp, fn, fp, tn = pi * t, pi * (1.0 - t), (1.0 - pi) * u, (1.0 - pi) * (1.0 - u)
    total = tp + fp + fn + tn
    total = tl.where(total > 0, total, 1.0)
    return tp / total, fp / total, fn / total, tn / total, positives, negatives


@triton.jit
def slopes(tp, fp, fn, tn):
    {formula}
    return score + 0.0 * tp, g1 + 0.0 * tp, g0 + 0.0 * tp


@triton.jit
def costs_kernel(
    counts_ptr, seen_ptr, population_ptr, stream_ptr, fresh_ptr, q_ptr, out_ptr, warmup, epsilon,
    HAS_POPULATION: tl.constexpr, HAS_STREAM: tl.constexpr,
):
    tp, fp, fn, tn, positives, negatives = load_point(counts_ptr, population_ptr, HAS_POPULATION)
    _, c1, c0 = slopes(tp, fp, fn, tn)
    if HAS_POPULATION:
        pi = tl.load(population_ptr)
        if HAS_STREAM:
            rate = tl.load(stream_ptr)
        else:
            seen = tl.load(seen_ptr) + tl.load(seen_ptr + 2)
            rest = tl.load(seen_ptr + 1) + tl.load(seen_ptr + 3)
            rate = tl.where((seen > 0) & (rest > 0), seen / (seen + rest), pi)
        c0, c1 = c0 * (1.0 - pi) / (1.0 - rate), c1 * pi / rate
    total = c0 + c1
    known = (total > 0) & (total < float("inf")) & (positives > 0) & (negatives > 0)
    trust = tl.where(warmup > 0, tl.minimum(positives / tl.where(warmup > 0, warmup, 1.0), 1.0), 1.0)
    fresh = tl.load(fresh_ptr)
    delta = tl.where(known, trust * (c0 / tl.where(known, total, 1.0)) + (1.0 - trust) * fresh, fresh)
    delta = tl.minimum(tl.maximum(delta, epsilon), 1.0 - epsilon)
    tl.store(out_ptr, delta)
    tl.store(out_ptr + 1, 1.0 - delta)
    tl.store(out_ptr + 2, tl.load(q_ptr))


@triton.jit
def score_kernel(counts_ptr, population_ptr, out_ptr, HAS_POPULATION: tl.constexpr):
    tp, fp, fn, tn, positives, negatives = load_point(counts_ptr, population_ptr, HAS_POPULATION)
    score, g1, g0 = slopes(tp, fp, fn, tn)
    rows = positives + negatives
    one, zero = 1.0 / tl.where(rows > 0, rows, 1.0), 1.0 / tl.where(rows > 0, rows, 1.0)
    if HAS_POPULATION:
        pi = tl.load(population_ptr)
        one = tl.where(positives > 0, pi / tl.where(positives > 0, positives, 1.0), 0.0)
        zero = tl.where(negatives > 0, (1.0 - pi) / tl.where(negatives > 0, negatives, 1.0), 0.0)
    tl.store(out_ptr, tl.where(rows == 0, 0.0, 1.0 - score))
    tl.store(out_ptr + 1, -g1 * one)
    tl.store(out_ptr + 2, g0 * zero)
"""

_NUMBERS = itertools.count()


@functools.lru_cache(maxsize=256)
def kernels(metric: Metric) -> dict[str, Any] | None:
    """Triton kernels for the numbers of a metric: costs of the tangent loss, value and slopes of the soft loss."""
    try:
        lines = trace(metric)
    except (TypeError, ValueError, AttributeError, ZeroDivisionError):
        return None
    source = _HEAD.replace("{formula}", "\n    ".join(lines))
    # Triton reads the source of what it compiles; a generated module has it in the line cache alone.
    name = f"<fbeta formula {next(_NUMBERS)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {"triton": triton, "tl": tl, "__name__": "fbeta.losses.kernels.formula"}
    exec(compile(source, name, "exec"), space)
    return space

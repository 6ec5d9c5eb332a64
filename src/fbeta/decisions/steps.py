"""Counts at every cut: one sort, then running sums; every rule and every sketch works on the result."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.decisions.inputs import Vector, read_rows
from fbeta.metrics import Confusion, Metric

#: Cuts whose cells are scored at once: few enough to stay in the processor's cache.
BLOCK = 1 << 15


@dataclass(frozen=True)
class Steps:
    """Distinct scores from the top, and what a cut below the first i of them catches, i = 0 … m.

    Shape: `scores` ``(m,)``; `tp`, `fp` (weights) and `called` (rows) ``(m + 1,)``, each beginning with 0.

    >>> steps = Steps.of([0.9, 0.4, 0.4], [1, 0, 1])
    >>> steps.scores.tolist(), steps.tp.tolist(), steps.called.tolist()
    ([0.9, 0.4], [0.0, 1.0, 2.0], [0, 1, 3])
    """

    scores: Vector
    tp: Vector
    fp: Vector
    called: NDArray[np.int64]
    #: How many rows a unit of weight stands for when uncertainty is at stake, of positives and of negatives.
    rows_per_weight: tuple[float, float] = (1.0, 1.0)
    #: The type the scores came in. A cut is a number of that type, so that ``scores >= cut`` in half or single
    #: precision decides as in double.
    dtype: str = "f8"
    #: What the scores are: probabilities, logits, or any numbers that rise with the chance of a positive.
    kind: str = "score"
    #: Weight of positives and negatives, where there are more than the last cut catches (a column among others).
    totals: tuple[float, float] | None = None

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        target: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        kind: str = "score",
        infinite: bool = False,
    ) -> Steps:
        """Sort once, keep ties whole; infinite scores are refused unless `infinite` allows them."""
        s, y, w = read_rows(scores, target, weight, infinite=infinite)
        dtype = "bf16" if "bfloat16" in str(getattr(scores, "dtype", "")) else s.dtype.str[1:]
        hit = y == 1
        n1 = int(np.count_nonzero(hit))
        if w is None and n1 + int(np.count_nonzero(y == 0)) == s.size:
            return cls._of_labels(s, hit, n1, dtype, kind)
        order = np.argsort(s)[::-1]
        s, y = s[order].astype(np.float64), y[order].astype(np.float64)
        v = np.ones(s.size) if w is None else w[order]
        last = np.append(np.flatnonzero(s[:-1] != s[1:]), s.size - 1)
        tp, fp = (np.append(0.0, np.cumsum(x)[last]) for x in (v * y, v * (1.0 - y)))
        rows = rows_per_weight((tp[-1], fp[-1]), (float(v * y @ v), float(v * (1.0 - y) @ v)))
        return cls(s[last], tp, fp, np.append(0, last + 1), rows, dtype, kind)

    @classmethod
    def _of_labels(cls, s: NDArray[Any], hit: NDArray[np.bool_], n1: int, dtype: str, kind: str) -> Steps:
        """Rows of weight one with labels 0 and 1: sorting values is far quicker than sorting positions."""
        ordered = np.sort(s)
        new = np.append(True, ordered[1:] != ordered[:-1])
        if new.all():
            distinct, called = ordered, np.arange(s.size + 1)
        else:
            starts = np.flatnonzero(new)
            distinct, called = ordered[starts], np.append(0, s.size - starts[::-1])
        rare = hit if 2 * n1 <= s.size else ~hit
        there = np.bincount(np.searchsorted(distinct, np.sort(s[rare])), minlength=distinct.size)
        caught = np.append(0.0, np.cumsum(there[::-1]))
        other = called - caught
        tp, fp = (caught, other) if rare is hit else (other, caught)
        return cls(distinct[::-1].astype(np.float64, copy=False), tp, fp, called, (1.0, 1.0), dtype, kind)

    @property
    def positives(self) -> float:
        """The weight of the positives."""
        return float(self.tp[-1]) if self.totals is None else self.totals[0]

    @property
    def negatives(self) -> float:
        """The weight of the negatives."""
        return float(self.fp[-1]) if self.totals is None else self.totals[1]

    @property
    def positive_rows(self) -> float:
        """How many rows the positives stand for when uncertainty is at stake."""
        return self.positives * self.rows_per_weight[0]

    def confusion(self, at: int | slice | NDArray[np.intp] = slice(None)) -> Confusion:
        """The four cells at some cuts, by default at all."""
        tp, fp = self.tp[at], self.fp[at]
        return Confusion(tp, fp, self.positives - tp, self.negatives - fp)

    def cuts_at(self, indices: NDArray[np.intp]) -> Vector:
        """The cuts that call the first so many distinct scores positive: +inf, midway between neighbours, −inf."""
        last = self.scores.size - 1
        found = self._between(self.scores[np.maximum(indices - 1, 0)], self.scores[np.minimum(indices, last)])
        return np.where(indices == 0, np.inf, np.where(indices > last, -np.inf, found))

    def cut(self, index: int) -> float:
        """The cut that calls the first `index` distinct scores positive."""
        return float(self.cuts_at(np.array([index]))[0])

    def index(self, cut: float) -> int:
        """How many distinct scores lie at or above a cut."""
        return self.scores.size - int(np.searchsorted(self.scores[::-1], cut, side="left"))

    def snap(self, cut: float) -> float:
        """The cut nearest to a wish whose counts are known: any, if the scores are, in their own precision."""
        return float(self._round(cut))

    def knots(self, count: int, *also: int) -> NDArray[np.intp]:
        """About `count` indices of cuts that divide positives, and negatives, into equal parts; both ends included."""
        if self.tp.size <= count:
            return np.arange(self.tp.size)
        shares = np.linspace(0.0, 1.0, count // 2)
        parts = [np.searchsorted(x, x[0] + shares * (x[-1] - x[0])) for x in (self.tp, self.fp)]
        found = np.concatenate([[0, self.tp.size - 1, *also], *parts])
        return np.unique(np.minimum(found, self.tp.size - 1))

    def at_knots(self, knots: NDArray[np.intp]) -> Steps:
        """Only these cuts; what lies between two of them gets the middle of its scores."""
        if knots.size == self.tp.size:
            return self
        scores = self.scores[knots[:-1]] / 2 + self.scores[knots[1:] - 1] / 2
        counts = self.tp[knots], self.fp[knots], self.called[knots]
        return Steps(scores, *counts, self.rows_per_weight, self.dtype, self.kind, self.totals)

    def at_prevalence(self, prevalence: float) -> Self:
        """The same rates and the same total weight, with another share of positives."""
        if self.positives == 0 or self.negatives == 0:
            raise ValueError(
                "prevalence= changes the balance of two classes, but the target holds only one; give rows of both."
            )
        total = self.positives + self.negatives
        # Rates first: the inverse of a class's weight may be more than a float holds.
        tp, fp = self.tp / self.positives * (prevalence * total), self.fp / self.negatives * ((1 - prevalence) * total)
        return replace(self, tp=tp, fp=fp)

    def expected(self, probability: Vector) -> Steps:
        """The steps that probabilities of the distinct scores lead us to expect, in place of the targets."""
        mass = np.diff(self.tp) + np.diff(self.fp)
        tp, fp = (np.append(0.0, np.cumsum(mass * p)) for p in (probability, 1 - probability))
        return replace(self, tp=tp, fp=fp)

    def values(self, metric: Metric) -> Vector:
        """The metric at every cut; NaN where a user's formula divides by zero."""
        out = np.empty(self.tp.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            for low in range(0, out.size, BLOCK):
                part = slice(low, low + BLOCK)
                out[part] = score_cells(metric, self.confusion(part))
        return out

    def _round(self, cut: Any) -> Any:
        if self.dtype == "f8":
            return cut
        with np.errstate(over="ignore"):  # a wish beyond the type's range calls all or none
            narrow = np.asarray(cut).astype("f4" if self.dtype == "bf16" else self.dtype)
        if self.dtype == "bf16":  # NumPy has no such type: the upper half of a single, rounded to even
            bits = np.atleast_1d(narrow).view(np.uint32)
            odd = (bits >> 16) & 1
            narrow = ((bits + 0x7FFF + odd) & 0xFFFF0000).view(np.float32).reshape(narrow.shape)
        return narrow.astype(np.float64)

    def _between(self, upper: Any, lower: Any) -> Any:
        with np.errstate(invalid="ignore"):  # +inf and −inf have no middle
            middle = self._round(upper / 2 + lower / 2)
        # Between neighbouring floats there is no middle: then the upper one itself cuts (`>=` is positive).
        return np.where((middle > lower) & (middle <= upper), middle, upper)


@dataclass(frozen=True)
class Binned(Steps):
    """Steps whose scores are middles of bins: only the bins' lower ends (`ends`, the last is −∞) can cut.

    Shape: `ends` ``(m,)``.

    >>> counts = np.array([[0, 2, 2], [0, 0, 2], [0, 2, 4]])
    >>> steps = Binned(np.array([0.8, 0.2]), *counts, ends=np.array([0.5, -np.inf]))
    >>> steps.place([0.7, 0.3]).tolist(), steps.snap(0.4)
    ([0, 1], 0.5)
    """

    ends: Vector = field(default_factory=lambda: np.empty(0))

    def place(self, scores: ArrayLike) -> NDArray[np.intp]:
        """The bin of each score."""
        return np.searchsorted(-self.ends, -np.asarray(scores, dtype=np.float64), side="left")

    def cuts_at(self, indices: NDArray[np.intp]) -> Vector:
        """Ends of bins; +inf and −inf for none and all."""
        found: Vector = np.concatenate([[np.inf], self.ends[:-1], [-np.inf]])[indices]
        return found

    def index(self, cut: float) -> int:
        """How many bins lie at or above a cut."""
        return self.scores.size if cut == -np.inf else int(np.count_nonzero(self.ends >= cut))

    def snap(self, cut: float) -> float:
        """The nearest end of a bin."""
        if np.isinf(cut):
            return cut
        near = self.ends[:-1]
        return float(near[np.argmin(np.abs(near - cut))]) if near.size else -np.inf


def rows_per_weight(total: tuple[float, float], squares: tuple[float, float]) -> tuple[float, float]:
    """Kish's Σw/Σw² of positives and of negatives; a class without rows takes the other's, no rows at all 1."""
    hit, miss = (a / b if a > 0 and b > 0 else 0.0 for a, b in zip(total, squares, strict=True))
    return hit or miss or 1.0, miss or hit or 1.0


def score_cells(metric: Metric, c: Confusion) -> Vector:
    """Score arrays of cells, one by one where a user's formula takes only numbers; NaN where it is 0/0."""
    cells = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in c))
    with np.errstate(all="ignore"):
        try:
            found = metric(Confusion(*(x[()] for x in cells)))
        except (TypeError, ValueError, ArithmeticError):
            each = [Confusion(*x) for x in zip(*(x.ravel() for x in cells), strict=True)]
            found = np.reshape([_score(metric, c) for c in each], cells[0].shape)
            if np.isnan(found).all():  # a formula that never has a value says why
                with suppress(ArithmeticError):
                    metric(each[0])
    return np.broadcast_to(np.asarray(found, dtype=np.float64), cells[0].shape)


def count_columns(called: NDArray[Any], target: NDArray[Any], weight: Any = None, axis: int | None = 0) -> Confusion:
    """The cells of each column of decisions ``(n, K)``, or with `axis` None of all together; `weight` ``(n,)``."""
    wide = None if weight is None else np.broadcast_to(np.asarray(weight, dtype=np.float64)[:, None], target.shape)
    return Confusion.from_predictions(called * 1.0, target, wide, axis=axis)


def _score(metric: Metric, c: Confusion) -> float:
    try:
        return float(metric(c))
    except (ArithmeticError, ValueError):  # such as math.sqrt of a negative number
        return np.nan


def curve(scores: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None) -> tuple[Vector, Confusion]:
    """Confusion at every cut that can be told apart, from 'none positive' to 'all positive'.

    A cut lies midway between two distinct scores; the first is +inf, the last −inf. Ties stay whole. An infinite
    score counts as the largest or smallest of all.

    Shape: inputs ``(n,)``; cuts and cells ``(m + 1,)`` for m distinct scores.

    >>> cuts, c = curve([0.9, 0.4, 0.4], [1, 0, 1])
    >>> cuts.tolist(), c.tp.tolist(), c.fp.tolist()
    ([inf, 0.65, -inf], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0])
    """
    steps = Steps.of(scores, target, weight, infinite=True)
    return steps.cuts_at(np.arange(steps.tp.size)), steps.confusion()

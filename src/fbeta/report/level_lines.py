"""Lines of equal score in ROC space, for any metric, by bisection."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.metrics import Confusion, Metric
from fbeta.report.chart import Chart, Label, Line
from fbeta.report.numerals import short

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LevelLine:
    """A line of equal score: its points (u, t) from lower left to upper right."""

    score: float
    points: tuple[tuple[float, float], ...]


def scored(metric: Metric, c: Confusion) -> float:
    """The metric's score; NaN where a formula of the user's own has no value.

    >>> from fbeta.metrics import Accuracy
    >>> scored(Accuracy(), Confusion(1, 2, 3, 4))
    0.5
    """
    try:
        return float(metric(c))
    except (ArithmeticError, ValueError):
        return math.nan


def surface(metric: Metric, u: Array, t: Array, prevalence: float) -> Array:
    """The score at many points of ROC space; NaN where the formula has no value.

    Shape: `u` and `t` alike; result the same.

    >>> from fbeta.metrics import Accuracy
    >>> surface(Accuracy(), np.array([0.0, 1.0]), np.array([1.0, 1.0]), 0.25)
    array([1.  , 0.25])
    """
    with np.errstate(all="ignore"):
        try:
            score: Any = metric(Confusion.from_rates(u, t, prevalence))
            return np.broadcast_to(np.asarray(score, dtype=np.float64), u.shape)
        except (TypeError, ValueError):  # written for single numbers, with math.sqrt or an if
            points = zip(u.ravel().tolist(), t.ravel().tolist(), strict=True)
            flat = [scored(metric, Confusion.from_rates(x, y, prevalence)) for x, y in points]
            return np.array(flat).reshape(u.shape)


def level_lines(metric: Metric, prevalence: float, right: float = 1.0, n: int = 9) -> list[LevelLine]:
    """About `n` lines, spread evenly over the window 0 ≤ u ≤ `right`, with round scores.

    The scores are those on the way from the perfect corner to the opposite one, rounded.

    >>> from fbeta.metrics import Accuracy
    >>> [line.score for line in level_lines(Accuracy(), 0.5, n=4)]
    [0.9, 0.6, 0.4, 0.1]
    """
    way = (np.arange(n) + 0.5) / n
    met = surface(metric, right * way, 1 - way, prevalence)
    lines = [level_line(metric, prevalence, score, right) for score in dict.fromkeys(_rounded(met))]
    return [line for line in lines if len(line.points) > 1]


def level_line(metric: Metric, prevalence: float, score: float, right: float = 1.0, n: int = 48) -> LevelLine:
    """The line of one score.

    It is sought along columns (t rises) and along rows (u falls), so that flat and steep lines are both met. A metric
    that rises with TPR and falls with FPR has rising lines, so sorting puts the points in order.

    >>> from fbeta.metrics import Recall
    >>> {round(t, 6) for u, t in level_line(Recall(), 0.1, 0.3).points}
    {0.3}
    """
    grid = np.linspace(0, 1, n + 1)
    up = _crossings(lambda s: surface(metric, right * grid, s, prevalence), score, n + 1)
    left = _crossings(lambda s: surface(metric, right * (1 - s), grid, prevalence), score, n + 1)
    found = np.concatenate([np.stack([grid, up], axis=1), np.stack([1 - left, grid], axis=1)])
    found = found[np.isfinite(found).all(axis=1)]
    found = found[np.argsort(found.sum(axis=1), kind="stable")]
    return LevelLine(score, tuple((right * u, t) for u, t in found.tolist()))


def _rounded(values: Iterable[float]) -> list[float]:
    """Finite values rounded to as few significant digits as keep them apart, at most three."""
    kept = [v for v in values if math.isfinite(v)]
    for digits in (1, 2):
        rounded = [float(f"{v:.{digits}g}") for v in kept]
        if len(set(rounded)) == len(kept):
            return rounded
    return [float(f"{v:.3g}") for v in kept]


def _crossings(rising: Callable[[Array], Array], score: float, n: int) -> Array:
    """Where each of `n` functions that rise on [0, 1] meets a score; NaN where one does not."""
    low, high = np.zeros(n), np.ones(n)
    bottom, top = rising(low), rising(high)
    meets = (bottom < top) & (bottom <= score) & (score <= top)
    for _ in range(40):
        middle = (low + high) / 2
        below = rising(middle) < score
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(meets, (low + high) / 2, np.nan)


def exits(lines: list[LevelLine], right: float = 1.0) -> tuple[list[LevelLine], list[LevelLine]]:
    """Lines whose scores can be written where they leave the window without touching: over it, and beside it.

    >>> from fbeta.metrics import FBeta
    >>> over, beside = exits(level_lines(FBeta(2), prevalence=0.1))
    >>> [line.score for line in over], [line.score for line in beside]
    ([0.9, 0.7, 0.5, 0.4], [0.3, 0.2, 0.1, 0.07, 0.02])
    """
    over: list[LevelLine] = []
    beside: list[LevelLine] = []
    for line in lines:
        u, t = line.points[-1]
        if t > 0.995 and u < 0.97 * right:
            room = (0.02 + 0.025 * len(short(line.score, 3))) * right
            if all(abs(u - other.points[-1][0]) >= room for other in over):
                over.append(line)
        elif all(abs(t - other.points[-1][1]) >= 0.045 for other in beside):
            beside.append(line)
    return over, beside


def add(chart: Chart, lines: list[LevelLine], right: float = 1.0) -> None:
    """Add lines of equal score to a chart, each with its score where it leaves the window, if there is room."""
    chart.lines += [Line(x.points, "level", f"score {short(x.score, 3)}") for x in lines]
    over, beside = exits(lines, right)
    chart.labels += [Label(x.points[-1], short(x.score, 3), "mid faint", down=-5) for x in over]
    chart.labels += [Label(x.points[-1], short(x.score, 3), "faint", right=3, down=3.5) for x in beside]

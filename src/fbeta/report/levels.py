"""Lines of equal score in a window of ROC space, for any metric, by bisection."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fbeta.metrics import Confusion, Metric
from fbeta.report.points import scored


@dataclass(frozen=True)
class Level:
    """A line of equal score: its points (u, t) from lower left to upper right."""

    score: float
    points: tuple[tuple[float, float], ...]


def levels(metric: Metric, prevalence: float, right: float = 1.0, n: int = 9) -> list[Level]:
    """About `n` lines, spread evenly over the window 0 ≤ u ≤ `right`; their scores are round.

    >>> from fbeta.metrics import Accuracy
    >>> [level.score for level in levels(Accuracy(), 0.5, n=4)]
    [0.9, 0.6, 0.4, 0.1]
    """
    way = [(i + 0.5) / n for i in range(n)]
    met = [scored(metric, Confusion.from_rates(right * w, 1 - w, prevalence)) for w in way]
    lines = [level(metric, prevalence, score, right) for score in dict.fromkeys(_rounded(met))]
    return [line for line in lines if len(line.points) > 1]


def level(metric: Metric, prevalence: float, score: float, right: float = 1.0, n: int = 24) -> Level:
    """The line of one score.

    It is sought along columns (t rises) and along rows (u falls), so that flat and steep lines both are met; a metric
    that rises with both makes a rising line, and sorting puts its points in order.

    >>> from fbeta.metrics import Recall
    >>> {round(t, 6) for u, t in level(Recall(), 0.1, 0.3).points}
    {0.3}
    """

    def at(u: float, t: float) -> float:
        return scored(metric, Confusion.from_rates(u, t, prevalence))

    found: list[tuple[float, float]] = []
    for i in range(n + 1):
        u, t = right * i / n, i / n
        if (up := _crossing(partial(at, u), 0.0, 1.0, score)) is not None:
            found.append((u, up))
        if (left := _crossing(partial(at, t=t), right, 0.0, score)) is not None:
            found.append((left, t))
    return Level(score, tuple(sorted(found, key=lambda p: p[0] / right + p[1])))


def _crossing(rising: Callable[[float], float], low: float, high: float, score: float) -> float | None:
    """Where a function that rises from `low` to `high` meets a score."""
    bottom, top = rising(low), rising(high)
    if not bottom < top or not bottom <= score <= top:
        return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < score else (low, middle)
    return (low + high) / 2


def _rounded(values: list[float]) -> list[float]:
    """As few digits as keep the values apart, no more than three."""
    kept = [v for v in values if math.isfinite(v)]
    for digits in (1, 2):
        short = [float(f"{v:.{digits}g}") for v in kept]
        if len(set(short)) == len(kept):
            return short
    return [float(f"{v:.3g}") for v in kept]

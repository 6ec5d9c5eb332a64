"""Lines of equal score in ROC space, for any metric, by bisection."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from fbeta.decisions.steps import score_cells
from fbeta.learners.crossfit import Array
from fbeta.metrics import Confusion, Metric
from fbeta.numerals import short
from fbeta.report.chart import Chart, Label, Line, Pair


class LevelLine(NamedTuple):
    """A line of equal score: its points (u, t) from lower left to upper right."""

    score: float
    points: tuple[Pair, ...]


def level_lines(metric: Metric, prevalence: float, right: float = 1.0, n: int = 9) -> list[LevelLine]:
    """About `n` lines with round scores, spread evenly over the way from the corner (0, 1) to (`right`, 0)."""
    way = (np.arange(n) + 0.5) / n
    met = score_cells(metric, Confusion.from_rates(right * way, 1 - way, prevalence))
    lines = [level_line(metric, prevalence, score, right) for score in dict.fromkeys(_rounded(met))]
    return [line for line in lines if len(line.points) > 1]


def level_line(metric: Metric, prevalence: float, score: float, right: float = 1.0, n: int = 48) -> LevelLine:
    """The line of one score, sought up columns (t rises) and along rows (u falls), so flat and steep ones are met."""
    grid, zero, one = np.linspace(0, 1, n + 1), np.zeros(n + 1), np.ones(n + 1)
    start = np.block([[grid, one], [zero, grid]])
    end = np.block([[grid, zero], [one, grid]])

    def at(share: Array) -> Array:
        """Scores after this share of each way."""
        u, t = start + share * (end - start)
        return score_cells(metric, Confusion.from_rates(right * u, t, prevalence))

    low, high = np.zeros(2 * n + 2), np.ones(2 * n + 2)
    meets = (at(low) < at(high)) & (at(low) <= score) & (score <= at(high))
    for _ in range(40):
        middle = (low + high) / 2
        below = at(middle) < score
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found = (start + low * (end - start))[:, meets]
    # A metric that rises with TPR and falls with FPR has rising lines, so sorting puts the points in order.
    u, t = found[:, np.argsort(found.sum(axis=0), kind="stable")]
    return LevelLine(score, tuple(zip((right * u).tolist(), t.tolist(), strict=True)))


def add(chart: Chart, lines: Iterable[LevelLine], right: float = 1.0) -> None:
    """Add lines to a chart, each with its score where it leaves the window, unless that would touch another."""
    over: list[float] = []
    beside: list[float] = []
    for line in lines:
        text, (u, t) = short(line.score, 3), line.points[-1]
        chart.lines.append(Line(line.points, "level", f"score {text}"))
        if t > 0.995 and u < 0.97 * right:
            if all(abs(u - other) >= (0.02 + 0.025 * len(text)) * right for other in over):
                over.append(u)
                chart.labels.append(Label((u, t), text, "mid faint", down=-5))
        elif all(abs(t - other) >= 0.045 for other in beside):
            beside.append(t)
            chart.labels.append(Label((u, t), text, "faint", right=3, down=3.5))


def _rounded(values: Iterable[float]) -> list[float]:
    """Finite values rounded to as few significant digits as keep them apart, at most three."""
    kept = [v for v in values if math.isfinite(v)]
    for digits in (1, 2, 3):
        rounded = [float(f"{v:.{digits}g}") for v in kept]
        if len(set(rounded)) == len(kept):
            break
    return rounded

"""A population whose best cut can be computed: two normal classes, d′ apart, with calibrated probabilities."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any

from fbeta.metrics import Confusion, Metric

#: How far apart the classes lie in the examples: hard, fair and easy to tell apart.
SEPARATIONS = (1.0, 2.0, 3.0)


@dataclass(frozen=True)
class OperatingPoint:
    """A point of ROC space, its score, and δ, from which a row is worth calling positive; None: without a value."""

    fpr: float
    tpr: float
    score: float | None
    delta: float | None


@dataclass(frozen=True)
class Population:
    """Scores N(0, 1) of negatives and N(d′, 1) of positives; the best `cut` of the probability operates at `best`."""

    separation: float
    auc: float
    cut: float
    best: OperatingPoint
    half: OperatingPoint

    @property
    def lost(self) -> float | None:
        """What the cut ½ costs in score."""
        if self.best.score is None or self.half.score is None:
            return None
        return max(0.0, self.best.score - self.half.score)


def point(metric: Metric, fpr: float, tpr: float, prevalence: float) -> OperatingPoint:
    """Score a point of ROC space, and find the probability δ from which a row there is worth calling positive."""
    c = Confusion.from_rates(fpr, tpr, prevalence)
    score = value_or_none(lambda: metric(c))
    delta = None if score is None else value_or_none(lambda: metric.best_cut(c))
    return OperatingPoint(fpr, tpr, score, delta)


def population(metric: Metric, prevalence: float, separation: float) -> Population:
    """Find the best cut of a metric on two normal classes, and what the cut ½ does instead."""
    d, log_odds = separation, math.log(prevalence) - math.log1p(-prevalence)

    def eta(s: float) -> float:
        """The calibrated probability of a score: it rises with s, so a cut on η is a cut on s."""
        x = log_odds + d * s - d * d / 2
        return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))

    @cache
    def at(s: float) -> OperatingPoint:
        return point(metric, *rates(s, d), prevalence)

    def too_low(s: float) -> bool:
        """Whether the row at the cut is not worth calling positive, so that the cut must rise."""
        delta = at(s).delta
        return delta is not None and eta(s) < delta

    # A best cut is where η = δ; every such place is tried, and a grid besides for formulas without slopes.
    grid = [-37.0 + i * (74.0 + d) / 800 for i in range(801)]
    below = [too_low(s) for s in grid]
    turns = [_bisect(too_low, grid[i], grid[i + 1]) for i in range(len(grid) - 1) if below[i] > below[i + 1]]
    best = max([*turns, *grid], key=lambda s: -math.inf if (score := at(s).score) is None else score)
    cut = {grid[0]: 0.0, grid[-1]: 1.0}.get(best, eta(best))  # at the ends everything or nothing is positive
    half = at((d * d / 2 - log_odds) / d)
    return Population(d, NormalDist().cdf(d / math.sqrt(2)), cut, at(best), half)


def rates(s: float, separation: float) -> tuple[float, float]:
    """False and true positive rate of the cut s on two normal classes."""
    return 0.5 * math.erfc(s / math.sqrt(2)), 0.5 * math.erfc((s - separation) / math.sqrt(2))


def roc(separation: float, n: int = 301) -> list[tuple[float, float]]:
    """The ROC curve of two normal classes: false and true positive rates, from 'none' to 'all'."""
    high, low = separation + 6, -6
    return [rates(high + i / (n - 1) * (low - high), separation) for i in range(n)]


def value_or_none(formula: Callable[[], Any]) -> float | None:
    """Evaluate a formula; None where a user's own divides by zero or gives no number."""
    try:
        value = float(formula())
    except (ArithmeticError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _bisect(too_low: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if too_low(middle) else (low, middle)
    return (low + high) / 2

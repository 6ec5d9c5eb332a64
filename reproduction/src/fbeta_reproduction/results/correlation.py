"""How closely a training loss follows each score: three readings of 'correlated', over the epochs of a run."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from fbeta_reproduction.protocol import BETAS
from fbeta_reproduction.results.folder import Repeats
from fbeta_reproduction.results.run_result import Array, RunResult

#: A run that was off the plateau for fewer epochs says nothing about them.
ENOUGH = 10


def pearson(x: Array, y: Array) -> float:
    r"""Pearson's correlation of the rows where both are finite; NaN where one of them does not vary.

    .. math:: r = \frac{\sum_i (x_i - \bar x)(y_i - \bar y)}
                       {\sqrt{\sum_i (x_i - \bar x)^2 \sum_i (y_i - \bar y)^2}}

    Shape: `x` and `y` ``(n,)``; result a number.

    >>> round(pearson(np.array([1.0, 2.0, 4.0]), np.array([3.0, 2.0, np.nan])), 4)
    -1.0
    >>> pearson(np.array([1.0, 2.0]), np.array([3.0, 3.0]))
    nan
    """
    x, y = _both_finite(x, y)
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(stats.pearsonr(x, y).statistic)


def spearman(x: Array, y: Array) -> float:
    """Spearman's rank correlation, Pearson's of the ranks; NaN where one of them does not vary.

    Shape: `x` and `y` ``(n,)``; result a number.

    >>> round(spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 8.0, 27.0])), 4)
    1.0
    """
    return pearson(*map(stats.rankdata, _both_finite(x, y)))


def _both_finite(x: Array, y: Array) -> tuple[Array, Array]:
    kept = np.isfinite(x) & np.isfinite(y)
    return x[kept], y[kept]


def of_steps(x: Array, y: Array) -> float:
    """Pearson's correlation of first differences: whether the two move together from one epoch to the next.

    A run that spends its time in two places (on the plateau, then trained) has a large correlation whatever it
    does there; its steps do not.

    Shape: `x` and `y` ``(n,)``; result a number.

    >>> round(of_steps(np.array([1.0, 2.0, 2.0, 1.0]), np.array([5.0, 6.0, 6.0, 5.0])), 4)
    1.0
    """
    return pearson(np.diff(x), np.diff(y))


#: The three readings of 'correlated', by the name that tables give them.
CORRELATIONS: dict[str, Callable[[Array, Array], float]] = {
    "Pearson’s r": pearson,
    "Spearman’s ρ": spearman,
    "r of steps": of_steps,
}


def of_run(r: RunResult, beta: float, name: str = "Pearson’s r") -> float:
    """Correlation over epochs of the run's loss with F_β, both on the training split; NaN if one is constant."""
    return CORRELATIONS[name](r.loss, r.score("train", beta))


def table(g: Repeats, name: str = "Pearson’s r") -> list[list[float]]:
    """The correlation with each of the four scores, for each repeat that left the plateau.

    A run that never left has nothing but rounding to correlate.
    """
    return [[of_run(r, beta, name) for r in g.results if r.left is not None] for beta in BETAS]


def off_plateau(g: Repeats) -> list[list[float]]:
    """Pearson's r over the epochs off the plateau alone: with those on it, two clusters make any r large."""
    rows = [r for r in g.results if (~r.on_plateau).sum() >= ENOUGH]
    return [[pearson(r.loss[~r.on_plateau], r.score("train", beta)[~r.on_plateau]) for r in rows] for beta in BETAS]

"""How sure a pooled score is: what every row does to it, and how much that varies from row to row."""

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.steps import score_cells
from fbeta.metrics import Confusion, Metric

Counts = NDArray[np.float64]


def pooled(metric: Metric, counts: Counts) -> float:
    """The score of all rows together; `counts` ``(…, 4)`` are their true positives, FP, FN and TN."""
    return float(score_cells(metric, _together(counts)))


def influence(metric: Metric, counts: Counts) -> Counts:
    r"""What each unit of rows does to the pooled score: its counts times the slope of the metric by each cell.

    .. math:: \phi_g = \sum_k n_{gk}\, \partial M / \partial n_k

    Shape: `counts` ``(…, 4)``; the influence has the shape before the cells. All of it sums to zero for a metric of
    shares, and the spread of its sum over units that are drawn anew is the spread of the score (delta method).

    >>> from fbeta import FBeta
    >>> influence(FBeta(1), np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]))
    array([ 0.25 , -0.125, -0.125,  0.   ])

    Reference: [bayle2020]
    """
    all_rows = _together(counts)
    slopes = [np.nan] * 4
    with np.errstate(all="ignore"), suppress(ArithmeticError):
        slopes = [float(x) for x in metric.gradient(all_rows)]
    found: Counts = counts @ (np.array(slopes) / float(all_rows.total))
    return found


def spread(found: Counts, held: float = 0.0) -> tuple[float, float]:
    r"""The standard error of a sum of influences, and how many degrees of freedom its estimate has.

    .. math:: \hat\sigma^2 = (1 + h) \frac{G}{G-1} \sum_g (\phi_g - \bar\phi)^2, \quad \phi_g = \sum_d \phi_{dg}

    The share h of the rows that a model is tested on, `held`, is an allowance for chance in the rows that it learned
    from, which no test row shows: of models that are fitted anew, up to 25 % of the variance are missed without it
    (benchmarks/inference.py). Degrees of freedom follow from the kurtosis of the influences: with few rows that count,
    their spread is known less well than their number says.

    Shape: `found` ``(D, G)``, deals of folds by units of rows.

    >>> error, freedom = spread(np.array([[0.1, -0.1, 0.1, -0.1]]))
    >>> round(error, 3), freedom
    (0.231, 3.0)

    Reference: [bayle2020]
    """
    total = found.sum(0)
    units = len(total)
    if units < 2:
        return np.nan, np.nan
    squares = (total - total.mean()) ** 2
    variance, fourth = float(squares.sum()), float((squares**2).sum())
    peaked = units * fourth / variance**2 - 1 if variance > 0 and fourth > 0 else 0.0
    freedom = float(units - 1) if peaked <= 2 / units else float(np.clip(2 * units / peaked, 1, units - 1))
    return float(np.sqrt((1 + held) * units / (units - 1) * variance)), freedom


def _together(counts: Counts) -> Confusion:
    return Confusion(*counts.reshape(-1, 4).sum(0).tolist())

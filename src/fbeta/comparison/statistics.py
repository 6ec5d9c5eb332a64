"""How sure a mean over splits is, and whether two methods differ by more than noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fbeta.geometry import Confusion
from fbeta.metrics import Metric
from fbeta.results import Difference, Interval

LEVEL = 0.95
DRAWS = 2000


def mean_interval(values: Sequence[float], share: float) -> Interval:
    r"""The mean of scores of overlapping splits, with an interval that knows that they overlap.

    .. math:: \bar x \pm t_{J-1}\, s \sqrt{\tfrac1J + \tfrac{n_\text{test}}{n_\text{train}}}

    `share` is n_test/n_train. One value has no interval.

    >>> mean_interval([0.5, 0.7], share=0.25).mean
    0.6

    Reference: [nadeau2003]
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return Interval(mean, math.nan, math.nan)
    half = float(stats.t.ppf(0.5 + LEVEL / 2, len(values) - 1)) * _error(values, share)
    return Interval(mean, mean - half, mean + half)


def corrected_t(differences: Sequence[float], share: float) -> Difference:
    """The corrected resampled t-test on differences of two methods over the same splits.

    >>> corrected_t([0.02, 0.03, 0.025, 0.02, 0.03], share=0.25).p < 0.05
    True

    Reference: [nadeau2003]
    """
    found = mean_interval(differences, share)
    error = _error(differences, share)
    if error == 0:  # equal on every split, to the last digit
        p = 1.0 if found.mean == 0 else 0.0
    else:
        p = float(2 * stats.t.sf(abs(found.mean) / error, len(differences) - 1))
    return Difference(found.mean, found.low, found.high, p, "corrected resampled t-test")


def _error(values: Sequence[float], share: float) -> float:
    return float(np.std(values, ddof=1)) * math.sqrt(1 / len(values) + share)


def paired_bootstrap(
    metric: Metric, target: NDArray[np.bool_], one: NDArray[np.bool_], other: NDArray[np.bool_], seed: int = 0
) -> Difference:
    """The difference of two methods' decisions on the same test rows, by resampling the rows.

    A row is one of eight: its class and two decisions. So a resample is a draw of eight counts, however many rows.

    Shape: all ``(n,)``.

    >>> from fbeta import FBeta
    >>> y = np.arange(1000) % 10 == 0
    >>> paired_bootstrap(FBeta(1), y, y, y | (np.arange(1000) % 7 == 0)).low > 0
    True

    Reference: [efron1993]
    """
    cells = np.bincount(4 * target.astype(int) + 2 * one + other, minlength=8)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(cells.sum(), cells / cells.sum(), size=DRAWS).astype(float)
    differences = _apart(metric, drawn)
    observed = float(_apart(metric, cells[None].astype(float))[0])
    low, high = np.nanquantile(differences, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    # The share of resamples on the other side of zero, twice; never below what so many draws can show.
    above, below = float(np.mean(differences > 0)), float(np.mean(differences < 0))
    p = 1.0 if observed == 0 else min(1.0, max(2 * (1 - (above if observed > 0 else below)), 1 / DRAWS))
    return Difference(observed, float(low), float(high), p, "paired bootstrap over test rows")


def _apart(metric: Metric, cells: NDArray[np.float64]) -> NDArray[np.float64]:
    c = cells.T.reshape(2, 2, 2, -1)  # class, one's decision, the other's
    scores = []
    for decided in (c.sum(2), c.sum(1)):
        scores.append(metric(Confusion(decided[1, 1], decided[0, 1], decided[1, 0], decided[0, 0])))
    return np.asarray(scores[0] - scores[1], dtype=np.float64)

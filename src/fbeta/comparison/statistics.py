"""How sure a mean over splits is, and whether two methods differ by more than noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fbeta.comparison.result import Difference, Interval
from fbeta.decisions.steps import score_cells
from fbeta.metrics import Confusion, Metric

LEVEL = 0.95
DRAWS = 2000
#: Numbers that a bootstrap may hold at once.
ROOM = 1 << 22
EVERYWHERE = (-math.inf, math.inf)

Counts = NDArray[np.float64]


def mean_interval(values: Sequence[float], share: float, reach: tuple[float, float] = EVERYWHERE) -> Interval:
    r"""The mean of scores of overlapping splits, with an interval that knows that they overlap.

    .. math:: \bar x \pm t_{J-1}\, s \sqrt{\tfrac1J + \tfrac{n_\text{test}}{n_\text{train}}}

    `share` is n_test/n_train. The interval ends where the metric does, at `reach`: a few splits that differ much would
    have it go beyond. One value has no interval.

    >>> mean_interval([0.5, 0.7], share=0.25).mean
    0.6
    >>> mean_interval([0.9, 1.0], share=0.25, reach=(0, 1)).high
    1.0

    Reference: [nadeau2003]
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return Interval(mean, math.nan, math.nan)
    half = float(stats.t.ppf(0.5 + LEVEL / 2, len(values) - 1)) * _error(values, share)
    low, high = min(reach[0], *values), max(reach[1], *values)
    return Interval(mean, float(np.clip(mean - half, low, high)), float(np.clip(mean + half, low, high)))


def reach(metric: Metric, positives: float, negatives: float) -> tuple[float, float]:
    """The lowest and the highest score that so many rows of either class can get.

    The extremes of every metric of ours lie in corners of ROC space, where nothing and everything is called positive,
    rightly or wrongly; a grid between them is for formulas of one's own.

    >>> from fbeta import FBeta, MCC
    >>> reach(FBeta(2), 10, 90), reach(MCC(), 10, 90)
    ((0.0, 1.0), (-1.0, 1.0))
    """
    t, u = np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 9))
    found = score_cells(metric, Confusion(positives * t, negatives * u, positives * (1 - t), negatives * (1 - u)))
    return EVERYWHERE if np.isnan(found).all() else (float(np.nanmin(found)), float(np.nanmax(found)))


def corrected_t(differences: Sequence[float], share: float, reach: tuple[float, float] = EVERYWHERE) -> Difference:
    """The corrected resampled t-test on differences of two methods over the same splits, for scores within `reach`.

    >>> corrected_t([0.02, 0.03, 0.025, 0.02, 0.03], share=0.25).p < 0.05
    True

    Reference: [nadeau2003]
    """
    found = mean_interval(differences, share, (reach[0] - reach[1], reach[1] - reach[0]))
    error = _error(differences, share)
    if error == 0:  # equal on every split, to the last digit
        p = 1.0 if found.mean == 0 else 0.0
    else:
        p = float(2 * stats.t.sf(abs(found.mean) / error, len(differences) - 1))
    return Difference(found.mean, found.low, found.high, p, "corrected resampled t-test")


def _error(values: Sequence[float], share: float) -> float:
    return float(np.std(values, ddof=1)) * math.sqrt(1 / len(values) + share)


def bootstrap_interval(
    metric: Metric,
    target: NDArray[np.bool_],
    decided: NDArray[np.bool_],
    group: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> Interval:
    """The score of decisions on one set of test rows, and how far it varies over resamples of them.

    `group`: rows of one group are drawn together, as they are no evidence of their own.

    Shape: all ``(n,)``.

    >>> from fbeta import FBeta
    >>> y = np.arange(1000) % 10 == 0
    >>> found = bootstrap_interval(FBeta(1), y, y | (np.arange(1000) % 7 == 0))
    >>> found.low < found.mean < found.high
    True

    Reference: [efron1993]
    """
    cells = 2 * target.astype(np.int64) + decided
    found = np.concatenate([_scores(metric, drawn, 1)[0] for drawn in _draws(cells, 4, group, seed)])
    low, high = _ends(found)
    return Interval(float(_scores(metric, np.bincount(cells, minlength=4)[None], 1)[0, 0]), low, high)


def paired_bootstrap(
    metric: Metric,
    target: NDArray[np.bool_],
    one: NDArray[np.bool_],
    other: NDArray[np.bool_],
    group: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> Difference:
    """The difference of two methods' decisions on the same test rows, by resampling the rows, or groups of them.

    A row is one of eight: its class and two decisions. So a resample is a draw of eight counts, however many rows.

    Shape: all ``(n,)``.

    >>> from fbeta import FBeta
    >>> y = np.arange(1000) % 10 == 0
    >>> paired_bootstrap(FBeta(1), y, y, y | (np.arange(1000) % 7 == 0)).low > 0
    True

    Reference: [efron1993]
    """
    cells = 4 * target.astype(np.int64) + 2 * one + other
    apart = [np.subtract(*_scores(metric, drawn, 2)) for drawn in _draws(cells, 8, group, seed)]
    differences = np.concatenate(apart)
    observed = float(np.subtract(*_scores(metric, np.bincount(cells, minlength=8)[None], 2))[0])
    low, high = _ends(differences)
    # The share of resamples on the other side of zero, twice; never below what so many draws can show.
    above, below = float(np.mean(differences > 0)), float(np.mean(differences < 0))
    p = 1.0 if observed == 0 else min(1.0, max(2 * (1 - (above if observed > 0 else below)), 1 / DRAWS))
    what = "test rows" if group is None else "groups of test rows"
    return Difference(observed, low, high, p, f"paired bootstrap over {what}")


def _ends(found: Counts) -> tuple[float, float]:
    low, high = np.nanquantile(found, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return float(low), float(high)


def _draws(cells: NDArray[np.int64], kinds: int, group: NDArray[np.int64] | None, seed: int) -> list[NDArray[np.int64]]:
    """Counts of resamples: groups of rows that hold the same counts are one kind, and drawn as one number."""
    _, at = np.unique(np.arange(len(cells)) if group is None else group, return_inverse=True)
    of_groups = np.bincount(at * kinds + cells, minlength=kinds * (int(at.max()) + 1)).reshape(-1, kinds)
    alike, times = np.unique(of_groups, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    step = max(1, ROOM // len(alike))
    return [
        rng.multinomial(len(of_groups), times / len(of_groups), size=min(step, DRAWS - i)) @ alike
        for i in range(0, DRAWS, step)
    ]


def _scores(metric: Metric, cells: NDArray[np.int64], methods: int) -> Counts:
    """Scores of every method in every draw; a cell is the class, then each method's decision.

    Shape: `cells` ``(draws, 2 ** (1 + methods))``; the scores ``(methods, draws)``.
    """
    c = cells.T.astype(np.float64).reshape(2, *[2] * methods, -1)
    found = []
    for i in range(methods):
        d = c.sum(axis=tuple(1 + j for j in range(methods) if j != i))
        found.append(score_cells(metric, Confusion(d[1, 1], d[0, 1], d[1, 0], d[0, 0])))
    return np.stack(found)

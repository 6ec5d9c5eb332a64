"""How sure a mean over splits is, and whether two methods differ by more than noise."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fbeta.comparison.result import Difference, Estimate
from fbeta.decisions.steps import score_cells
from fbeta.metrics import Confusion, Metric

LEVEL = 0.95
#: Of an interval, as quantiles.
ENDS = 0.5 - LEVEL / 2, 0.5 + LEVEL / 2
DRAWS = 2000
#: Numbers that a bootstrap may hold at once.
ROOM = 1 << 22
EVERYWHERE = (-math.inf, math.inf)

Counts = NDArray[np.float64]
Calls = NDArray[np.bool_]
#: The group of each row; None where each row is its own.
Groups = NDArray[np.int64] | None


def mean_interval(values: Sequence[float], share: float, reach: tuple[float, float] = EVERYWHERE) -> Estimate:
    """The mean of scores of overlapping splits, ± t·s·√(1/J + n_test/n_train), within `reach` [nadeau2003]."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, math.nan, math.nan)
    half = float(stats.t.ppf(0.5 + LEVEL / 2, len(values) - 1)) * _error(values, share)
    low, high = min(reach[0], *values), max(reach[1], *values)
    return Estimate(mean, float(np.clip(mean - half, low, high)), float(np.clip(mean + half, low, high)))


def reach(metric: Metric, positives: float, negatives: float) -> tuple[float, float]:
    """The lowest and the highest score that so many rows of either class can get, on a grid of ROC space."""
    t, u = np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 9))
    found = score_cells(metric, Confusion(positives * t, negatives * u, positives * (1 - t), negatives * (1 - u)))
    return EVERYWHERE if np.isnan(found).all() else (float(np.nanmin(found)), float(np.nanmax(found)))


def corrected_t(differences: Sequence[float], share: float, reach: tuple[float, float] = EVERYWHERE) -> Difference:
    """The corrected resampled t-test on differences over the same splits, for scores within `reach` [nadeau2003]."""
    found = mean_interval(differences, share, (reach[0] - reach[1], reach[1] - reach[0]))
    error = _error(differences, share)
    if error == 0:  # equal on every split, to the last digit
        p = 1.0 if found.mean == 0 else 0.0
    else:
        p = float(2 * stats.t.sf(abs(found.mean) / error, len(differences) - 1))
    return Difference(found.mean, found.low, found.high, p, "corrected resampled t-test")


def _error(values: Sequence[float], share: float) -> float:
    return float(np.std(values, ddof=1)) * math.sqrt(1 / len(values) + share)


def bootstrap_interval(metric: Metric, target: Calls, decided: Calls, group: Groups = None, seed: int = 0) -> Estimate:
    """The score of decisions on test rows and its spread over resamples of rows, or of whole groups [efron1993]."""
    (observed,), (drawn,) = _resampled(metric, target, [decided], group, seed)
    return Estimate(float(observed), *np.nanquantile(drawn, ENDS).tolist())


def paired_bootstrap(
    metric: Metric, target: Calls, one: Calls, other: Calls, group: Groups = None, seed: int = 0
) -> Difference:
    """The difference of two methods' decisions on the same test rows, by resampling the rows, or groups of them."""
    (first, second), drawn = _resampled(metric, target, [one, other], group, seed)
    observed, differences = float(first - second), np.subtract(*drawn)
    low, high = np.nanquantile(differences, ENDS).tolist()
    # The share of resamples on the other side of zero, twice; never below what so many draws can show.
    above, below = float(np.mean(differences > 0)), float(np.mean(differences < 0))
    p = 1.0 if observed == 0 else min(1.0, max(2 * (1 - (above if observed > 0 else below)), 1 / DRAWS))
    what = "test rows" if group is None else "groups of test rows"
    return Difference(observed, low, high, p, f"paired bootstrap over {what}")


def _resampled(
    metric: Metric, target: Calls, decided: Sequence[Calls], group: Groups, seed: int
) -> tuple[Counts, Counts]:
    """Scores of each method's decisions, ``(methods,)``, and in resamples of the rows, ``(methods, draws)``.

    A row is one of a few kinds: its class and all decisions. So a resample is a draw of their counts, however many
    rows; groups of rows that hold the same counts are one kind as well, and drawn as one number.
    """
    kinds, cells = 2 ** (1 + len(decided)), target.astype(np.int64)
    for called in decided:
        cells = 2 * cells + called
    _, at = np.unique(np.arange(len(cells)) if group is None else group, return_inverse=True)
    of_groups = np.bincount(at * kinds + cells, minlength=kinds * (int(at.max()) + 1)).reshape(-1, kinds)
    alike, times = np.unique(of_groups, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    step = max(1, ROOM // len(alike))
    found = []
    for i in range(0, DRAWS, step):
        drawn = rng.multinomial(len(of_groups), times / len(of_groups), size=min(step, DRAWS - i)) @ alike
        found.append(_scores(metric, drawn, len(decided)))
    return _scores(metric, of_groups.sum(0)[None], len(decided))[:, 0], np.concatenate(found, axis=1)


def _scores(metric: Metric, cells: NDArray[np.int64], methods: int) -> Counts:
    """Scores ``(methods, draws)``; `cells` ``(draws, 2 ** (1 + methods))`` count class, then each method's decision."""
    c = cells.T.astype(np.float64).reshape(2, *[2] * methods, -1)
    found = []
    for i in range(methods):
        d = c.sum(axis=tuple(1 + j for j in range(methods) if j != i))
        found.append(score_cells(metric, Confusion(d[1, 1], d[0, 1], d[1, 0], d[0, 0])))
    return np.stack(found)

"""Estimates and tests, from an error, from scores of splits, or from draws: intervals, p values, what can be shown."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from fbeta.comparison.influence import Counts
from fbeta.comparison.result import Difference, Estimate
from fbeta.decisions.steps import score_cells
from fbeta.metrics import Confusion, Metric

LEVEL = 0.95
#: Of an interval, as quantiles.
ENDS = 0.5 - LEVEL / 2, 0.5 + LEVEL / 2
#: How often a difference should be found that is just large enough.
POWER = 0.8
DRAWS = 2000
#: Numbers that a bootstrap may hold at once.
ROOM = 1 << 22
EVERYWHERE = (-math.inf, math.inf)


def reach(metric: Metric, positives: float, negatives: float) -> tuple[float, float]:
    """The lowest and the highest score that so many rows of either class can get, on a grid of ROC space."""
    t, u = np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 9))
    found = score_cells(metric, Confusion(positives * t, negatives * u, positives * (1 - t), negatives * (1 - u)))
    return EVERYWHERE if np.isnan(found).all() else (float(np.nanmin(found)), float(np.nanmax(found)))


def interval(mean: float, error: float, freedom: float, within: tuple[float, float] = EVERYWHERE) -> Estimate:
    """A score ± Student's t of its standard error, not beyond what the metric can be."""
    half = float(stats.t.ppf(ENDS[1], freedom)) * error
    low, high = min(within[0], mean), max(within[1], mean)
    return Estimate(mean, float(np.clip(mean - half, low, high)), float(np.clip(mean + half, low, high)))


def student(
    mean: float, error: float, freedom: float, margin: float, test: str, within: tuple[float, float] = EVERYWHERE
) -> Difference:
    """A difference with its tests: is it zero, is it within ±`margin` (two one-sided tests), what could be shown.

    >>> found = student(0.02, 0.005, 100, margin=0.01, test="t")
    >>> round(found.p, 5), round(found.equal, 3), round(found.detectable, 4)
    (0.00012, 0.976, 0.0141)

    Reference: [schuirmann1987]
    """
    found = interval(mean, error, freedom, (within[0] - within[1], within[1] - within[0]))
    if error == 0:  # every row has the same part in it: mostly none, because all decisions are equal
        p, equal = float(mean == 0), float(abs(mean) > margin)
    else:
        p = float(2 * stats.t.sf(abs(mean) / error, freedom))
        equal = float(stats.t.sf((margin - abs(mean)) / error, freedom))
    shown = float(stats.t.ppf(ENDS[1], freedom) + stats.t.ppf(POWER, freedom)) * error
    return Difference(found.mean, found.low, found.high, p, test, error, equal, shown)


def splits_error(values: Sequence[float], share: float) -> float:
    """The error of a mean over overlapping splits, s·√(1/J + n_test/n_train); NaN for one split [nadeau2003]."""
    return float(np.std(values, ddof=1)) * math.sqrt(1 / len(values) + share) if len(values) > 1 else math.nan


def mean_interval(values: Sequence[float], share: float, within: tuple[float, float] = EVERYWHERE) -> Estimate:
    """The mean of scores of overlapping splits and its interval [nadeau2003]."""
    return interval(float(np.mean(values)), splits_error(values, share), len(values) - 1, within)


def corrected_t(
    values: Sequence[float], share: float, within: tuple[float, float] = EVERYWHERE, margin: float = 0.0
) -> Difference:
    """The corrected resampled t-test on differences over the same splits, for scores within `within` [nadeau2003]."""
    error = splits_error(values, share)
    return student(float(np.mean(values)), error, len(values) - 1, margin, "corrected resampled t-test", within)


def drawn_interval(metric: Metric, counts: Counts, seed: int = 0) -> Estimate:
    """The score of units of rows ``(G, 4)`` and its spread over draws of whole units [efron1993]."""
    observed, drawn = _drawn(metric, [counts], seed)
    return Estimate(float(observed[0]), *np.nanquantile(drawn[0], ENDS).tolist())


def drawn_difference(metric: Metric, one: Counts, other: Counts, margin: float, test: str, seed: int = 0) -> Difference:
    """The difference of two methods on the same units of rows ``(G, 4)``, by draws of whole units [efron1993]."""
    (first, second), drawn = _drawn(metric, [one, other], seed)
    mean, differences = float(first - second), np.subtract(*drawn)
    low, high = np.nanquantile(differences, ENDS).tolist()
    # The share of draws on the other side, never below what so many draws can show.
    below, above = float(np.mean(differences <= 0)), float(np.mean(differences >= 0))
    p = 1.0 if mean == 0 else min(1.0, max(2 * min(below, above), 1 / DRAWS))
    beyond = max(float(np.mean(differences >= margin)), float(np.mean(differences <= -margin)))
    error = float(np.nanstd(differences))
    shown = float(stats.norm.ppf(ENDS[1]) + stats.norm.ppf(POWER)) * error
    return Difference(mean, low, high, p, test, error, max(beyond, 1 / DRAWS), shown)


def _drawn(metric: Metric, counts: Sequence[Counts], seed: int) -> tuple[Counts, Counts]:
    """Scores of each method, ``(methods,)``, and in draws of the units, ``(methods, draws)``.

    Units that hold the same counts are one kind, drawn as one number: so many units cost no more than few.
    """
    alike, times = np.unique(np.concatenate(counts, axis=1), axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    step = max(1, ROOM // len(alike))
    sizes = [min(step, DRAWS - i) for i in range(0, DRAWS, step)]
    drawn = [rng.multinomial(times.sum(), times / times.sum(), size=size) @ alike for size in sizes]
    return _scores(metric, (times @ alike)[None])[:, 0], _scores(metric, np.concatenate(drawn))


def _scores(metric: Metric, counts: Counts) -> Counts:
    """Scores ``(methods, draws)`` of counts ``(draws, 4 · methods)``."""
    each = counts.reshape(len(counts), -1, 4)
    return np.stack([score_cells(metric, Confusion(*each[:, k].T)) for k in range(each.shape[1])])


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjustment: p values that may each be held against one level, however many there are.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]

    Reference: [holm1979]
    """
    order = sorted(range(len(p)), key=lambda i: (math.isnan(p[i]), p[i]))
    found, highest = [math.nan] * len(p), 0.0
    for k, i in enumerate(order):
        if not math.isnan(p[i]):
            highest = max(highest, min(1.0, (len(p) - k) * p[i]))
            found[i] = highest
    return found

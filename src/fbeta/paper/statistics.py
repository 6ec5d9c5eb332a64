"""The few statistics that the verdicts rest on: correlations, intervals of shares, time until something happens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Two-sided 95 %.
Z = 1.959963984540054


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
    kept = np.isfinite(x) & np.isfinite(y)
    if kept.sum() < 2 or np.ptp(x[kept]) == 0 or np.ptp(y[kept]) == 0:
        return math.nan
    a, b = x[kept] - x[kept].mean(), y[kept] - y[kept].mean()
    size = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return max(-1.0, min(1.0, float(a @ b) / size)) if size > 0 else math.nan


def ranks(x: Array) -> Array:
    """Ranks from one, equal values sharing the mean of theirs.

    Shape: `x` ``(n,)``, result ``(n,)``.

    >>> ranks(np.array([2.0, 1.0, 2.0]))
    array([2.5, 1. , 2.5])
    """
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    mean: Array = last - (count - 1) / 2.0
    return mean[place]


def spearman(x: Array, y: Array) -> float:
    """Spearman's rank correlation: Pearson's of the ranks.

    Shape: `x` and `y` ``(n,)``; result a number.

    >>> round(spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 8.0, 27.0])), 4)
    1.0
    """
    kept = np.isfinite(x) & np.isfinite(y)
    return pearson(ranks(x[kept]), ranks(y[kept]))


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


def wilson(hits: float, n: float) -> tuple[float, float]:
    r"""Wilson's 95 % interval of a share.

    .. math:: \frac{\hat p + z^2/2n \pm z\sqrt{\hat p(1-\hat p)/n + z^2/4n^2}}{1 + z^2/n}

    >>> low, high = wilson(0, 10)
    >>> low, round(high, 4)
    (0.0, 0.2775)

    Reference: Wilson (1927)
    """
    if n <= 0:
        return 0.0, 1.0
    share, more = hits / n, Z * Z / n
    middle = share + more / 2
    reach = Z * math.sqrt(max(0.0, share * (1 - share)) / n + more / (4 * n))
    low, high = (middle - reach) / (1 + more), (middle + reach) / (1 + more)
    return (0.0 if hits <= 0 else max(0.0, low)), (1.0 if hits >= n else min(1.0, high))


@dataclass(frozen=True)
class Survival:
    """Share of runs to which something has not yet happened, after each epoch from 1, with its interval."""

    epochs: Array
    share: Array
    low: Array
    high: Array
    at_risk: Array

    @property
    def median(self) -> float:
        """First epoch after which at most half are left; inf if that was not seen.

        >>> survival([1, 3, 3], [True, True, False]).median
        3.0
        """
        gone = np.flatnonzero(self.share <= 0.5)
        return float(self.epochs[gone[0]]) if len(gone) else math.inf


def survival(times: Sequence[float], happened: Sequence[bool], until: int = 0) -> Survival:
    r"""Kaplan and Meier's estimate; a run to which it did not happen counts as long as it was watched.

    .. math:: S(e) = \prod_{k \le e} \left(1 - \frac{d_k}{n_k}\right)

    The interval is Wilson's of a share of n/S runs, n being those still watched, which is Peto's variance: without
    censoring exactly Wilson's of the share, inside [0, 1] always, and as wide as the few that are left make it.

    Shape: `times` and `happened` ``(runs,)``; results one number for each epoch up to the longest time, or to
    `until` where nobody is left.

    >>> survival([1, 2, 4, 4], [True, True, False, False]).share
    array([0.75, 0.5 , 0.5 , 0.5 ])

    Reference: Kaplan and Meier (1958), Peto et al. (1977)
    """
    t, event = np.asarray(times, dtype=float), np.asarray(happened, dtype=bool)
    share, m, rows = 1.0, 0.0, []
    for e in range(1, max(until, int(t.max(initial=0))) + 1):
        n, d = int((t >= e).sum()), int((event & (t == e)).sum())
        if n == 0 and share > 0:
            break  # the last ones were lost from sight: nothing is known from here on
        share *= 1 - d / n if n else 1.0
        # Once all have left, the number stays what it was.
        m = (n - d) / share if share > 0 else max(m, n)
        rows.append((float(e), share, *wilson(share * m, m), float(n)))
    return Survival(*np.array(rows, dtype=float).reshape(len(rows), 5).T)


def superiority(x: Sequence[float], y: Sequence[float]) -> float:
    r"""Probability that one of `x` is larger than one of `y`, equal ones counting half.

    .. math:: \Pr(X > Y) + \tfrac12 \Pr(X = Y)

    Infinity is a time that nobody saw the end of: two of them are equal.

    >>> superiority([3, 4], [1, 2]), superiority([math.inf], [math.inf])
    (1.0, 0.5)

    Reference: Mann and Whitney (1947)
    """
    if not x or not y:
        return math.nan
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in x for b in y]
    return sum(wins) / len(wins)

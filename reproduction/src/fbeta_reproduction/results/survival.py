"""The plateau: who falls onto it, and how long they stay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fbeta_reproduction.results.folder import Repeats
from fbeta_reproduction.results.run_result import Array, RunResult

#: Whether a run falls onto the plateau is decided by the end of this epoch.
EARLY = 2
#: Two-sided 95 %.
Z = 1.959963984540054


def staying(results: Sequence[RunResult]) -> Survival:
    """The share of runs still on the plateau by epoch; a short run counts as long as it lasted.

    Shape: one number for each epoch.
    """
    times, happened = zip(*(r.watched for r in results), strict=True)
    return survival(times, happened, until=max(len(r.epochs) for r in results))


def early(g: Repeats) -> list[RunResult]:
    """The runs, short ones too, that are on the plateau after epoch 2."""
    return [r for r in g.everyone if len(r.epochs) >= EARLY and r.on_plateau[EARLY - 1]]


def wilson(hits: float, n: float) -> tuple[float, float]:
    r"""Wilson's 95 % interval of a share.

    .. math:: \frac{\hat p + z^2/2n \pm z\sqrt{\hat p(1-\hat p)/n + z^2/4n^2}}{1 + z^2/n}

    >>> low, high = wilson(0, 10)
    >>> low, round(high, 4)
    (0.0, 0.2775)

    Reference: Wilson (1927)
    """
    # SciPy's (`binomtest`) takes whole numbers only, and n/S is not always one.
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

"""Cuts: the exact best threshold of any metric, by one sort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.geometry import Confusion
from fbeta.metrics import Metric
from fbeta.metrics import metric as read_metric


@dataclass(frozen=True)
class Threshold:
    """A cut: ``scores >= value`` is positive.

    >>> Threshold(value=0.5, score=0.8, n_positive=3).decide([0.4, 0.5])
    array([False,  True])
    """

    value: float
    score: float
    n_positive: int

    def decide(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """Apply the cut."""
        return np.asarray(scores) >= self.value


def curve(
    scores: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None
) -> tuple[NDArray[np.float64], Confusion]:
    """Confusion at every cut that can be told apart, from 'none positive' to 'all positive'.

    A cut lies midway between two distinct scores; the first is +inf, the last −inf. Ties stay whole.

    Shape: inputs ``(n,)``; cuts and cells ``(m + 1,)`` for m distinct scores.

    >>> cuts, c = curve([0.9, 0.4, 0.4], [1, 0, 1])
    >>> cuts.tolist(), c.tp.tolist(), c.fp.tolist()
    ([inf, 0.65, -inf], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0])
    """
    s = np.asarray(scores, dtype=np.float64)
    y = np.asarray(target, dtype=np.float64)
    w = np.ones_like(s) if weight is None else np.asarray(weight, dtype=np.float64)
    if s.ndim != 1 or s.shape != y.shape or s.shape != w.shape:
        raise ValueError(
            f"scores, target and weight must be vectors of one length; got {s.shape}, {y.shape}, {w.shape}."
        )
    if s.size == 0:
        raise ValueError("There are no scores to cut; got empty arrays.")
    if np.isnan(s).any():
        raise ValueError("scores hold NaN, which no cut can decide; drop or impute those rows first.")
    if not ((y >= 0) & (y <= 1)).all():
        raise ValueError("target must lie in [0, 1]; map your labels to 0 and 1 first.")
    if not ((w >= 0) & np.isfinite(w)).all():
        raise ValueError("weight must be finite and zero or more.")
    order = np.argsort(-s, kind="stable")
    s, y, w = s[order], y[order], w[order]
    last = np.append(np.flatnonzero(s[:-1] != s[1:]), s.size - 1)
    tp, fp = (np.append(0.0, np.cumsum(x)[last]) for x in (w * y, w * (1 - y)))
    here, after = s[last[:-1]], s[last[:-1] + 1]
    middle = here / 2 + after / 2
    # Between neighbouring floats there is no middle: then the upper one itself cuts (`>=` is positive).
    middle = np.where((middle > after) & (middle <= here), middle, here)
    return np.concatenate([[np.inf], middle, [-np.inf]]), Confusion(tp, fp, tp[-1] - tp, fp[-1] - fp)


def tune(
    scores: ArrayLike, target: ArrayLike, metric: Metric | str | Any, weight: ArrayLike | None = None
) -> Threshold:
    r"""Find the exact best cut of a metric: every distinct score is tried, after one sort.

    .. math:: \hat c = \arg\max_c M(\text{counts of } s \ge c)

    Of equal scores the cut with the fewest positives wins. Never tune on rows the model was fitted to.

    Shape: `scores`, `target`, `weight` ``(n,)``.

    >>> tune([0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0], "fbeta:beta=1")
    Threshold(value=0.55, score=1.0, n_positive=2)

    Reference: [lipton2014]
    """
    cuts, c = curve(scores, target, weight)
    values = np.asarray(read_metric(metric)(c))
    if np.isnan(values).all():
        raise ValueError(f"{metric} is NaN at every cut; make it give a number where a denominator is zero.")
    best = int(np.nanargmax(values))
    value = float(cuts[best])
    return Threshold(value, float(values[best]), int((np.asarray(scores, dtype=np.float64) >= value).sum()))

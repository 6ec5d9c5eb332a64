"""Where each method can operate: cuts, counts and the metric's score at them, few enough for a page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fbeta.comparison.result import Candidate
from fbeta.metrics import Confusion, Metric
from fbeta.report.rows import middle_cut

#: A slider on a screen has no more positions than this.
MOST = 400


@dataclass(frozen=True)
class Point:
    """At or above `cut` lie `tp` positives and `fp` negatives, which scores `score`."""

    cut: float
    tp: float
    fp: float
    score: float


@dataclass(frozen=True)
class Points:
    """A method's operating points from the lowest cut to the highest; `own` and `half` are where its cut and ½ lie."""

    points: tuple[Point, ...]
    positives: float
    negatives: float
    own: int
    half: int

    def confusion(self, at: int) -> Confusion:
        """The four cells at a point."""
        p = self.points[at]
        return Confusion(p.tp, p.fp, self.positives - p.tp, self.negatives - p.fp)

    def rates(self, at: int) -> tuple[float, float]:
        """FPR and TPR at a point."""
        p = self.points[at]
        return p.fp / self.negatives, p.tp / self.positives


def points(candidate: Candidate, metric: Metric, most: int = MOST) -> Points | None:
    """The operating points of a method's test rows, thinned to about `most`; None where a class is missing.

    Counts stay exact. Points are kept evenly along the ROC curve and along the logarithm of the number of alerts,
    since the few first alerts of a rare class are what its users look at.
    """
    o = candidate.operating
    if not o.cut or not (o.positives > 0 and o.negatives > 0):
        return None
    cuts, tps, fps = list(o.cut), list(o.tp), list(o.fp)
    if tps[0] + fps[0] > 0:  # nothing called positive is a choice too
        cuts, tps, fps = [math.inf, *cuts], [0.0, *tps], [0.0, *fps]

    def place(cut: float) -> int:
        """The point whose rows are those at or above the cut."""
        above = [i for i, c in enumerate(cuts) if c >= cut]
        return above[-1] if above else 0

    own, half = place(middle_cut(candidate)), place(0.5)
    total = o.positives + o.negatives
    way = [
        tp / o.positives + fp / o.negatives + 2 * math.log1p(tp + fp) / math.log1p(total)
        for tp, fp in zip(tps, fps, strict=True)
    ]
    kept, last = {0, own, half, len(cuts) - 1}, way[0]
    for i, x in enumerate(way):
        if len(cuts) <= most or x - last >= 4 / most:
            kept.add(i)
            last = x
    order = sorted(kept, reverse=True)
    made = tuple(
        Point(
            cuts[i],
            tps[i],
            fps[i],
            scored(metric, Confusion(tps[i], fps[i], o.positives - tps[i], o.negatives - fps[i])),
        )
        for i in order
    )
    return Points(made, o.positives, o.negatives, order.index(own), order.index(half))


def scored(metric: Metric, c: Confusion) -> float:
    """The metric's score; NaN where a formula of the user's own has no value."""
    try:
        return float(metric(c))
    except (ArithmeticError, ValueError):
        return math.nan

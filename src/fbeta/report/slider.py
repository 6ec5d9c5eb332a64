"""The page's slider: a method's cuts with the counts and the score at each, few enough for a page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fbeta.metrics import Confusion, Metric
from fbeta.report.chart import Pair
from fbeta.report.level_lines import scored
from fbeta.report.method_rows import MethodRow

#: A slider on a screen has no more positions than this.
MOST = 400


@dataclass(frozen=True)
class Slider:
    """At or above ``cut[i]`` lie ``tp[i]`` and ``fp[i]``, which score ``score[i]``; the lowest cut is the first.

    `own` and `half` are the positions of the method's own cut and of ½.
    """

    cut: tuple[float, ...]
    tp: tuple[float, ...]
    fp: tuple[float, ...]
    score: tuple[float, ...]
    positives: float
    negatives: float
    own: int
    half: int

    @property
    def prevalence(self) -> float:
        """The share of positives."""
        return self.positives / (self.positives + self.negatives)

    @property
    def rates(self) -> list[Pair]:
        """The ROC curve: FPR and TPR, from the lowest cut to the highest."""
        return [(fp / self.negatives, tp / self.positives) for tp, fp in zip(self.tp, self.fp, strict=True)]

    @property
    def precisions(self) -> list[Pair]:
        """Recall and precision, from the lowest cut to the highest that calls a row positive."""
        pairs = zip(self.tp, self.fp, strict=True)
        return [(tp / self.positives, tp / (tp + fp)) for tp, fp in pairs if tp + fp > 0]


def slider(row: MethodRow, metric: Metric, most: int = MOST) -> Slider | None:
    """A method's test rows at about `most` cuts; None where a class is missing.

    Counts are exact. Positions are spread evenly along the ROC curve and along the logarithm of the number of alerts,
    since the first few alerts of a rare class are what its users look at.
    """
    o = row.candidate.operating
    if not o.cut or not (o.positives > 0 and o.negatives > 0):
        return None
    points = list(zip(o.cut, o.tp, o.fp, strict=True))
    if o.tp[0] + o.fp[0] > 0:  # calling nothing positive is a choice too
        points = [(math.inf, 0.0, 0.0), *points]

    def place(cut: float) -> int:
        """The point whose positives are the rows at or above the cut."""
        return max((i for i, p in enumerate(points) if p[0] >= cut), default=0)

    own, half = place(row.cut), place(0.5)
    kept, last = {0, own, half, len(points) - 1}, 0.0
    for i, (_, tp, fp) in enumerate(points):
        alerts = math.log1p(tp + fp) / math.log1p(o.positives + o.negatives)
        way = tp / o.positives + fp / o.negatives + 2 * alerts
        if len(points) <= most or way - last >= 4 / most:
            kept.add(i)
            last = way
    order = sorted(kept, reverse=True)
    places = [points[i] for i in order]
    return Slider(
        cut=tuple(p[0] for p in places),
        tp=tuple(_short(p[1]) for p in places),
        fp=tuple(_short(p[2]) for p in places),
        score=tuple(scored(metric, Confusion(t, f, o.positives - t, o.negatives - f)) for _, t, f in places),
        positives=_short(o.positives),
        negatives=_short(o.negatives),
        own=order.index(own),
        half=order.index(half),
    )


def _short(count: float) -> float:
    """A whole number without a decimal point, which the page would carry along."""
    return int(count) if count == int(count) else count

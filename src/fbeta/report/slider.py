"""The positions of the page's slider: a method's cuts, and counts and score at each, few enough for a page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fbeta.metrics import Confusion, Metric
from fbeta.report.level_lines import scored
from fbeta.report.method_rows import MethodRow

#: A slider on a screen has no more positions than this.
MOST = 400


@dataclass(frozen=True)
class Position:
    """At or above `cut` lie `tp` positives and `fp` negatives, which scores `score`."""

    cut: float
    tp: float
    fp: float
    score: float


@dataclass(frozen=True)
class Slider:
    """A method's positions from the lowest cut to the highest; `own` and `half` are those of its own cut and of ½."""

    positions: tuple[Position, ...]
    positives: float
    negatives: float
    own: int
    half: int

    @property
    def prevalence(self) -> float:
        """The share of positives."""
        return self.positives / (self.positives + self.negatives)

    def confusion(self, at: int) -> Confusion:
        """The four cells at a position."""
        p = self.positions[at]
        return Confusion(p.tp, p.fp, self.positives - p.tp, self.negatives - p.fp)

    @property
    def rates(self) -> list[tuple[float, float]]:
        """The ROC curve: FPR and TPR, from the highest cut to the lowest."""
        return [(p.fp / self.negatives, p.tp / self.positives) for p in reversed(self.positions)]


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
    positions = []
    for cut, tp, fp in (points[i] for i in order):
        score = scored(metric, Confusion(tp, fp, o.positives - tp, o.negatives - fp))
        positions.append(Position(cut, tp, fp, score))
    return Slider(tuple(positions), o.positives, o.negatives, order.index(own), order.index(half))

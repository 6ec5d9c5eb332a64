"""The page's slider: a method's cuts with the counts and the score at each, few enough for a page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fbeta.metrics import Confusion, Metric
from fbeta.report.chart import Pair
from fbeta.report.level_lines import scores
from fbeta.report.method_rows import MethodRow


@dataclass(frozen=True)
class Slider:
    """At or above ``cut[i]`` lie ``tp[i]`` and ``fp[i]``, which score ``score[i]``; the lowest cut is the first.

    `own` and `half` are the positions of the method's own cut and of ½.
    """

    cut: list[float]
    tp: list[float]
    fp: list[float]
    score: list[float]
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
        called = zip(self.tp, self.fp, strict=True)
        return [(tp / self.positives, tp / (tp + fp)) for tp, fp in called if tp + fp > 0]


def slider(row: MethodRow, metric: Metric, most: int = 400) -> Slider | None:
    """A method's test rows at about `most` cuts; None where a class is missing.

    Counts are exact. Positions are spread evenly along the ROC curve and along the logarithm of the number of alerts,
    since the first few alerts of a rare class are what its users look at.
    """
    o = row.candidate.operating
    if not o.cut or not (o.positives > 0 and o.negatives > 0):
        return None
    cut, tp, fp = np.array([o.cut, o.tp, o.fp])[:, ::-1]
    if tp[-1] + fp[-1] > 0:  # calling nothing positive is a choice too
        cut, tp, fp = np.append(cut, np.inf), np.append(tp, 0), np.append(fp, 0)
    # The first position whose cut is that or more: its positives are the rows at or above the cut.
    marked = np.minimum(np.searchsorted(cut, [row.cut, 0.5]), len(cut) - 1)
    kept = np.arange(len(cut))
    if len(cut) > most:
        alerts = np.log1p(tp + fp) / np.log1p(o.positives + o.negatives)
        way = tp / o.positives + fp / o.negatives + 2 * alerts
        _, spread = np.unique(np.floor(way * most / 4), return_index=True)
        kept = np.union1d(spread, [0, *marked, len(cut) - 1])
    tp, fp = tp[kept], fp[kept]
    found = scores(metric, Confusion(tp, fp, o.positives - tp, o.negatives - fp))
    own, half = np.searchsorted(kept, marked).tolist()
    return Slider(cut[kept].tolist(), tp.tolist(), fp.tolist(), found.tolist(), o.positives, o.negatives, own, half)

"""The value of one class among several, moved: the score at every place where a row changes its call."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.class_scores import class_shares, score_table, table_of
from fbeta.decisions.inputs import Vector
from fbeta.decisions.steps import Steps
from fbeta.metrics import Metric

#: A score must rise by so much to have risen: running sums are rounded.
RISE = 1e-12
#: All classes are moved in turn at most so often.
TURNS = 50
#: So far beyond the last row a shift calls none or all; values are about one.
STEP = 1e-6


@dataclass(frozen=True)
class ClassSteps:
    r"""Rows of classes that exclude each other, and the average of a metric that the calls shall have.

    With the values of all other classes where they are, class k is called in the rows where its value v_k plus a shift
    reaches the largest of the others, v_i − v_k ≤ shift. Sorted by that, each row changes the counts of two classes:
    k and its rival. So running counts give the score for every shift, after one sort.

    Shape: `label` ``(n,)``, numbers of classes; `weight` ``(n,)`` or None.
    """

    label: NDArray[np.integer[Any]]
    weight: Vector | None
    metric: Metric
    average: str = "macro"

    @classmethod
    def of(cls, target: Vector, weight: Vector | None, metric: Metric, average: str = "macro") -> Self:
        """From columns of 0 and 1, ``(n, K)``."""
        small = np.min_scalar_type(target.shape[1])  # less to read in random order
        return cls(target.argmax(1).astype(small), weight, metric, average)

    def score(self, values: Vector) -> float:
        """The score where the class of largest value ``(n, K)`` is called."""
        table = table_of(values.argmax(1), self.label, values.shape[1], self.weight)
        return float(score_table(self.metric, table, self.average))

    def climb(self, values: Vector) -> tuple[Vector, float]:
        """Shifts of all classes, moved in turn until no move of one class raises the score; and that score."""
        columns, shifts = np.ascontiguousarray(values.T), np.zeros(values.shape[1])
        best = self.score(values)
        for _ in range(TURNS):
            before = best
            for k in range(len(shifts)):
                by, score = self.best_shift(columns, k)
                if score > best + RISE:
                    columns[k] += by
                    shifts[k] += by
                    best = score
            if best <= before + RISE:
                break
        return shifts, best

    def best_shift(self, columns: Vector, k: int) -> tuple[float, float]:
        """The best shift of class k, of equals the nearest to 0, and the score with it; values ``(K, n)``."""
        above, rival = _rival(columns, k)
        order = np.argsort(above)
        above, rival, label = above[order], rival[order], self.label[order]
        weight = None if self.weight is None else self.weight[order]
        totals = np.bincount(self.label, self.weight, len(columns)).astype(np.float64)
        share, change = class_shares(self.average, totals), np.zeros(label.size + 1)

        def values(k: int, tp: Vector, fp: Vector) -> Vector:
            nothing, rest = np.empty(0), float(totals.sum() - totals[k])
            steps = Steps(nothing, tp, fp, nothing.astype(np.int64), totals=(float(totals[k]), rest))
            found: Vector = steps.values(self.metric) * share[k]
            return found

        for other in range(len(columns)):
            if other != k:
                lost = np.flatnonzero(rival == other)  # rows that this class loses, in turn
                tp, fp = _running(label[lost] == other, None if weight is None else weight[lost])
                left = values(other, tp[-1] - tp, fp[-1] - fp)
                change[0] += left[0]
                change[lost + 1] = np.diff(left)
        means = np.cumsum(change, out=change)
        means += values(k, *_running(label == k, weight))
        if np.isnan(means.sum()):
            raise ValueError(f"{self.metric} is NaN for some counts; make it give a number where it divides by 0.")
        means[1:-1][np.diff(above) <= RISE] = -np.inf  # equal rows move together
        best = float(means.max())
        places = np.flatnonzero(means >= best - RISE)
        upper = above[np.minimum(places, above.size - 1)] + STEP * (places == above.size)
        lower = above[np.maximum(places - 1, 0)] - STEP * (places == 0)
        shifts = upper / 2 + lower / 2
        return float(shifts[np.argmin(np.abs(shifts))]), best


def _running(hit: NDArray[np.bool_], weight: Vector | None) -> tuple[Vector, Vector]:
    """Weight of hits and of the others among the first so many rows."""
    tp, called = np.zeros(hit.size + 1), np.arange(hit.size + 1.0)
    np.cumsum(hit if weight is None else hit * weight, dtype=np.float64, out=tp[1:])
    if weight is not None:
        np.cumsum(weight, out=called[1:])
    return tp, np.subtract(called, tp, out=called)


def _rival(columns: Vector, k: int) -> tuple[Vector, NDArray[np.integer[Any]]]:
    """How far the best other class is above class k, and which it is."""
    top = np.full(columns.shape[1], -np.inf)
    rival = np.zeros(columns.shape[1], dtype=np.min_scalar_type(len(columns)))
    for other, values in enumerate(columns):
        if other != k:
            np.copyto(rival, other, where=values > top)
            np.maximum(top, values, out=top)
    return top - columns[k], rival

"""One common cut that is best for the mean of row scores, and how sure it is."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.inputs import Vector, read_array, read_kind, read_row_weight, read_rows
from fbeta.decisions.interval import RowEvidence
from fbeta.decisions.problem import Problem
from fbeta.decisions.rows import check_empty
from fbeta.decisions.steps import BLOCK, Steps, score_cells
from fbeta.decisions.threshold import Threshold
from fbeta.metrics import Confusion, Metric

#: Rows are remembered in so many groups of rows, at so many cuts.
GROUPS, KNOTS = 200, 200


@dataclass(frozen=True)
class RowSteps:
    """What each further element changes in the score of its row, in one order of all elements.

    Shape: `row` and `change` ``(n·K,)``, from the highest score to the lowest; `start` ``(n,)``, the scores of rows in
    which nothing is called.
    """

    row: NDArray[np.int64]
    change: Vector
    start: Vector

    @classmethod
    def of(cls, scores: NDArray[Any], target: NDArray[Any], metric: Metric, empty: float) -> Self:
        """Sort each row, score it at every place, and merge the changes of all rows by score."""
        n, k = scores.shape
        inside = np.argsort(scores, axis=1)[:, ::-1]
        change, start = np.empty((n, k)), np.empty(n)
        for low in range(0, n, max(1, BLOCK // k)):
            part = slice(low, low + max(1, BLOCK // k))
            y = np.take_along_axis(target[part], inside[part], 1).astype(np.float64)
            tp = np.pad(y.cumsum(1), ((0, 0), (1, 0)))
            positives, called = tp[:, -1:], np.arange(k + 1.0)
            values = score_cells(metric, Confusion(tp, called - tp, positives - tp, k - called - positives + tp)).copy()
            values[:, 0] = np.where(positives[:, 0] == 0, empty, values[:, 0])
            change[part], start[part] = np.diff(values, axis=1), values[:, 0]
        if np.isnan(start).any() or np.isnan(change).any():
            raise ValueError(f"{metric} is NaN for some row; make it give a number where it divides by 0.")
        order = np.argsort(np.take_along_axis(scores, inside, 1).ravel())[::-1]
        return cls(order // k, change.ravel()[order], start)

    def means(self, called: NDArray[np.int64], weight: Vector) -> Vector:
        """The mean over rows once so many elements are called."""
        share = weight / weight.sum()
        return float(share @ self.start) + np.append(0.0, np.cumsum(self.change * share[self.row]))[called]

    def in_groups(self, called: NDArray[np.int64], weight: Vector) -> tuple[NDArray[np.float64], Vector]:
        """Sums of row scores over groups of rows once so many elements are called, and the groups' weights."""
        n = len(self.start)
        count = min(n, GROUPS)
        group = np.random.default_rng(0).permutation(n) * count // n
        place = np.searchsorted(called, np.arange(len(self.row)), side="right")
        flat = group[self.row] * (len(called) + 1) + place
        change = np.bincount(flat, self.change * weight[self.row], count * (len(called) + 1))
        change = change.reshape(count, -1)[:, : len(called)]
        change[:, 0] += np.bincount(group, self.start * weight, count)
        sums: NDArray[np.float64] = change.cumsum(1)
        return sums, np.bincount(group, weight, count).astype(np.float64)


def cut_rows(
    scores: Any, target: Any, metric: Metric, weight: Any = None, *, kind: str | None = None, empty: float = 1.0
) -> Threshold:
    r"""The common cut of all columns that is exactly best for the mean of row scores, after one sort.

    .. math:: \hat c = \arg\max_c \frac{\sum_i w_i M(\text{counts of row } i \text{ at } s_{ij} \ge c)}{\sum_i w_i}

    Each element that is called changes the score of its own row only, so the mean at every cut is a running sum of
    such changes. Of equal cuts the one with the fewest positives wins. A row without positives scores `empty` if
    nothing is called in it.

    Shape: `scores` and `target` ``(n, K)``, `weight` ``(n,)``; one cut.

    >>> from fbeta import FBeta
    >>> cut_rows([[0.9, 0.2, 0.1], [0.5, 0.4, 0.3]], [[1, 0, 0], [1, 1, 0]], FBeta(1))
    Threshold(value=0.35, score=1.0, n_positive=3)
    """
    check_empty(empty)
    s, y = read_array("scores", scores), read_array("target", target)
    if s.ndim != 2 or s.shape != y.shape or s.size == 0:
        raise ValueError(
            f"average='samples' is the mean over rows: scores and target are (n, K); got {s.shape} and {y.shape}. "
            "Images are rows of pixels: reshape(n, -1)."
        )
    w = read_row_weight(weight, len(s))
    all_scores = scores.reshape(-1) if hasattr(scores, "detach") else s.ravel()
    flat, truth, _ = read_rows(all_scores, y.ravel())
    kind = read_kind(kind, float(flat.min()), float(flat.max()), matters=False)
    steps = Steps.of(all_scores, truth, kind=kind)  # a tensor's type says what its cuts must be
    changes = RowSteps.of(flat.reshape(s.shape), truth.reshape(s.shape), metric, empty)
    problem = Problem(steps, steps, metric)
    means = changes.means(steps.called, w)
    # Running sums differ by rounding where the scores do not.
    index = int(np.argmax(means >= means.max() - 1e-12 * max(1.0, float(np.abs(means).max()))))
    knots = steps.knots(KNOTS, index)
    sums, weights = changes.in_groups(steps.called[knots], w)
    n1, n0 = steps.positives, steps.negatives
    corners = [float(score_cells(metric, Confusion(*c))) for c in ((0.0, n0, n1, 0.0), (n1, 0.0, 0.0, n0))]
    seen = float(means.min()), float(means.max())
    ends = min(corners[0], empty, seen[0]), max(corners[1], empty, seen[1])
    evidence = RowEvidence(
        sums[weights > 0], weights[weights > 0], steps.cuts_at(knots), int(np.searchsorted(knots, index)), ends
    )
    return Threshold(
        steps.cut(index),
        float(means[index]),
        int(steps.called[index]),
        kind,
        metric=metric,
        warning=problem.warning(index, "exact"),
        evidence=evidence,
    )

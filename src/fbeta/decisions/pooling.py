"""Cuts of several columns together, for the metric of their pooled counts."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.inputs import Vector
from fbeta.decisions.problem import Constraints, argbest
from fbeta.decisions.steps import Steps
from fbeta.metrics import Metric

#: Coordinate ascent stops when a round gains less, or after so many rounds.
GAIN, ROUNDS = 1e-12, 50
#: Where no corner meets the constraints, sums between so many of the nearest ones are tried.
STARTS = 50


def pool(columns: Sequence[Steps], metric: Metric, constraints: Constraints) -> list[int]:
    """The index of each column's cut that together are best for the metric of the pooled counts.

    The points (FP, TP) that K cuts can reach are the sums of one point from each column. The upper hull of these sums
    is made of the edges of the columns' hulls, steepest first, so one merge lists its corners. A ratio of two linear
    forms of the cells that rises with TP and falls with FP (F_β, Jaccard, Tversky, accuracy, cost) has its maximum at
    such a corner: then the answer is exact. For other metrics, and under constraints, the best corner is improved one
    column at a time until none helps. Where no corner meets the constraints, the same search first looks for cuts that
    do. Reference: [dinkelbach1967]
    """
    hulls = [upper_hull(c.fp, c.tp) for c in columns]
    which = np.repeat(np.arange(len(columns)), [h.size - 1 for h in hulls])
    ends = np.concatenate([h[1:] for h in hulls])
    edges = [np.diff([c.tp[h], c.fp[h], c.called[h]]) for c, h in zip(columns, hulls, strict=True)]
    dtp, dfp, rows = np.concatenate(edges, axis=1)
    # The share of positives orders edges as their slope does, and is finite. Rows without weight come last.
    steepness = np.divide(dtp, dtp + dfp, out=np.full(dtp.size, -1.0), where=dtp + dfp > 0)
    order = np.argsort(-steepness, kind="stable")
    tp, fp, called = (np.append(0, np.cumsum(x[order])) for x in (dtp, dfp, rows))
    corners = Steps(-np.arange(order.size, dtype=np.float64), tp, fp, called)

    def place(corner: int) -> list[int]:
        at = np.zeros(len(columns), dtype=np.intp)
        # Within a column edges keep their order, so the last one taken is where its cut stands.
        np.maximum.at(at, which[order[:corner]], ends[order[:corner]])
        return [int(i) for i in at]

    def score(moved: Steps) -> Vector:
        met = constraints.met(moved)
        return moved.values(metric) if met is None else np.where(met, moved.values(metric), -np.inf)

    allowed = constraints.met(corners)
    if allowed is None or allowed.any():
        return _ascend(columns, score, place(argbest(corners.values(metric), allowed, metric)))[0]
    for corner in np.argsort(constraints.shortfall(corners), kind="stable")[:STARTS]:
        at, gap = _ascend(columns, lambda moved: -constraints.shortfall(moved), place(int(corner)))
        if gap == 0:
            return _ascend(columns, score, at)[0]
    raise ValueError(f"No cuts were found that have {constraints.nearest(corners)}")


def upper_hull(x: Vector, y: Vector) -> NDArray[np.intp]:
    """Indices of the corners of the concave hull of a rising curve, both ends included."""
    # Rows without weight repeat a point; twins would each see no corner beside the other.
    kept = np.append(0, 1 + np.flatnonzero((np.diff(x) > 0) | (np.diff(y) > 0)))
    while kept.size > 2:
        dx, dy = np.diff(x[kept]), np.diff(y[kept])
        # A point below the line between its neighbours is on no hull, whatever happens to the neighbours.
        over = dy[:-1] * dx[1:] - dy[1:] * dx[:-1] > 0
        if over.all():
            break
        kept = kept[np.concatenate([[True], over, [True]])]
    return kept


def _ascend(columns: Sequence[Steps], goal: Callable[[Steps], Vector], at: list[int]) -> tuple[list[int], float]:
    """Move one cut at a time to its best place, given the others, until nothing is gained; and what is reached."""
    tp = sum(float(c.tp[i]) for c, i in zip(columns, at, strict=True))
    fp = sum(float(c.fp[i]) for c, i in zip(columns, at, strict=True))
    totals = sum(c.positives for c in columns), sum(c.negatives for c in columns)
    reached = -np.inf
    for _ in range(ROUNDS):
        before = reached
        for k, c in enumerate(columns):
            # What the other columns catch is there whatever this one does.
            others = max(tp - float(c.tp[at[k]]), 0.0), max(fp - float(c.fp[at[k]]), 0.0)
            moved = Steps(c.scores, others[0] + c.tp, others[1] + c.fp, c.called, totals=totals)
            values = goal(moved)
            values = np.where(np.isnan(values), -np.inf, values)
            i = int(np.argmax(values))
            if values[i] > max(reached, float(values[at[k]])) + GAIN:
                at[k], tp, fp = i, float(moved.tp[i]), float(moved.fp[i])
            reached = max(reached, float(values[at[k]]))
        if not reached > before + GAIN:
            break
    return at, reached

"""The contingency table that maximises a concave function of its cells minus a metric: over all tables, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.steps import score_cells
from fbeta.learners.crossfit import Array
from fbeta.metrics import Confusion, Metric

Places = NDArray[np.int64]
#: Lines, and points on each, at which the shape of a metric is looked at.
LOOKS = 40
#: Tables that are scored at once where every one has to be.
AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Tables:
    r"""All contingency tables of P positives and N negatives: table (i, j) catches ``tp[i]`` and ``fp[j]``.

    .. math:: (i^*, j^*) = \arg\max_{i, j} \; A_i + B_j - M(TP_i, FP_j)

    Joachims tries all PN tables. Where A and B are concave, the shape of the metric makes that unnecessary:

    - "fp": M is convex in FP at fixed TP (F_β, Jaccard, Fowlkes–Mallows, costs; κ where negatives are the majority).
      Each of the P + 1 lines of tables is concave, and its top is found by halving: O(P log N).
    - "tp": the same with the roles exchanged. "called": M is convex, or straight, where TP + FP is fixed (MCC); only
      for rows that all weigh the same.
    - "order": a false alarm costs less the more (or the fewer) positives are caught, throughout (G-mean). Then the best
      j moves one way as i grows, and all lines together take O((P + N) log P).
    - "all": none of these, as for a function that bends both ways. Every table is tried, O(PN).

    Which one holds is looked up on a grid of tables, as the anchors of a metric are.

    Shape: `tp` ``(P + 1,)`` and `fp` ``(N + 1,)``, weights caught, rising from 0.

    >>> from fbeta import FBeta, MCC, GMean
    >>> [Tables(m, np.arange(11.0), np.arange(31.0)).shape for m in (FBeta(1), MCC(), GMean())]
    ['fp', 'called', 'order']
    >>> Tables(FBeta(1), np.arange(3.0), np.arange(4.0)).worst(np.zeros(3), np.zeros(4))
    (0, 0)

    Reference: [joachims2005]
    """

    metric: Metric
    tp: Array
    fp: Array

    def scores(self, i: Any, j: Any) -> Array:
        """The metric of tables; where a function of one's own is 0/0 it counts as 0."""
        tp, fp = self.tp[i], self.fp[j]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = score_cells(self.metric, Confusion(tp, fp, self.tp[-1] - tp, self.fp[-1] - fp))
        return np.nan_to_num(np.asarray(found), nan=0.0)

    def worst(self, a: Array, b: Array) -> tuple[int, int]:
        """The table (i, j) with the most of ``a[i] + b[j] − M``; `a` and `b` must be concave in `tp` and `fp`."""
        if self.shape == "all":
            i, j = self._of_all(a, b)
        elif self.shape == "order":
            i, j = self._in_order(a, b)
        else:
            i, j = self._on_lines(a, b, *self._lines(self.shape))
        best = int(np.argmax(a[i] + b[j] - self.scores(i, j)))
        return int(i[best]), int(j[best])

    @cached_property
    def shape(self) -> str:
        """Which of the shapes above the metric has on these tables: the one that is looked through fastest."""
        kinds = ["fp", "tp"] if len(self.tp) <= len(self.fp) else ["tp", "fp"]
        if len(self.tp) - 1 == self.tp[-1] and len(self.fp) - 1 == self.fp[-1]:
            kinds.append("called")
        for kind in kinds:
            if self._is_convex(kind):
                return kind
        i, j = _looks(len(self.tp)), _looks(len(self.fp))
        mixed = np.diff(np.diff(self.scores(*np.ix_(i, j)), axis=0), axis=1)
        noise = 1e-12
        return "order" if (mixed <= noise).all() or (mixed >= -noise).all() else "all"

    def _lines(self, kind: str) -> tuple[Places, Places, tuple[int, int], Places]:
        """The first table of each line, the step along it, and how many steps it has."""
        rows, columns = len(self.tp), len(self.fp)
        if kind == "fp":
            return np.arange(rows), np.zeros(rows, np.int64), (0, 1), np.full(rows, columns - 1)
        if kind == "tp":
            return np.zeros(columns, np.int64), np.arange(columns), (1, 0), np.full(columns, rows - 1)
        called = np.arange(rows + columns - 1)
        first = np.maximum(0, called - columns + 1)
        return first, called - first, (1, -1), np.minimum(rows - 1, called) - first

    def _is_convex(self, kind: str) -> bool:
        """Whether slopes rise along lines of a kind, as far as a grid of tables tells."""
        first_i, first_j, (by_i, by_j), steps = self._lines(kind)
        for line in _looks(len(steps)):
            t = _looks(steps[line] + 1)
            i, j = first_i[line] + by_i * t, first_j[line] + by_j * t
            at = {"fp": self.fp[j], "tp": self.tp[i], "called": t.astype(float)}[kind]
            with np.errstate(divide="ignore", invalid="ignore"):
                slopes = np.diff(self.scores(i, j)) / np.diff(at)
            if not (np.diff(slopes) >= -1e-9 * np.abs(slopes).max(initial=0)).all():
                return False
        return True

    def _on_lines(
        self, a: Array, b: Array, first_i: Places, first_j: Places, step: tuple[int, int], steps: Places
    ) -> tuple[Places, Places]:
        """The best table of every line, each of them concave: the last that is above the one before it."""

        def place(t: Places) -> tuple[Places, Places]:
            return first_i + step[0] * t, first_j + step[1] * t

        low, high = np.zeros_like(steps), steps.copy()
        while (low < high).any():
            middle = (low + high + 1) // 2
            (i, j), (i0, j0) = place(middle), place(np.maximum(middle - 1, 0))
            climbs = (a[i] - a[i0]) + (b[j] - b[j0]) > self.scores(i, j) - self.scores(i0, j0)
            low = np.where(climbs, middle, low)
            high = np.where(climbs, high, np.maximum(middle - 1, low))
        return place(low)

    def _in_order(self, a: Array, b: Array) -> tuple[Places, Places]:
        """The best j of every i, which moves one way: between those of the nearest lines that are done."""
        rows, columns = len(self.tp), len(self.fp)
        corners = self.scores(np.array([0, 0, -1, -1]), np.array([0, -1, 0, -1]))
        rising = corners[0] - corners[1] - corners[2] + corners[3] <= 0
        best = np.zeros(rows, np.int64)  # counted from the other end if it falls
        for step in 1 << np.arange((rows - 1).bit_length(), -1, -1):
            i = np.arange(step - 1, rows, 2 * step)
            if not len(i):
                continue
            low = np.where(i >= step, best[np.maximum(i - step, 0)], 0)
            high = np.where(i + step < rows, best[np.minimum(i + step, rows - 1)], columns - 1)
            count = high - low + 1
            ends = np.cumsum(count)
            t = np.arange(ends[-1]) - np.repeat(ends - count - low, count)
            j, line = t if rising else columns - 1 - t, np.repeat(i, count)
            value = b[j] - self.scores(line, j)
            top = np.repeat(np.maximum.reduceat(value, ends - count), count)
            tops = np.flatnonzero(value == top)
            best[i] = t[tops[np.unique(line[tops], return_index=True)[1]]]
        return np.arange(rows), best if rising else columns - 1 - best

    def _of_all(self, a: Array, b: Array) -> tuple[Places, Places]:
        """The best j of every i, from all tables."""
        rows, columns = len(self.tp), len(self.fp)
        best = np.zeros(rows, np.int64)
        at_once = max(1, AT_ONCE // columns)
        for begin in range(0, rows, at_once):
            i = np.arange(begin, min(begin + at_once, rows))
            best[i] = (b - self.scores(*np.ix_(i, np.arange(columns)))).argmax(1)
        return np.arange(rows), best


def _looks(count: int) -> Places:
    """Some of so many places: both ends, their neighbours, and others evenly."""
    spread = np.linspace(0, count - 1, LOOKS).round().astype(np.int64)
    near = np.array([1, 2, count - 3, count - 2])
    return np.unique(np.concatenate([spread, near]).clip(0, count - 1))

"""How sure we are of a cut: an interval for the score it has in the population, and the cuts that are as good."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.inputs import Vector
from fbeta.decisions.problem import Problem
from fbeta.decisions.steps import Steps, score_cells
from fbeta.metrics import Confusion, Metric

#: About so many cuts are remembered, enough to see how the argmax moves.
KNOTS = 1000
DRAWS, RESAMPLES = 4000, 200


@dataclass(frozen=True)
class Interval:
    """`score`: where the population score of the chosen cut lies, with probability `level`. `cut`: near-optimal cuts.

    A cut is near-optimal if its score is within one standard error of the chosen one's.

    Shape: two numbers each; for several columns tuned one by one `cut` holds two arrays ``(K,)``.

    >>> Interval(score=(0.7, 0.8), cut=(0.2, 0.4)).level
    0.95
    """

    score: tuple[float, float]
    cut: tuple[Any, Any]
    level: float = 0.95


@dataclass(frozen=True)
class Evidence:
    """The rows behind a cut, in about `KNOTS` steps at most, and the interval that follows from them.

    Given the cut, the four cells are multinomial: with Jeffreys' prior their posterior is Dirichlet(counts + ½), and
    the metric of its draws has good coverage with few positives, at 0 and at 1. But the cut was chosen on the same
    rows, which flatters it: a bootstrap that chooses again estimates by how much, o = E[M*(c*) − M(c*)], and the
    interval moves down by o times `follows`, the share of the cut that comes from the targets. The upper end moves only
    by what exceeds the step from the score to the mean of the draws, which says the same twice. With weights a cell
    counts for Σw · Σw / Σw² rows. Reference: [efron1983], [brown2001]
    """

    steps: Steps
    cuts: Vector
    metric: Metric
    index: int
    follows: float
    allowed: NDArray[np.bool_]
    prevalence: float | None

    @classmethod
    def of(cls, problem: Problem, index: int, follows: float) -> Self:
        """Keep the chosen cut, and some that divide positives and negatives into equal parts."""
        steps = problem.observed
        knots = steps.knots(KNOTS, index)
        kept, place = steps.at_knots(knots), int(np.searchsorted(knots, index))
        allowed = np.ones(knots.size, dtype=bool) if problem.allowed is None else problem.allowed[knots]
        return cls(kept, steps.cuts_at(knots), problem.metric, place, follows, allowed, problem.prevalence)

    def at(self, cut: float) -> tuple[Confusion, int]:
        """Cells and rows called positive at another cut, to within one of the steps."""
        i = self.steps.index(self.steps.snap(cut))
        return Confusion(*map(float, self.steps.confusion(i))), int(self.steps.called[i])

    def optimism(self) -> float:
        """How much better a cut looks on the rows that chose it than it is."""
        if self.follows == 0:
            return 0.0
        steps, rng = self.steps, np.random.default_rng(0)
        mass = np.concatenate([np.diff(steps.tp), np.diff(steps.fp)]) * steps.rows_per_weight
        again = rng.poisson(mass, (RESAMPLES, mass.size)).astype(np.float64)
        again *= (mass.sum() / np.maximum(again.sum(1, keepdims=True), 1.0)) / steps.rows_per_weight
        tp, fp = (
            first + np.pad(np.cumsum(x, axis=1), ((0, 0), (1, 0)))
            for first, x in zip((steps.tp[0], steps.fp[0]), np.split(again, 2, axis=1), strict=True)
        )
        # What other columns miss stays missed.
        n1, n0 = steps.positives - steps.tp[-1], steps.negatives - steps.fp[-1]
        seen = self._scores(tp, fp, tp[:, -1:] - tp + n1, fp[:, -1:] - fp + n0)
        true = self._scores(*steps.confusion())
        seen = np.where(self.allowed & ~np.isnan(seen), seen, -np.inf)
        best = np.argmax(seen, axis=1)
        with np.errstate(invalid="ignore"):  # a user's formula may be infinite; such gaps are left out
            gaps = seen[np.arange(RESAMPLES), best] - true[best]
        gaps = gaps[np.isfinite(gaps)]
        return self.follows * max(0.0, float(gaps.mean())) if gaps.size else 0.0

    def interval(self, level: float = 0.95, optimism: float | None = None) -> Interval:
        """Both intervals."""
        cells = np.array(list(self.steps.confusion(self.index))) * self.steps.rows_per_weight
        shares = np.random.default_rng(0).dirichlet(cells + 0.5, DRAWS).T
        draws = self._scores(*(shares * self._total))
        draws = draws[np.isfinite(draws)]
        values = self._scores(*self.steps.confusion())
        chosen = float(values[self.index])
        near = self.allowed & (values >= chosen - (float(np.std(draws)) if draws.size else 0.0))
        near[self.index] = True
        found = np.flatnonzero(near)
        cuts = (float(self.cuts[found[-1]]), float(self.cuts[found[0]]))
        worst, best = self._corners()
        if not draws.size:  # a user's formula that is no number near the cut says nothing about its score
            return Interval((worst, best), cuts, level)
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
        flattery = self.optimism() if optimism is None else optimism
        twice = max(0.0, chosen - float(np.mean(draws)))
        ends = (low - flattery, high - max(0.0, flattery - twice))
        return Interval((max(float(ends[0]), worst), min(float(ends[1]), best)), cuts, level)

    @property
    def _total(self) -> float:
        return self.steps.positives + self.steps.negatives

    def _corners(self) -> tuple[float, float]:
        """The metric with everything wrong and everything right: no interval leaves these."""
        n1, n0 = self.steps.positives, self.steps.negatives
        worst, best = float(self._scores(0.0, n0, n1, 0.0)), float(self._scores(n1, 0.0, 0.0, n0))
        return (worst, best) if worst < best else (-np.inf, np.inf)

    def _scores(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Vector:
        c = Confusion(*map(np.asarray, (tp, fp, fn, tn)))
        if self.prevalence is not None:
            c = Confusion(*(x * self._total for x in c.at_prevalence(self.prevalence)))
        return score_cells(self.metric, c)

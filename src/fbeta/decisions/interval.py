"""How sure we are of a cut: an interval for the score it has in the population, and the cuts that are as good."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.abstention import decided
from fbeta.decisions.inputs import Vector
from fbeta.decisions.problem import Problem
from fbeta.decisions.steps import Binned, Steps, score_cells
from fbeta.metrics import Confusion, Metric, divide

#: About so many cuts are remembered, enough to see how the argmax moves.
KNOTS = 1000
DRAWS, RESAMPLES = 4000, 200
#: How often groups of rows are drawn again.
REPEATS = 1000


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

    Given the cut, the hits among n₁ positives and the false alarms among n₀ negatives are binomial, and so is n₁ among
    all rows: with Jeffreys' prior the rates are Beta(count + ½, rest + ½), and the metric of their draws has good
    coverage with few positives, at 0 and at 1. With weights, a class counts for Σw · Σw / Σw² rows. But the cut was
    chosen on the same rows, so it looks better there than it is: a bootstrap that chooses again estimates by how much,
    o = E[M*(c*) − M(c*)], and the interval moves down by o times `follows`, the share of the cut that comes from the
    targets. The upper end moves only by what exceeds the step from the score to the mean of the draws, which says the
    same twice. An interval ends where the metric does, and always holds the score itself.
    Reference: [efron1983], [brown2001], [kish1965]
    """

    steps: Steps
    cuts: Vector
    metric: Metric
    index: int
    follows: float
    allowed: NDArray[np.bool_]
    prevalence: float | None
    #: For each cut the one below which rows are negative, by number: rows between the two are not decided.
    lows: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, problem: Problem, index: int, follows: float, parts: int = KNOTS, low: int | None = None) -> Self:
        """Keep the chosen cut (or two), and some that divide positives and negatives into equal parts."""
        steps, lows = problem.observed, None
        knots = steps.knots(parts, index, index if low is None else low)
        kept, place = steps.at_knots(knots), int(np.searchsorted(knots, index))
        allowed = problem.allowed if problem.ends is None else problem.ends.high
        allowed = np.ones(knots.size, dtype=bool) if allowed is None else allowed[knots]
        if low is not None:  # as many rows are handed over below each cut
            asked = steps.called[low] - steps.called[index]
            lows = np.searchsorted(kept.called, kept.called + asked, side="right") - 1
            lows[place] = np.searchsorted(knots, low)
        return cls(kept, steps.cuts_at(knots), problem.metric, place, follows, allowed, problem.prevalence, lows)

    def at(self, cut: float) -> tuple[Confusion, int]:
        """Cells and rows called positive at another cut, to within one of the steps."""
        i = self.steps.index(self.steps.snap(cut))
        return Confusion(*map(float, self.steps.confusion(i))), int(self.steps.called[i])

    def parts(self, count: int) -> Binned:
        """The rows in about so many parts, each of which ends at a cut."""
        knots = self.steps.knots(count + 1)
        kept = self.steps.at_knots(knots)
        about = kept.rows_per_weight, kept.dtype, kept.kind, kept.totals
        return Binned(kept.scores, kept.tp, kept.fp, kept.called, *about, ends=self.cuts[knots[1:]])

    def optimism(self) -> float:
        """How much better a cut looks on the rows that chose it than it is."""
        if self.follows == 0:
            return 0.0
        best, seen = self.choices()
        with np.errstate(invalid="ignore"):  # a user's formula may be infinite; such gaps are left out
            gaps = seen - self._scores(*self._cells())[best]
        gaps = gaps[np.isfinite(gaps)]
        return self.follows * max(0.0, float(gaps.mean())) if gaps.size else 0.0

    def choices(self) -> tuple[NDArray[np.intp], Vector]:
        """The best cut for each of many draws of the rows, and its score on that draw. Shape: ``(RESAMPLES,)``."""
        steps, rng = self.steps, np.random.default_rng(0)
        tp, fp = (
            first[0] + np.pad(np.cumsum(rng.poisson(mass * rows, (RESAMPLES, mass.size)) / rows, 1), ((0, 0), (1, 0)))
            for first, mass, rows in zip(
                (steps.tp, steps.fp), (np.diff(steps.tp), np.diff(steps.fp)), steps.rows_per_weight, strict=True
            )
        )
        # What other columns miss stays missed.
        n1, n0 = steps.positives - steps.tp[-1], steps.negatives - steps.fp[-1]
        lows = slice(None) if self.lows is None else self.lows
        cells = tp, fp, tp[:, -1:] - tp[:, lows] + n1, fp[:, -1:] - fp[:, lows] + n0
        total = tp[:, -1:] + fp[:, -1:] + n1 + n0
        seen = self._scores(*(x * divide(self._total, total) for x in cells))
        seen = np.where(self.allowed & ~np.isnan(seen), seen, -np.inf)
        best = np.argmax(seen, axis=1)
        return best, seen[np.arange(RESAMPLES), best]

    def interval(self, level: float = 0.95, optimism: float | None = None) -> Interval:
        """Both intervals."""
        draws = self._scores(*self._drawn_cells())
        draws = draws[np.isfinite(draws)]
        values = self._scores(*self._cells())
        chosen = float(values[self.index])
        near = self.allowed & (values >= chosen - (float(np.std(draws)) if draws.size else 0.0))
        near[self.index] = True
        found = np.flatnonzero(near)
        cuts = (float(self.cuts[found[-1]]), float(self.cuts[found[0]]))
        worst, best = self._corners()
        if not draws.size:  # a user's formula that is no number near the cut says nothing about its score
            return Interval((worst, best), cuts, level)
        low, high = map(float, np.quantile(draws, [(1 - level) / 2, (1 + level) / 2]))
        better = self.optimism() if optimism is None else optimism
        twice = max(0.0, chosen - float(np.mean(draws)))
        low, high = max(low - better, worst), min(high - max(0.0, better - twice), best)
        return Interval((min(low, chosen), max(high, chosen)), cuts, level)

    def _cells(self) -> Confusion:
        """The cells of the rows that are decided, at every cut."""
        places = np.arange(self.cuts.size)
        return decided(self.steps, places, places if self.lows is None else self.lows)

    def _drawn_cells(self) -> Confusion:
        """The four cells at the chosen cut, drawn from their posterior."""
        steps, rng = self.steps, np.random.default_rng(0)
        (hits, misses), n1, n0 = steps.rows_per_weight, steps.positives, steps.negatives
        c = steps.confusion(self.index)
        tpr = rng.beta(c.tp * hits + 0.5, c.fn * hits + 0.5, DRAWS)
        fpr = rng.beta(c.fp * misses + 0.5, c.tn * misses + 0.5, DRAWS)
        # n₁ and n₀ vary with the weights of both classes: so many rows without weights say as much about their share.
        rows = divide(self._total, n0 / hits + n1 / misses)
        rate = rng.beta(n1 * rows + 1, n0 * rows + 1, DRAWS)
        drawn = Confusion(*(x * self._total for x in Confusion.from_rates(fpr, tpr, rate)))
        if self.lows is None:
            return drawn
        low = steps.confusion(self.lows[self.index])  # of those that are not called, some are handed over
        fn = rng.beta(low.fn * hits + 0.5, (c.fn - low.fn) * hits + 0.5, DRAWS)
        tn = rng.beta(low.tn * misses + 0.5, (c.tn - low.tn) * misses + 0.5, DRAWS)
        return Confusion(drawn.tp, drawn.fp, fn * drawn.fn, tn * drawn.tn)

    @property
    def _total(self) -> float:
        return self.steps.positives + self.steps.negatives

    def _corners(self) -> tuple[float, float]:
        """The metric with everything wrong and everything right: no interval leaves these."""
        n1, n0 = self.steps.positives, self.steps.negatives
        worst, best = float(self._scores(0.0, n0, n1, 0.0)), float(self._scores(n1, 0.0, 0.0, n0))
        return (worst, best) if worst < best else (-np.inf, np.inf)

    def _moved(self, c: Confusion, prevalence: float) -> Confusion:
        """Shares of rows where positives have another share."""
        if self.lows is None:
            return c.at_prevalence(prevalence)
        hit, miss = prevalence / self.steps.positives, (1 - prevalence) / self.steps.negatives
        return Confusion(c.tp * hit, c.fp * miss, c.fn * hit, c.tn * miss)

    def _scores(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Vector:
        c = Confusion(*map(np.asarray, (tp, fp, fn, tn)))
        if self.prevalence is not None:
            c = Confusion(*(x * self._total for x in self._moved(c, self.prevalence)))
        return score_cells(self.metric, c)


@dataclass(frozen=True)
class RowEvidence:
    """Row scores behind a common cut: their sums over groups of rows at some cuts, and the groups' weights.

    Rows are what is drawn again, by a Bayesian bootstrap of groups of rows (with up to 200 rows each is a group). One
    row more, half at the worst and half at the best score, keeps rows that are all alike from being certain. Draws that
    choose again say how much better the cut looks than it is; the lower end moves down by that.

    `ends`: the worst and the best score of a row.

    Shape: `sums` ``(G, m)``, `weight` ``(G,)``, `cuts` ``(m,)``. Reference: [rubin1981]
    """

    sums: NDArray[np.float64]
    weight: Vector
    cuts: Vector
    index: int
    ends: tuple[float, float]

    def interval(self, level: float = 0.95) -> Interval:
        """For the mean row score of the chosen cut; and cuts within one standard error of the best."""
        means, rng = self.sums.sum(0) / self.weight.sum(), np.random.default_rng(0)
        shares = rng.exponential(size=(REPEATS, len(self.weight)))
        extra = rng.gamma(0.5, self.weight.mean(), size=(REPEATS, 2))
        total, sums = shares @ self.weight, shares @ self.sums
        drawn = (sums[:, self.index] + extra @ np.array(self.ends)) / (total + extra.sum(1))
        chosen, best = float(means[self.index]), sums.argmax(1)
        # Few groups say little of how much they vary: wider, as Student's t is.
        freedom = max(len(self.weight) - 1, 1)
        drawn = chosen + (drawn - chosen) * np.sqrt((freedom + 1) / rng.chisquare(freedom, REPEATS))
        better = max(0.0, float(np.mean(sums[np.arange(REPEATS), best] / total - means[best])))
        low, high = map(float, np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]))
        near = np.flatnonzero(means >= chosen - np.std(drawn))
        cuts = float(self.cuts[near[-1]]), float(self.cuts[near[0]])
        return Interval((min(max(low - better, self.ends[0]), chosen), max(high, chosen)), cuts, level)

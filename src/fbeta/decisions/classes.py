"""One class of many: what it is worth to the metric to call each class."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fbeta.decisions.class_scores import cells_of, check_size, class_shares, prices_of
from fbeta.decisions.class_steps import ClassSteps
from fbeta.decisions.inputs import Vector
from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.rules import Constant, Exact, Plugin, Shrunk, as_rule
from fbeta.decisions.steps import Steps, score_cells
from fbeta.metrics import Metric

#: Steps from the largest probability towards the metric's own calls; the best step counts.
STEPS = 20


@dataclass(frozen=True)
class Gains:
    r"""The value of calling class j, of which the largest is called.

    .. math:: v_j = \sum_i p_i G_{ij} - b_j

    An average of F_β has a gain per class, v = a·p − b; minus a cost matrix is a gain of each class for each call; ones
    and an offset of 0 are the most probable class.

    Shape: `gain` ``(K,)``, or ``(K, K)`` with true classes as rows; `offset` ``(K,)``.
    """

    gain: Vector
    offset: Vector

    @classmethod
    def flat(cls, classes: int) -> "Gains":
        """The most probable class."""
        return cls(np.ones(classes), np.zeros(classes))

    def __call__(self, p: Vector) -> Vector:
        """Values of all calls."""
        found: Vector = (p * self.gain if self.gain.ndim == 1 else p @ self.gain) - self.offset
        return found

    def mixed(self, other: "Gains", share: Vector | float) -> "Gains":
        """A share of these and the rest of the others."""
        gain = share * self.gain + (1 - share) * other.gain
        return Gains(gain, share * self.offset + (1 - share) * other.offset)


def gains_by_rule(
    p: Vector, target: Vector, metric: Metric, weight: Vector | None, rule: Any, average: str = "macro"
) -> list[Gains]:
    """Gains for the average of a metric over classes that exclude each other: those of a rule last, safer ones before.

    A cut for each class on its own is not the best decision among classes: one row has one call. `rule`:

    - "plugin": the slopes of the metric at the counts that the probabilities lead us to expect;
    - "shrunk": between these and the slopes at the counts of the rows, by the number of rows of each class;
    - "exact": from both and from the most probable class offsets move, one class at a time, until the score on the rows
      rises no more, see `ClassSteps`; the best of the three. It is the best on the rows, and seldom on others;
    - "constant": the most probable class.

    Another rule gives each class its cut, and the class furthest above its own is called. For a cost matrix the call of
    least expected cost is best by any rule but "constant". Reference: [narasimhan2015]

    Shape: `p` (rows sum to 1) and `target` ``(n, K)``, `weight` ``(n,)``.
    """
    chosen, flat = as_rule(rule), Gains.flat(p.shape[1])
    prices = prices_of(metric)
    if prices is not None:
        check_size(prices, p.shape[1])
    if isinstance(chosen, Constant):
        return [flat]
    if prices is not None:
        return [Gains(-prices, flat.offset)]
    if isinstance(chosen, Exact | Shrunk):
        expected = _climb(p, p, metric, weight, average)
        if isinstance(chosen, Plugin):
            return [flat, expected]
        observed = _climb(p, target, metric, weight, average)
        if isinstance(chosen, Shrunk):
            share = np.array([chosen.weight_of_exact(n) for n in target.sum(0)])
            return [flat, observed.mixed(expected, share)]
        steps = ClassSteps.of(target, weight, metric, average)
        found = [(start, *steps.climb(start(p))) for start in (flat, expected, observed)]
        start, shifts, _ = max(found, key=lambda each: each[2])
        return [Gains(start.gain, start.offset - shifts)]
    columns = (Steps.of(*each, weight, kind="probability") for each in zip(p.T, target.T, strict=True))
    cuts = [chosen.choose(Problem.read(column, metric, Constraints())) for column in columns]
    return [flat, Gains(flat.gain, np.clip(cuts, -1.0, 2.0))]


def best_gains(p: Vector, target: Vector, metric: Metric, weight: Vector | None, rule: Any) -> Gains:
    """The gains of a rule, see `gains_by_rule`."""
    return gains_by_rule(p, target, metric, weight, rule)[-1]


def _climb(p: Vector, target: Vector, metric: Metric, weight: Vector | None, average: str) -> Gains:
    """Slopes give calls, calls counts, counts slopes; damped, since for some metrics that swings."""
    here, best, top = Gains.flat(p.shape[1]), None, -np.inf
    weighed = target.T if weight is None else target.T * weight
    share = class_shares(average, weighed.sum(1))
    for step in range(STEPS):
        called = here(p).argmax(1)
        at = cells_of(np.stack([np.bincount(called, column, p.shape[1]) for column in weighed]))
        score = float(share @ score_cells(metric, at))
        if best is None or score > top + 1e-12:
            best, top = here, score
        with np.errstate(divide="ignore", invalid="ignore"):
            g1, g0 = (share * np.asarray(g, dtype=np.float64) for g in metric.gains(at))
        sound = np.isfinite(g1 + g0) & (g1 + g0 > 0)
        if not sound.any():
            break
        # Only differences between classes count, so the scale is free; a class without a slope keeps its place.
        scale = (g1 + g0)[sound].mean()
        gain, offset = np.where(sound, (g1 + g0) / scale, here.gain), np.where(sound, g0 / scale, here.offset)
        here = here.mixed(Gains(gain, offset), 0.5 if step else 0.0)
    assert best is not None
    return best

"""The rule "pooled": cuts of several columns, each drawn to what the others show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fbeta.decisions.calibration import Calibrator
from fbeta.decisions.inputs import Vector
from fbeta.decisions.interval import Evidence
from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.rules.plugin import Plugin
from fbeta.decisions.rules.shrunk import Shrunk, cut_at, positions
from fbeta.decisions.shared_calibration import calibrate_together
from fbeta.decisions.steps import Steps
from fbeta.decisions.threshold import Threshold

#: Where a column's best cut lies, and how surely, is found on so many parts of its rows.
PARTS = 256
#: Variances between columns that are tried, in units of what is there to explain.
BETWEEN = np.append(0.0, np.geomspace(1e-4, 1e2, 61))
#: No column is surer of its cut than this share of what is there to explain.
SUREST = 1e-3


@dataclass(frozen=True)
class Pooled(Shrunk):
    r"""Several columns borrow from each other: each cut is drawn to where the others let us expect it.

    .. math:: x_k = w_k \hat x_k + (1 - w_k) (\alpha + \beta p_k), \qquad w_k = \frac{\tau^2}{\tau^2 + v_k}

    x is the logit of a probability, and the score itself for logits and other scores. x̂ is the best cut of the column,
    its mean over draws of the rows, v its variance over them, p the plug-in cut. α, β and the variance τ² between
    columns are those that make all columns most likely (the model of Fay and Herriot, where the plug-in as it is,
    α = 0 and β = 1, counts as one column more): each own cut (τ² = ∞), the plug-in (τ² = α = 0, β = 1) and one common
    cut (τ² = β = 0) are its special cases. So scores of all columns must mean alike: give probabilities or logits,
    or scores of one model.

    A column of one class only is cut at the mean place of the others, with a warning. Where there are no two columns
    of both classes, for the pooled counts (micro) and for classes that exclude each other it is "shrunk", and so are
    its options.

    >>> from fbeta import tune
    >>> s = [[0.9, 0.8], [0.8, 0.3], [0.3, 0.4], [0.1, 0.2]]
    >>> tune(s, [[1, 1], [1, 0], [0, 1], [0, 0]], "f1", rule="pooled", kind="probability").n_positive
    4

    Reference: [fay1979], [kass1995]
    """

    def thresholds(self, problems: Sequence[Problem]) -> list[Threshold]:
        """The cuts of all columns, seen together."""
        both = [k for k, p in enumerate(problems) if p.observed.positives > 0 and p.observed.negatives > 0]
        if len(both) < 2:
            return super().thresholds(problems)
        found, weight = draw_together(*np.transpose([self._seen(problems[k]) for k in both]))
        places, follows = np.full(len(problems), found.mean()), np.zeros(len(problems))
        places[both], follows[both] = found, weight
        each = zip(problems, places.tolist(), follows.tolist(), strict=True)
        cuts = [self.threshold(p, self._allowed(p, cut_at(p.steps, x)), w) for p, x, w in each]
        for k in set(range(len(cuts))) - set(both):
            cuts[k] = replace(cuts[k], warning=f"{cuts[k].warning} Its cut is the mean of the other columns' cuts.")
        return cuts

    def calibrations(self, columns: Iterable[Steps]) -> list[Calibrator]:
        """Columns with few rows of a class share a line."""
        return calibrate_together(columns)

    def _seen(self, problem: Problem) -> tuple[float, float, float]:
        """Where the best cut of a column lies, how that varies with the rows, and the place of the plug-in."""
        evidence = Evidence.of(problem, 0, 1.0, PARTS)
        drawn = positions(problem.steps, evidence.cuts[evidence.choices()[0]])
        parts = Problem.read(evidence.parts(PARTS), problem.metric, Constraints(), problem.prevalence)
        plugin = Plugin(self.calibrate).choose(replace(parts, allowed=evidence.allowed))
        return float(drawn.mean()), float(drawn.var()), float(positions(problem.steps, np.array(plugin)))


def draw_together(own: Vector, variance: Vector, expected: Vector) -> tuple[Vector, Vector]:
    """Estimates drawn to what the others let us expect, and the weight that each one's own keeps.

    Shape: all ``(K,)``.
    """
    columns, apart = len(own), own - expected
    scale = float(np.mean(apart**2 + variance))
    if scale == 0:
        return own, np.ones(columns)
    variance = np.maximum(variance, SUREST * scale)
    design = np.stack([np.ones(columns), expected - expected.mean()], axis=1)
    fitted = columns / (columns + 1)  # the prior counts as one column more
    most = -np.inf
    for between in scale * BETWEEN:
        precision = 1 / (between + variance)
        root = np.sqrt(precision)
        line = design @ np.linalg.lstsq(design * root[:, None], apart * root, rcond=None)[0]
        likelihood = np.log(precision).sum() - precision @ (apart**2 - fitted * line**2)
        if likelihood > most:
            most, common, weight = likelihood, expected + fitted * line, between * precision
    return weight * own + (1 - weight) * common, weight

"""The rule "shrunk": between the exact cut and the plug-in."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fbeta.decisions.calibration import logit, sigmoid
from fbeta.decisions.inputs import Vector
from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.rules.exact import Exact
from fbeta.decisions.rules.plugin import Plugin
from fbeta.decisions.rules.rule import Rule
from fbeta.decisions.steps import Steps

#: The smallest probability that a finite cut is told apart from 0 at.
TINY = 1e-300


@dataclass(frozen=True)
class Shrunk(Rule):
    r"""Between the exact cut and the plug-in, in logit: the exact one weighs more, the more positives there are.

    .. math:: x = w\,x_{\text{exact}} + (1 - w)\,x_{\text{plugin}}, \qquad
              w = \frac12 + \frac12 \cdot \frac{n_1}{n_1 + h}

    x is the logit of a probability, and the score itself for logits and other scores. The argmax of few positives
    varies, the plug-in is biased; halfway there is little of either. The plug-in never outweighs the exact cut,
    because its calibration comes from the same few positives.

    `half`: h, the number of positives at which w has come halfway from ½ to 1. Chosen by `benchmarks/cuts.py`, where
    anything from 100 to 800 does as well. `calibrate`: as in `Plugin`.

    >>> from fbeta import tune
    >>> tune([0.9, 0.8, 0.3], [1, 0, 0], "f1", rule="shrunk", kind="probability").rule
    'shrunk'
    """

    half: float = 200.0
    calibrate: bool = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.half) and self.half >= 0):
            raise ValueError(f"half of shrunk is a number of positives from 0; got {self.half!r}.")

    def choose(self, problem: Problem) -> float:
        """The mean of two cuts."""
        exact, plugin = Exact().choose(problem), Plugin(self.calibrate).choose(problem)
        return self._allowed(problem, self._between(problem, exact, plugin))

    def choose_together(self, problems: Sequence[Problem], constraints: Constraints) -> list[float]:
        """The means of the cuts that are best together and those expected to be; constraints are not pooled."""
        if constraints:
            raise ValueError("Cuts between two that meet pooled constraints may not; use rule='exact'.")
        exact = Exact().choose_together(problems, constraints)
        plugin = Plugin(self.calibrate).choose_together(problems, constraints)
        return [self._between(*each) for each in zip(problems, exact, plugin, strict=True)]

    def counts(self, problem: Problem) -> Steps:
        """Between the counts of the rows and those that probabilities lead us to expect."""
        seen, expected, w = problem.steps, Plugin(self.calibrate).counts(problem), self.follows(problem)
        return replace(seen, tp=w * seen.tp + (1 - w) * expected.tp, fp=w * seen.fp + (1 - w) * expected.fp)

    def follows(self, problem: Problem) -> float:
        """The weight of the exact cut."""
        return self.weight_of_exact(problem.observed.positive_rows)

    def weight_of_exact(self, positives: float) -> float:
        """w for so many positives."""
        total = positives + self.half
        return 0.5 + 0.5 * (positives / total if total > 0 else 1.0)

    def _allowed(self, problem: Problem, cut: float) -> float:
        """Between cuts that meet the constraints there may be one that does not: take the nearest that does."""
        steps, cut = problem.steps, problem.steps.snap(cut)
        if problem.allowed is None or problem.allowed[steps.index(cut)]:
            return cut
        meets = np.flatnonzero(problem.allowed)
        return steps.cut(int(meets[np.argmin(np.abs(meets - steps.index(cut)))]))

    def _between(self, problem: Problem, exact: float, plugin: float) -> float:
        if exact == plugin:
            return exact
        w = self.follows(problem)
        return cut_at(problem.steps, float(positions(problem.steps, np.array([exact, plugin])) @ [w, 1 - w]))


def positions(steps: Steps, cuts: Vector) -> Vector:
    """Where cuts lie, so that a mean of them makes sense: their log odds, or scores that are no probabilities."""
    # 'All' and 'none' are infinitely far away: the outermost scores stand in for them.
    ends: Vector = np.clip(cuts, steps.scores[-1], steps.scores[0])
    found: Vector = np.where(np.isinf(cuts), logit(ends), logit(ends, TINY)) if steps.kind == "probability" else ends
    return found


def cut_at(steps: Steps, position: float) -> float:
    """The cut that lies there."""
    return float(sigmoid(position)) if steps.kind == "probability" else position

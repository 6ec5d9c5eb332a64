"""The rule "plugin": the best cut that calibrated probabilities lead us to expect."""

from dataclasses import dataclass

import numpy as np

from fbeta.decisions.calibration import MARGIN
from fbeta.decisions.calibration_choice import calibrate
from fbeta.decisions.interval import Evidence
from fbeta.decisions.problem import Problem
from fbeta.decisions.rules.exact import Exact
from fbeta.decisions.steps import Steps, score_cells


@dataclass(frozen=True)
class Plugin(Exact):
    r"""The best cut of the metric that calibrated probabilities lead us to expect.

    .. math:: \hat c = \arg\max_c M(\mathbb E\,\text{counts}), \qquad \mathbb E\,TP = \sum_{s_i \ge c} p_i,\quad
              \mathbb E\,FP = \sum_{s_i \ge c} (1 - p_i)

    Targets enter only through the calibration, so it varies little; it is as wrong as the probabilities are. Where it
    is no better on the rows than calling nothing, or everything, and the best cut on them is better by more than
    the optimism of choosing it (by the bootstrap of the interval), that one is taken.
    `calibrate`: whether p comes from a calibration of (scores, target), see `calibrate`, or is the score itself.

    >>> from fbeta import tune
    >>> tune([0.9, 0.8, 0.3], [1, 0, 0], "f1", rule="plugin", kind="probability").rule
    'plugin'

    Reference: [ye2012]
    """

    needs_kind = True  # it is calibrated

    calibrate: bool = True

    def counts(self, problem: Problem) -> Steps:
        """What the probabilities lead us to count."""
        observed = problem.observed
        if not self.calibrate and observed.kind != "probability":
            raise ValueError(
                f"calibrate=False takes the scores for probabilities, and they are of kind {observed.kind!r}; leave it "
                "out, or hand in probabilities with kind='probability'."
            )
        p = calibrate(observed)(observed.scores) if self.calibrate else observed.scores
        expected = observed.expected(np.clip(p, MARGIN, 1 - MARGIN))
        return expected if problem.prevalence is None else expected.at_prevalence(problem.prevalence)

    def choose(self, problem: Problem) -> float:
        """The argmax; but nothing that is no better than all or none against the evidence of the rows."""
        cut, steps = super().choose(problem), problem.steps
        best = problem.best(steps)
        places = np.array([best, steps.index(steps.snap(cut)), 0, steps.scores.size])
        better, here, *ends = score_cells(problem.metric, steps.confusion(places))
        if here > max(ends) or better - here <= Evidence.of(problem, best, 1.0).optimism():
            return cut
        return steps.cut(best)

    def follows(self, problem: Problem) -> float:
        """Not at all: the few numbers of a calibration hardly make a cut optimistic."""
        return 0.0

"""The rule "exact": the best cut on the rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from fbeta.decisions.pooling import pool
from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.rules.rule import Rule
from fbeta.decisions.steps import Steps


@dataclass(frozen=True)
class Exact(Rule):
    r"""The best cut on the rows: every distinct score is tried.

    .. math:: \hat c = \arg\max_c M(\text{counts of } s \ge c)

    It has no bias, but with few positives the argmax varies a lot.

    >>> from fbeta import tune
    >>> tune([0.9, 0.8, 0.3], [1, 0, 0], "f1", rule="exact").value
    0.8500000000000001

    Reference: [lipton2014]
    """

    needs_kind = False  # only the order of the scores counts

    def counts(self, problem: Problem) -> Steps:
        """The counts whose best cut is sought."""
        return problem.steps

    def choose(self, problem: Problem) -> float:
        """The argmax."""
        return problem.steps.cut(problem.best(self.counts(problem)))

    def choose_together(self, problems: Sequence[Problem], constraints: Constraints) -> list[float]:
        """The argmax over all columns; constraints hold for these counts."""
        columns = [self.counts(p) for p in problems]
        best = pool(columns, problems[0].metric, constraints)
        return [c.cut(i) for c, i in zip(columns, best, strict=True)]

"""The rule "constant": a cut that does not look at the rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fbeta.decisions.problem import Constraints, Problem
from fbeta.decisions.rules.rule import Rule
from fbeta.decisions.steps import Steps

#: Where a model itself would cut its scores.
USUAL = {"probability": 0.5, "logit": 0.0}


@dataclass(frozen=True)
class Constant(Rule):
    """A cut that does not look at the rows: `at`, or ½ for probabilities and 0 for logits.

    >>> from fbeta import tune
    >>> tune([0.9, 0.8, 0.3], [1, 0, 0], "f1", rule="constant:at=0.7").value
    0.7
    """

    at: float | None = None

    def __post_init__(self) -> None:
        if self.at is not None and np.isnan(self.at):
            raise ValueError("The constant cut is NaN; give a number, or ±inf for none or all.")

    def choose(self, problem: Problem) -> float:
        """The constant."""
        if self.at is None and problem.steps.kind not in USUAL:
            raise ValueError(
                "Scores that are neither probabilities nor logits have no usual cut; name one, as rule='constant:at=3'."
            )
        cut = problem.steps.snap(USUAL[problem.steps.kind] if self.at is None else self.at)
        if problem.allowed is not None and not problem.allowed[problem.steps.index(cut)]:
            raise ValueError(
                f"The constant cut {cut:g} does not meet the constraints; use rule='exact', which looks for one."
            )
        return float(cut)

    def choose_together(self, problems: Sequence[Problem], constraints: Constraints) -> list[float]:
        """The same for every column."""
        if constraints:
            raise ValueError("Constant cuts cannot be made to meet constraints; use rule='exact'.")
        return [self.choose(p) for p in problems]

    def counts(self, problem: Problem) -> Steps:
        """None: a constant cut looks at no rows."""
        raise ValueError(
            "A constant cut looks at no rows, so it cannot say which a person should decide; use 'shrunk'."
        )

    def follows(self, problem: Problem) -> float:
        """Not at all."""
        return 0.0

    @property
    def needs_kind(self) -> bool:
        """Only where no cut was given."""
        return self.at is None

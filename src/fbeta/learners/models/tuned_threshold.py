"""scikit-learn's TunedThresholdClassifierCV, as it ships."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from fbeta.decisions.steps import score_cells
from fbeta.learners.decided import DecidingLearner
from fbeta.learners.learner import Goal
from fbeta.metrics import Confusion


@dataclass(frozen=True)
class TunedThreshold(DecidingLearner):
    """Logistic regression in scikit-learn's `TunedThresholdClassifierCV`, with the metric as its scoring.

    It chooses among 100 cuts by folds of its own, and what it decides is what is judged: its scores are its decisions.
    """

    name, package = "tuned-threshold", "sklearn"
    unweighted = "TunedThresholdClassifierCV takes weights of rows only by metadata routing"

    C: float = 1.0

    def decider(self, X: Any, y: NDArray[Any], goal: Goal, seed: int) -> Any:
        """Fit and tune."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import make_scorer
        from sklearn.model_selection import TunedThresholdClassifierCV

        def score(truth: NDArray[Any], called: NDArray[Any]) -> float:
            return float(score_cells(goal.metric, Confusion.from_predictions(called * 1.0, truth)))

        model = LogisticRegression(C=self.C, max_iter=1000)
        return TunedThresholdClassifierCV(model, scoring=make_scorer(score), random_state=seed).fit(X, y)

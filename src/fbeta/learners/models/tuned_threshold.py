"""scikit-learn's TunedThresholdClassifierCV, as it ships."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.steps import score_cells
from fbeta.learners.crossfit import Array
from fbeta.learners.learner import Fitted, Goal, Learner, Rows, Tick
from fbeta.metrics import Confusion


@dataclass(frozen=True, eq=False)
class DecidedRows:
    """A classifier whose scores are its decisions, 1 or −1, so that no rule can choose another cut."""

    classifier: Any

    def __call__(self, X: Any) -> Array:
        """Decisions."""
        return np.where(self.classifier.predict(X) == 1, 1.0, -1.0)[:, None]

    @property
    def inputs(self) -> int:
        """The number of features of a row."""
        return int(self.classifier.n_features_in_)

    def about(self) -> NoReturn:
        """There is nothing that a file could hold."""
        raise ValueError(
            "tuned-threshold is there to compare with, and cannot be written to a model file: fit the model linear, "
            "whose cut a file keeps."
        )

    def files(self) -> NoReturn:
        """As `about`."""
        self.about()


@dataclass(frozen=True)
class TunedThreshold(Learner):
    """Logistic regression in scikit-learn's `TunedThresholdClassifierCV`, with the metric as its scoring.

    It chooses among 100 cuts by folds of its own, and what it decides is what is judged: its scores are its decisions.
    """

    name, package, rank, usual, draws = "tuned-threshold", "sklearn", -1, False, False
    losses, files, steps = ("bce",), (), 10

    C: float = 1.0

    @classmethod
    def read(cls, about: Mapping[str, Any], files: Mapping[str, bytes]) -> NoReturn:
        """No file holds one."""
        raise ValueError("tuned-threshold is never in a model file")

    def fit_folds(
        self, rows: Rows, goal: Goal, losses: Sequence[str], *, seed: int = 0, tick: Tick = lambda done: None
    ) -> dict[str, Fitted]:
        """Fit and tune on all rows, and on all but each fold."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import make_scorer
        from sklearn.model_selection import TunedThresholdClassifierCV

        def score(truth: NDArray[Any], called: NDArray[Any]) -> float:
            return float(score_cells(goal.metric, Confusion.from_predictions(called * 1.0, truth)))

        def fit(X: Any, y: NDArray[Any], weight: Array | None) -> DecidedRows:
            model = LogisticRegression(C=self.C, max_iter=1000)
            tuned = TunedThresholdClassifierCV(model, scoring=make_scorer(score), random_state=seed)
            return DecidedRows(tuned.fit(X, y[:, 0]))

        if rows.weight is not None:
            raise ValueError(
                "TunedThresholdClassifierCV takes weights of rows only by metadata routing: leave them out."
            )
        return dict.fromkeys(losses, replace(rows.fitted(fit), rounds=1))

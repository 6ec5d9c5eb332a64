"""SVM^perf: a linear support vector machine for a metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fbeta.learners.crossfit import Array
from fbeta.learners.cutting_planes import LinearSVM, fit_linear
from fbeta.learners.learner import Fitted, Goal, Learner, Rows, Tick
from fbeta.learners.network import WEIGHTS, Network
from fbeta.metrics import Accuracy, Metric


@dataclass(frozen=True)
class SVMPerf(Learner):
    """SVM^perf: a linear model by the multivariate hinge of the metric, or as the ordinary SVM by that of the error.

    - `C`, `intercept`, `tolerance`, `passes`: of `fbeta.learners.cutting_planes.fit_linear`.

    Every column of `y` is trained for the metric of its own.

    Reference: [joachims2005]
    """

    name, package, rank, usual = "svm-perf", "numpy", 0, False
    draws, read = True, Network.read
    losses, files, steps = ("multivariate-hinge", "hinge"), (WEIGHTS,), 10

    C: float = 1.0
    intercept: float = 1.0
    tolerance: float = 1e-3
    passes: int = 1000

    def fit_folds(
        self, rows: Rows, goal: Goal, losses: Sequence[str], *, seed: int = 0, tick: Tick = lambda done: None
    ) -> dict[str, Fitted]:
        """Train each loss on all rows and on all but each fold."""
        return {loss: self._fitted(rows, Accuracy() if loss == "hinge" else goal.metric) for loss in losses}

    def _fitted(self, rows: Rows, metric: Metric) -> Fitted:
        solved: list[list[LinearSVM]] = []

        def fit(X: Any, y: Array, weight: Array | None) -> Network:
            solved.append(self.fit_columns(metric, X, y, weight))
            return _network(solved[-1])

        found, whole = rows.fitted(fit), solved[-1]  # that of all rows comes last
        passes, gap = max(svm.passes for svm in whole), max(svm.gap for svm in whole)
        remark = f"stopped after {passes} passes, {gap:.2g} from its optimum" if gap > self.tolerance else ""
        if min(svm.gain for svm in whole) <= self.tolerance:
            remark = "found nothing better than w = 0: where rows overlap so much, the bound of the metric says nothing"
        return replace(found, rounds=passes, remark=remark)

    def fit_columns(self, metric: Metric, X: Any, y: Array, weight: Array | None) -> list[LinearSVM]:
        """One model for each column of y."""
        options: dict[str, Any] = {"C": self.C, "intercept": self.intercept}
        options |= {"tolerance": self.tolerance, "passes": self.passes}
        return [fit_linear(X, column, metric, weight, **options) for column in y.T]


def _network(columns: Sequence[LinearSVM]) -> Network:
    return Network((np.stack([svm.weight for svm in columns], 1),), (np.array([svm.bias for svm in columns]),))

"""The plug-in classifier with its own estimation split."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions import tune
from fbeta.learners.decided import DecidingLearner
from fbeta.learners.learner import Goal


@dataclass(frozen=True)
class PlugIn(DecidingLearner):
    r"""Logistic regression on one half of the rows, and the best cut of its probabilities on the other half.

    .. math:: \hat\delta = \arg\max_\delta M\!\left(\hat\eta_1 \ge \delta \text{ on the second half}\right)

    Neither half serves twice: that is what the consistency of the plug-in is proved for. What it decides is what is
    judged: its scores are its decisions. `C`: of logistic regression.

    Reference: [koyejo2014], algorithm 1
    """

    name, package = "plug-in", "sklearn"
    unweighted = "The plug-in's halves are rows of one weight"

    C: float = 1.0

    def decider(self, X: Any, y: NDArray[Any], goal: Goal, seed: int) -> Any:
        """Fit on one half, cut on the other."""
        from sklearn.frozen import FrozenEstimator
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import FixedThresholdClassifier, train_test_split

        if min(np.bincount(y.astype(int), minlength=2)) < 2:
            raise ValueError("plug-in needs two rows of each class in every training part: one for each half.")
        first, second = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed)
        model = LogisticRegression(C=self.C, max_iter=1000).fit(X[first], y[first])
        eta = model.predict_proba(X[second])[:, 1]
        cut = tune(eta, y[second], goal.metric, rule="exact", kind="probability")
        return FixedThresholdClassifier(FrozenEstimator(model), threshold=cut.value).fit(X[second], y[second])

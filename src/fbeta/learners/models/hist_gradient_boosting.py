"""scikit-learn's histogram gradient boosting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fbeta.learners.classifiers import ClassifierLearner


@dataclass(frozen=True)
class HistGradientBoosting(ClassifierLearner):
    """scikit-learn's `HistGradientBoostingClassifier`, with the settings that it comes with.

    `params`: go to its class, for example ``{"max_leaf_nodes": 15}``. No file can hold it.

    Reference: [ke2017]
    """

    name, package, rank, usual = "hist-gradient-boosting", "sklearn", 2, False
    losses = ("bce",)

    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def space(self) -> Mapping[str, Any]:
        """Where a search draws settings from."""
        from scipy.stats import loguniform

        rate, penalty = loguniform(0.02, 0.3), loguniform(1e-3, 10)
        leaves = {"max_leaf_nodes": [7, 15, 31, 63], "min_samples_leaf": [5, 10, 20, 50]}
        return {"learning_rate": rate, "l2_regularization": penalty, **leaves}

    def classifier(self, seed: int) -> Any:
        """The library's own class, ready to be fitted."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(**{"random_state": seed, **self.params})

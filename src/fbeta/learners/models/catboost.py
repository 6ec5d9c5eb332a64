"""CatBoost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fbeta.learners.classifiers import ClassifierLearner


@dataclass(frozen=True)
class CatBoost(ClassifierLearner):
    """CatBoost's classifier, with the settings that it comes with.

    `params`: go to its class, for example ``{"iterations": 300}``. No file can hold it.

    Reference: [prokhorenkova2018]
    """

    name, package, rank, usual = "catboost", "catboost", 2, False
    losses = ("bce",)

    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def space(self) -> Mapping[str, Any]:
        """Where a search draws settings from."""
        from scipy.stats import loguniform

        return {"depth": [4, 5, 6, 7, 8], "learning_rate": loguniform(0.02, 0.3), "l2_leaf_reg": loguniform(1, 30)}

    def classifier(self, seed: int) -> Any:
        """The library's own class, ready to be fitted."""
        from catboost import CatBoostClassifier

        quiet = {"verbose": False, "allow_writing_files": False}
        return CatBoostClassifier(**{"random_seed": seed, **quiet, **self.params})

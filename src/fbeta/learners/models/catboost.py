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

    def classifier(self, seed: int) -> Any:
        """The library's own class, ready to be fitted."""
        from catboost import CatBoostClassifier

        quiet = {"verbose": False, "allow_writing_files": False}
        return CatBoostClassifier(**{"random_seed": seed, **quiet, **self.params})

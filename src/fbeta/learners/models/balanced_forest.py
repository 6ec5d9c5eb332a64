"""Balanced random forests."""

from dataclasses import dataclass
from typing import Any

from fbeta.learners.models.forest import Forest


@dataclass(frozen=True)
class BalancedForest(Forest):
    """imbalanced-learn's balanced forest: each tree sees as many rows of one class as of the other, drawn for it alone.

    Reference: [chen2004], [lemaitre2017]
    """

    name, package, rank, draws = "balanced-forest", "imblearn", -1, False

    def classifier(self, seed: int) -> Any:
        """The library's own class, ready to be fitted."""
        from imblearn.ensemble import BalancedRandomForestClassifier

        chosen = {"criterion": "log_loss", "random_state": seed, **self.params}
        return BalancedRandomForestClassifier(self.trees, **chosen)

"""Random forests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fbeta.learners.crossfit import Array
from fbeta.learners.forest_trees import TREES, ForestTrees
from fbeta.learners.learner import Fitted, Goal, Learner, Rows, Tick


@dataclass(frozen=True)
class Forest(Learner):
    """scikit-learn's random forest, its trees grown by cross entropy.

    - `trees`: how many. `params`: go to its class, for example ``{"min_samples_leaf": 5}``.

    The shares that its trees vote with are calibrated on out-of-fold rows.

    Reference: [breiman2001]
    """

    name, package, rank, usual, draws = "forest", "sklearn", 1, False, True
    losses, files, steps = ("bce",), (TREES,), 10
    read = ForestTrees.read

    trees: int = 300
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def space(self) -> Mapping[str, Any]:
        """Where a search draws settings from."""
        return {"min_samples_leaf": [1, 2, 5, 10, 20], "max_features": ["sqrt", 0.3, 0.6, 1.0]}

    def classifier(self, seed: int) -> Any:
        """The library's own class, ready to be fitted."""
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(self.trees, **{"criterion": "log_loss", "random_state": seed, **self.params})

    def fit_folds(
        self, rows: Rows, goal: Goal, losses: Sequence[str], *, seed: int = 0, tick: Tick = lambda done: None
    ) -> dict[str, Fitted]:
        """Grow a forest on all rows, and on all but each fold."""

        def fit(X: Any, y: Any, weight: Array | None) -> ForestTrees:
            return ForestTrees.of(self.classifier(seed).fit(X, y[:, 0], sample_weight=weight))

        return dict.fromkeys(losses, replace(rows.fitted(fit), rounds=self.trees))

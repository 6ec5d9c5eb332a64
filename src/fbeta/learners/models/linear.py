"""Linear models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fbeta.learners.network import NetworkLearner


@dataclass(frozen=True)
class Linear(NetworkLearner):
    """A linear model, by L-BFGS on all rows until it converges: with cross entropy it is logistic regression."""

    name, package, rank = "linear", "torch", 0

    solver: str = "lbfgs"
    epochs: int = 100
    patience: int | None = None

    @property
    def space(self) -> Mapping[str, Any]:
        """Where a search draws settings from."""
        from scipy.stats import loguniform

        return {"alpha": loguniform(1e-6, 0.1)}

"""Multi-layer perceptrons."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fbeta.learners.network import NetworkLearner


@dataclass(frozen=True)
class MLP(NetworkLearner):
    """Two hidden layers of 64 units, by Adam on batches."""

    name, package, rank = "mlp", "torch", 1

    hidden: tuple[int, ...] = (64, 64)
    averaged: bool = True

    @property
    def space(self) -> Mapping[str, Any]:
        """Where a search draws settings from."""
        from scipy.stats import loguniform

        hidden = [(32,), (64,), (64, 64), (128, 128)]
        return {"hidden": hidden, "rate": loguniform(1e-3, 2e-2), "alpha": loguniform(1e-6, 1e-2)}

"""Multi-layer perceptrons."""

from dataclasses import dataclass

from fbeta.learners.network import NetworkLearner


@dataclass(frozen=True)
class MLP(NetworkLearner):
    """Two hidden layers of 64 units, by Adam on batches."""

    name, package, rank = "mlp", "torch", 1

    hidden: tuple[int, ...] = (64, 64)
    averaged: bool = True

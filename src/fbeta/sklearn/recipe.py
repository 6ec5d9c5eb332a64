"""What goes into a training run and what comes out of it, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fbeta.metrics import Metric
from fbeta.sklearn.labels import Array
from fbeta.sklearn.networks import Network


@dataclass(frozen=True)
class Recipe:
    """How to train; the names are `MetricClassifier`'s."""

    metric: Metric
    loss: str = "tangent"
    loss_options: dict[str, Any] = field(default_factory=dict)
    hidden: tuple[int, ...] = ()
    average: str = "macro"
    own_cut: bool = False
    alpha: float | None = None
    learning_rate: float = 0.01
    batch_size: int | None = None
    max_epochs: int = 100
    patience: int | None = 10
    solver: str = "adam"
    prevalence: float | None = None
    device: str = "cpu"
    seed: int = 0


@dataclass(frozen=True)
class Trained:
    """The model of all rows, those of the folds, and what the folds' models say of rows they never saw.

    Log odds are `slope`·z + `offset` where the loss has a closed form; else both are None.
    """

    network: Network
    of_folds: list[Network]
    scores: Array
    slope: float | None
    offset: Array | None
    epochs: int
    history: list[float]

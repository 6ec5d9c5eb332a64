"""When to stop, and which epoch to take: the one whose held-out rows score best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions import tune
from fbeta.learners.learner import Array, Goal
from fbeta.metrics import Confusion


@dataclass
class Best:
    """The best epoch so far; `patience` epochs without a better one are the end (None: never, and the last counts).

    >>> best = Best(patience=2)
    >>> [best.see(epoch, (score,)) for epoch, score in enumerate([0.5, 0.7, 0.6, 0.7, 0.9], start=1)]
    [True, True, False, False, False]
    >>> best.epoch, best.ended(5)
    (2, True)
    """

    patience: int | None
    epoch: int = 0
    key: tuple[float, ...] = ()

    def see(self, epoch: int, key: tuple[float, ...]) -> bool:
        """Look at an epoch; whether it is to be taken. Later parts of the key decide between equal earlier ones."""
        if self.patience is not None and (self.ended(epoch) or (self.key and key <= self.key)):
            return False
        self.epoch, self.key = epoch, key
        return True

    def ended(self, epoch: int) -> bool:
        """Whether there was no progress for long enough before this epoch."""
        return self.patience is not None and self.epoch > 0 and epoch > self.epoch + self.patience


def held_out_score(goal: Goal, scores: Array, y: NDArray[Any], weight: Array | None) -> float:
    """The goal's metric on held-out rows: at the best cut of each column, or at the loss's own boundary.

    Shape: `scores` and `y` ``(n, K)``, `weight` ``(n,)`` or None.

    >>> from fbeta import FBeta
    >>> held_out_score(Goal(FBeta(1)), np.array([[0.2], [0.1]]), np.array([[1], [0]]), None)
    1.0
    """
    if not np.isfinite(scores).all():
        return -np.inf
    if goal.average == "micro":
        weight = None if weight is None else np.repeat(weight, y.shape[1])
        scores, y = scores.reshape(-1, 1), y.reshape(-1, 1)
    if goal.own_cut:
        wide = None if weight is None else np.broadcast_to(weight[:, None], y.shape)
        return float(np.mean(goal.metric(Confusion.from_predictions((scores >= 0) * 1.0, y, wide, axis=0))))
    columns = [tune(scores[:, k], y[:, k], goal.metric, weight).score for k in range(y.shape[1])]
    return float(np.mean(columns))

"""A booster as the fixed point sees it: rows and weights in, scores out, and how many rounds are enough."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.boosting.objectives import Objective
from fbeta.decisions import tune
from fbeta.learners import take
from fbeta.metrics import Confusion, Metric

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

#: The most a leaf may move log odds, before the learning rate. Where a model is sure, the second derivative of the
#: logistic loss vanishes and Newton's step −g/h goes anywhere: on rare positives both libraries diverge without it.
#: Chosen on tables that docs/boosting.md reports; it says what that flatters.
MOST = 3.0


@dataclass(frozen=True)
class Model:
    """A fitted booster, and the score it does not know it began with."""

    booster: Any
    offset: float = 0.0


class Learner(ABC):
    """Fits and scores rows of one table by their numbers, so that binned data are made once a fold, not once a fit.

    `objective` makes a fresh custom objective; None is the library's own logistic loss, which with class costs as row
    weights is the tangent loss at q = 0.
    """

    def __init__(
        self,
        X: Any,
        y: NDArray[Any],
        params: dict[str, Any],
        rounds: int,
        objective: Callable[[], Objective] | None = None,
    ) -> None:
        self.X, self.y, self.params, self.rounds, self.objective = X, y, params, rounds, objective
        self._binned: dict[int, Any] = {}

    def fit(self, rows: Rows, y: NDArray[Any], weight: Array | None) -> Model:
        """Fit the rows with these numbers; for `fbeta.learners`."""
        return self.train(self.binned(rows), y, np.ones(len(y)) if weight is None else weight)

    def score(self, model: Model, rows: Rows) -> Array:
        """Score the rows with these numbers."""
        return self.scores(model, take(self.X, rows))

    def binned(self, rows: Rows) -> Any:
        """The library's own form of some rows, made once."""
        key = hash(rows.tobytes())
        if key not in self._binned:
            self._binned[key] = self.bin(rows)
        return self._binned[key]

    def forget(self) -> None:
        """Let go of the binned folds."""
        self._binned.clear()

    @abstractmethod
    def bin(self, rows: Rows) -> Any:
        """Bring rows and labels into the library's own form."""

    @abstractmethod
    def train(self, data: Any, y: NDArray[Any], weight: Array) -> Model:
        """Boost for all rounds."""

    @abstractmethod
    def grow(self, rest: Rows, held: Rows, weight: Array) -> Iterator[Array]:
        """Boost on some rows, and score others after every round, up to a rising function."""

    @staticmethod
    @abstractmethod
    def scores(model: Model, X: Any) -> Array:
        """Score new rows: log odds under the costs that the model was trained with."""

    def stop_early(
        self, fold: NDArray[np.int64], weight: Array, metric: Metric, patience: int
    ) -> tuple[int, Confusion]:
        """Boost all folds side by side; after which round do the out-of-fold rows score best, and where?

        One number of rounds for all folds, by the metric of all rows at its best cut: a stop of each fold's own would
        be picked by a fifth of the positives, and flatter the very scores that the cut is taken from.
        """
        parts = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold[fold >= 0])]
        kept = fold >= 0
        scores = np.zeros(len(fold))
        best, rounds, at = -np.inf, 1, None
        runs = [self.grow(rest, held, weight[rest]) for rest, held in parts]
        for done, found in enumerate(zip(*runs, strict=True), start=1):
            for (_, held), part in zip(parts, found, strict=True):
                scores[held] = part
            cut = tune(scores[kept], self.y[kept], metric, weight[kept])
            if cut.score > best:
                best, rounds, at = cut.score, done, cut.counts
            elif done - rounds >= patience:
                break
        assert at is not None
        return rounds, at

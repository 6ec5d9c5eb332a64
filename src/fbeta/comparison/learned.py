"""What one method learned on one outer split, whoever trained it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.artifact import Scorer
from fbeta.comparison.result import Epochs
from fbeta.decisions import Platt, Threshold, tune
from fbeta.decisions.steps import Steps, score_cells
from fbeta.metrics import Confusion, Metric

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Task:
    """One outer split: rows to learn from with their inner folds, and rows to be judged by.

    Shape: `X` ``(n, d)`` float32, encoded by the learning rows alone; `y` ``(n,)`` 0 or 1; `train` and `test` row
    numbers; `fold` ``(len(train),)``.
    """

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    train: Rows
    test: Rows
    fold: NDArray[np.int64]
    metric: Any
    seed: int

    @property
    def folds(self) -> int:
        """Inner folds."""
        return int(self.fold.max()) + 1


@dataclass(frozen=True, eq=False)
class Learned:
    """Scores of rows by models that did not see them; positive at or above 0 by the loss's own boundary.

    `model` gives such scores for any rows; a part that was read from disk has none, and nor has a run that diverged.

    Shape: `inner` ``(len(train),)``, `outer` ``(len(test),)``.
    """

    inner: Floats
    outer: Floats
    seconds: float
    rounds: int
    course: Epochs = field(default_factory=Epochs)
    collapse: str = ""
    model: Scorer | None = None


def decision(scores: Floats, y: NDArray[np.int64], metric: Any, rule: str) -> tuple[Platt, Threshold]:
    """How scores become probabilities and where they are cut, from rows whose models did not see them.

    Shape: `scores` and `y` ``(n,)``.

    >>> platt, cut = decision(np.array([2.0, 1.0, -1.0, -2.0]), np.array([1, 1, 0, 0]), "fbeta:beta=1", "exact")
    >>> cut.score, bool(platt(1.0) > cut.value > platt(-1.0))
    (1.0, True)
    """
    steps, top = Steps.of(scores, y), 0.0
    if steps.are_probabilities:  # they only happen to lie in [0, 1]
        top = float(scores.max()) + 1
        steps = Steps.of(scores - top, y)
    found = Platt.fit(steps)
    platt = Platt(found.slope, found.offset - found.slope * top)
    return platt, tune(platt(scores), y, metric, rule=rule)


def held_score(
    scores: Floats, y: NDArray[np.int64], fold: NDArray[np.int64], metric: Metric, rule: str
) -> float:
    """The score of out-of-fold rows, the rows of each fold decided as the other folds say: what to choose a method by.

    At a cut that the same rows chose, a score is the more flattered the more noise there is to choose from.

    Shape: `scores`, `y` and `fold` ``(n,)``.

    >>> from fbeta import FBeta
    >>> scores, y = np.array([2.0, 1.0, -1.0, -2.0] * 2), np.array([1, 1, 0, 0] * 2)
    >>> held_score(scores, y, np.repeat([0, 1], 4), FBeta(1), "exact")
    1.0
    """
    called = np.zeros(len(y), dtype=bool)
    for f in np.unique(fold):
        mine = fold == f
        platt, cut = decision(scores[~mine], y[~mine], metric, rule)
        called[mine] = platt(scores[mine]) >= cut.value
    return float(score_cells(metric, Confusion.from_predictions(called * 1.0, y)))


def known(score: float) -> float:
    """A score to choose by: none is worse than any.

    >>> known(0.5), known(float("nan"))
    (0.5, -inf)
    """
    return -math.inf if math.isnan(score) else score

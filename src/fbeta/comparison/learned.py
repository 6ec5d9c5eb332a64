"""What one method learned on one outer split, whoever trained it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.results import Epochs

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

    Shape: `inner` ``(len(train),)``, `outer` ``(len(test),)``.
    """

    inner: Floats
    outer: Floats
    seconds: float
    rounds: int
    course: Epochs = field(default_factory=Epochs)
    collapse: str = ""

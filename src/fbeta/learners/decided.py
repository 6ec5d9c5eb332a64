"""Learners whose scores are their decisions: methods that choose a cut themselves, judged by what they decide."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from fbeta.learners.classifiers import Unwritten
from fbeta.learners.crossfit import Array
from fbeta.learners.learner import Fitted, Goal, Learner, Rows, Tick


@dataclass(frozen=True, eq=False)
class DecidedRows(Unwritten):
    """A classifier whose scores are its decisions, 1 or −1, so that no rule can choose another cut."""

    def __call__(self, X: Any) -> Array:
        """Decisions."""
        return np.where(self.classifier.predict(X) == 1, 1.0, -1.0)[:, None]


@dataclass(frozen=True)
class DecidingLearner(Learner):
    """A way to a classifier of scikit-learn's that decides by itself, without weights of rows."""

    rank, usual, draws = -1, False, False
    losses, files, steps = ("bce",), (), 10
    #: Why there can be no weights of rows, as an error says it.
    unweighted: ClassVar[str]

    @classmethod
    def read(cls, about: Mapping[str, Any], files: Mapping[str, bytes]) -> NoReturn:
        """No file holds one."""
        raise ValueError(f"{cls.name} is never in a model file")

    @abstractmethod
    def decider(self, X: Any, y: NDArray[Any], goal: Goal, seed: int) -> Any:
        """The fitted classifier, of 0 and 1."""

    def fit_folds(
        self, rows: Rows, goal: Goal, losses: Sequence[str], *, seed: int = 0, tick: Tick = lambda done: None
    ) -> dict[str, Fitted]:
        """Fit and choose the cut on all rows, and on all but each fold."""
        if rows.weight is not None:
            raise ValueError(f"{self.unweighted}: leave them out.")

        def fit(X: Any, y: NDArray[Any], weight: Array | None) -> DecidedRows:
            return DecidedRows(self.name, self.decider(X, y[:, 0], goal, seed), X.shape[1])

        return dict.fromkeys(losses, replace(rows.fitted(fit), rounds=1))

"""Any model on resampled rows, by imbalanced-learn: "over+linear", "under+xgboost", "smote+mlp"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.learners.learner import Fitted, Goal, Learner, Rows, Scorer, Tick

#: The samplers, by what comes before the plus.
SAMPLERS = ("over", "under", "smote")


@dataclass(frozen=True)
class Resampled(Learner):
    r"""A model whose every training part, and nothing else, is resampled until both classes are equally many.

    - `sampler`: "over" repeats rows of the rarer class, "under" leaves rows of the other out, both at random; "smote"
      adds points between rows of the rarer class and their five nearest neighbours of that class.
    - `learner`: the model.

    Held-out rows stay as they are: they say when to stop, and calibrate the scores, whose odds resampling has shifted.
    The model is trained with cross entropy: costs, or a loss of the metric, would change the balance a second time.
    Interpolated are numbers as the model sees them, so the columns of a category, too. A model file holds the model
    inside.

    >>> from fbeta.learners import models
    >>> learner = models.get("over+linear", epochs=5)
    >>> learner.sampler, learner.learner.epochs, learner.losses
    ('over', 5, ('bce',))

    Reference: [chawla2002], [lemaitre2017]
    """

    losses, rank, usual = ("bce",), -1, False

    sampler: str
    learner: Learner

    def __post_init__(self) -> None:
        if not self.learner.draws:
            raise ValueError(f"{type(self.learner).__name__} learns from all rows it is given: it cannot be resampled.")
        if "bce" not in (self.learner.losses or ("bce",)):
            raise ValueError(
                f"{type(self.learner).__name__} is not trained with cross entropy: it cannot be resampled."
            )
        for name in ("files", "package"):  # those of the model inside
            object.__setattr__(self, name, getattr(self.learner, name))

    @property
    def steps(self) -> int:
        """Those of the model inside."""
        return self.learner.steps

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the model inside, and what resamples its rows."""
        import imblearn

        return {**self.learner.settings, "sampler": self.sampler, "imblearn": imblearn.__version__}

    @property
    def space(self) -> Mapping[str, Any]:
        """That of the model inside."""
        return self.learner.space

    def having(self, settings: Mapping[str, Any]) -> Self:
        """With other settings of the model inside."""
        return replace(self, learner=self.learner.having(settings))

    def read(self, about: Mapping[str, Any], files: Mapping[str, bytes]) -> Scorer:  # type: ignore[override]
        """A fitted model, as the model inside reads it."""
        return self.learner.read(about, files)

    def fit_folds(
        self, rows: Rows, goal: Goal, losses: Sequence[str], *, seed: int = 0, tick: Tick = lambda done: None
    ) -> dict[str, Fitted]:
        """Train the model inside on all rows and on all but each fold, resampled."""
        count = len(rows.y)
        if rows.y.shape[1] != 1:
            raise ValueError(f"Rows are resampled for two classes; got {rows.y.shape[1]} columns. Fit one at a time.")
        found = self.learner.fit_folds(self._drawn(rows, seed), goal, losses, seed=seed, tick=tick)
        return {loss: replace(x, scores=x.scores[:count], calibration=None) for loss, x in found.items()}

    def _drawn(self, rows: Rows, seed: int) -> Rows:
        """The rows with all synthetic ones behind them, and which of them each part learns from."""
        y, count = rows.y[:, 0], len(rows.y)
        learned: dict[bytes, NDArray[np.int64]] = {}
        made: list[Any] = []
        for part in rows.parts:
            if self.sampler == "smote":
                made.append(_between(rows.X[part], y[part], seed))
                last = count + sum(x.shape[0] for x in made)
                learned[part.tobytes()] = np.append(part, np.arange(last - made[-1].shape[0], last))
            else:
                learned[part.tobytes()] = _repeated(self.sampler, part, y[part], seed)

        def draw(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
            return learned[numbers[numbers < count].tobytes()]

        if not made:
            return replace(rows, draw=draw)
        more, rare = sum(x.shape[0] for x in made), int(2 * y.sum() < count)
        X = _stacked([rows.X, *made])
        weight = rows.weight
        if weight is not None:  # a new row weighs what those it lies between do on average
            weight = np.append(weight, np.full(more, weight[y == rare].mean()))
        labels = np.append(rows.y, np.full((more, 1), rare, rows.y.dtype), axis=0)
        return Rows(X, labels, np.append(rows.fold, np.full(more, -1)), weight, draw, rows.ordered)


def _repeated(sampler: str, numbers: NDArray[np.int64], y: NDArray[Any], seed: int) -> NDArray[np.int64]:
    """The numbers of rows that are left, or repeated."""
    from imblearn.over_sampling import RandomOverSampler
    from imblearn.under_sampling import RandomUnderSampler

    kind = RandomOverSampler if sampler == "over" else RandomUnderSampler
    drawn: NDArray[np.int64] = kind(random_state=seed).fit_resample(numbers[:, None], y)[0][:, 0]
    return drawn


def _between(X: Any, y: NDArray[Any], seed: int) -> Any:
    """Rows between those of the rarer class, as many as it lacks."""
    from imblearn.over_sampling import SMOTE

    rarest = int(min(y.sum(), len(y) - y.sum()))
    if rarest < 2:
        raise ValueError(f"SMOTE goes from a row to its neighbours; a training part has {rarest} of the rarer class.")
    return SMOTE(random_state=seed, k_neighbors=min(5, rarest - 1)).fit_resample(X, y)[0][len(y) :]


def _stacked(parts: Sequence[Any]) -> Any:
    if not hasattr(parts[0], "tocsr"):
        return np.concatenate(parts)
    from scipy.sparse import vstack

    return vstack(parts, format="csr")

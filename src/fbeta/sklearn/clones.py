"""A user's classifier as columns of scores: how clones of it are fitted, weighed and asked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from fbeta.decisions.calibration import logit
from fbeta.learners.classifiers import weight_argument
from fbeta.learners.crossfit import Array, take
from fbeta.sklearn.decider import Given, of_rows
from fbeta.sklearn.labels import Labels


@dataclass(frozen=True)
class Clones:
    """Fits clones of an estimator to numbered rows and gives their scores as columns: log odds, or margins.

    With `native` one model answers for all columns, as the estimator itself does for several classes or labels;
    else there is one model per column of `target`, trained on 0 and 1. Of `rows.params` whatever has one value per
    row is cut to the rows.
    """

    estimator: Any
    labels: Labels
    rows: Given
    target: Array
    method: str
    native: bool = True

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of all rows."""
        return np.arange(len(self.rows.y))

    def fit(self, numbers: NDArray[np.int64], y: Any, weight: Array | None) -> list[Any]:
        """Models of all columns, fitted to the rows with these numbers."""
        params = {name: of_rows(value, numbers, len(self.rows.y)) for name, value in self.rows.params.items()}
        name = weight_argument(self.estimator) if self.rows.weigh else None
        if weight is not None and name is not None:
            params[name] = weight
        columns = [self.rows.y[numbers]] if self.native else self.target[numbers].astype(int).T
        X = self._table(numbers)
        return [clone(self.estimator).fit(X, column, **params) for column in columns]

    def score(self, models: list[Any], numbers: NDArray[np.int64]) -> Array:
        """Scores of all columns; shape (n, K)."""
        return columns_of(models, self._table(numbers), self.labels, self.method)

    def _table(self, numbers: NDArray[np.int64]) -> Any:
        return self.rows.X if len(numbers) == len(self.rows.y) else take(self.rows.X, numbers)


def columns_of(models: list[Any], X: Any, labels: Labels, method: str) -> Array:
    """Scores of all columns, by one model for all of them or one each; shape (n, K)."""
    if labels.kind == "binary" or len(models) < len(labels.classes):
        return scores_of(models[0], X, labels, method)
    one = Labels("binary", np.array([0, 1]))
    return np.concatenate([scores_of(model, X, one, method) for model in models], axis=1)


def scores_of(model: Any, X: Any, labels: Labels, method: str) -> Array:
    """Log odds (from `predict_proba`) or margins (`decision_function`) of a fitted model's columns."""
    found = getattr(model, method)(X)
    if isinstance(found, list):  # one array of two columns per label, as forests give
        found = np.stack([p[:, -1] for p in found], axis=1)
    found, name = np.asarray(found, dtype=np.float64), f"{type(model).__name__}.{method}"
    if not np.isfinite(found).all():
        raise ValueError(
            f"{name} gives NaN or infinite scores, which no cut can divide; look for extreme features, or take another "
            "classifier."
        )
    if labels.kind == "binary":
        flipped = model.classes_[-1] != labels.pos_label
        if found.ndim == 2:
            found = found[:, 0 if flipped else -1]
        elif flipped:
            found = -found
        found = found[:, None]
    elif labels.kind == "multiclass":
        found = found[:, np.searchsorted(model.classes_, labels.classes)]
    if found.shape[1:] != (len(labels.classes),) and labels.kind != "binary":
        raise ValueError(f"{name} gives shape {found.shape}; one column is needed for each of {labels.classes}.")
    return np.asarray(logit(found) if method == "predict_proba" else found)


def is_native(estimator: Any, labels: Labels) -> bool:
    """Whether the estimator itself takes as many classes or labels as there are."""
    if takes_columns(estimator):
        return True
    tags = get_tags(estimator).classifier_tags
    if labels.kind == "binary" or tags is None:
        return labels.kind != "multilabel"
    return bool(tags.multi_class if labels.kind == "multiclass" else tags.multi_label)


def takes_columns(estimator: Any) -> bool:
    """Whether the estimator takes nothing but several columns of labels."""
    return not get_tags(estimator).target_tags.single_output

"""A user's classifier as columns of scores: how clones of it are fitted, weighed and asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, has_fit_parameter

from fbeta.decisions.calibration import logit, sigmoid
from fbeta.learners import take
from fbeta.sklearn.labels import Array, Labels


def weight_argument(estimator: Any) -> str | None:
    """The name under which `fit` takes row weights, also through a pipeline or a search; None if it does not.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> weight_argument(make_pipeline(StandardScaler(), LogisticRegression()))
    'logisticregression__sample_weight'
    """
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if getattr(estimator, "steps", None):
        name, last = estimator.steps[-1]
        inner = weight_argument(last)
        if inner is None or sklearn.get_config()["enable_metadata_routing"]:
            return inner and "sample_weight"
        return f"{name}__{inner}"
    if hasattr(estimator, "cv") and hasattr(estimator, "estimator"):  # a search passes on what it is given
        return weight_argument(estimator.estimator)
    return None


@dataclass(frozen=True)
class Numbered:
    """Rows that know their number, so that whatever has one value per row can be cut to the same rows."""

    X: Any
    number: NDArray[np.int64]

    @classmethod
    def all(cls, X: Any, rows: int) -> Numbered:
        """All rows."""
        return cls(X, np.arange(rows))

    def __getitem__(self, rows: NDArray[np.int64]) -> Numbered:
        return Numbered(take(self.X, rows), self.number[rows])


@dataclass(frozen=True)
class Clones:
    """Fits clones of an estimator and gives their scores as columns: log odds, or margins.

    With `native` one model answers for all columns, as the estimator itself does for several classes or labels;
    else there is one model per column, trained on 0 and 1.

    - `y`: the user's labels, `target` the columns.
    - `params`: what else goes to `fit`; what has one value per row is cut to the rows.
    - `weigh`: whether `fit` gets the row weights, where it takes any.
    """

    estimator: Any
    labels: Labels
    y: NDArray[Any]
    target: Array
    method: str
    native: bool = True
    params: dict[str, Any] = field(default_factory=dict)
    weigh: bool = True

    def fit(self, rows: Numbered, y: Any, weight: Array | None) -> list[Any]:
        """Models of all columns; the rows' numbers say which labels are theirs."""
        params = {name: self._of_rows(value, rows.number) for name, value in self.params.items()}
        name = weight_argument(self.estimator) if self.weigh else None
        if weight is not None and name is not None:
            params[name] = weight
        if self.native:
            return [clone(self.estimator).fit(rows.X, self.y[rows.number], **params)]
        columns = self.target[rows.number].astype(int).T
        return [clone(self.estimator).fit(rows.X, column, **params) for column in columns]

    def score(self, models: list[Any], rows: Numbered) -> Array:
        """Scores of all columns; shape (n, K)."""
        return columns_of(models, rows.X, self.labels, self.method)

    def score_one(self, models: list[Any], rows: Numbered) -> Array:
        """Scores of the only column; shape (n,)."""
        return self.score(models, rows)[:, 0]

    def _of_rows(self, value: Any, rows: NDArray[np.int64]) -> Any:
        per_row = hasattr(value, "__len__") and not isinstance(value, str | dict)
        if not per_row or len(value) != len(self.y):
            return value
        return take(value if hasattr(value, "iloc") else np.asarray(value), rows)


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
    found = np.asarray(found, dtype=np.float64)
    if not np.isfinite(found).all():
        raise ValueError(
            f"{type(model).__name__}.{method} gives NaN or infinite scores, which no cut can divide; look for extreme "
            "features, or take another classifier."
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
        raise ValueError(
            f"{type(model).__name__}.{method} gives shape {found.shape} for {len(labels.classes)} columns; a "
            "column each is needed."
        )
    result: Array = logit(found) if method == "predict_proba" else found
    return result


def mean_of(parts: list[Array], method: str) -> Array:
    """Scores of several models as one: the mean of their probabilities (as log odds), or of their margins.

    A forest may say 0 or 1, whose log odds would drown what the other models say.

    >>> even, sure = np.array([[0.0]]), np.array([[-20.0]])
    >>> mean_of([even, sure], "predict_proba").round(1), mean_of([even, sure], "decision_function")
    (array([[-1.1]]), array([[-10.]]))
    """
    if len(parts) == 1:
        return parts[0]
    mean: Array = (
        logit(np.mean(sigmoid(parts), axis=0)) if method == "predict_proba" else np.mean(parts, axis=0)
    )
    return mean


def response_method(estimator: Any, wanted: str = "auto") -> str:
    """Which method scores: probabilities where there are any.

    >>> from sklearn.svm import LinearSVC
    >>> response_method(LinearSVC())
    'decision_function'
    """
    known = ("predict_proba", "decision_function")
    if wanted != "auto" and wanted not in known:
        raise ValueError(f"response_method must be one of auto, {', '.join(known)}; got {wanted!r}.")
    for name in known if wanted == "auto" else (wanted,):
        if hasattr(estimator, name):
            return name
    raise TypeError(
        f"{type(estimator).__name__} has no {' or '.join(known if wanted == 'auto' else (wanted,))}, and a cut needs "
        "scores; use a classifier that gives them."
    )


def is_native(estimator: Any, labels: Labels) -> bool:
    """Whether the estimator itself takes as many classes or labels as there are."""
    if takes_columns(estimator):
        return True
    tags = get_tags(estimator).classifier_tags
    if labels.kind == "binary" or tags is None:
        return labels.kind != "multilabel"
    return bool(tags.multi_class if labels.kind == "multiclass" else tags.multi_label)


def takes_columns(estimator: Any) -> bool:
    """Whether the estimator takes nothing but several columns of labels.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multioutput import MultiOutputClassifier
    >>> takes_columns(MultiOutputClassifier(LogisticRegression())), takes_columns(LogisticRegression())
    (True, False)
    """
    return not get_tags(estimator).target_tags.single_output


def indexable(X: Any) -> Any:
    """Bring rows to a form that can be indexed, and leave everything else to the classifier."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    elif not (hasattr(X, "columns") or isinstance(X, np.ndarray)):  # data frames keep their names
        X = np.asarray(X)
    shape = getattr(X, "shape", ())
    if 0 in shape or len(shape) == 0:
        check_array(X, accept_sparse=True)  # scikit-learn's own words for what is missing
    return X

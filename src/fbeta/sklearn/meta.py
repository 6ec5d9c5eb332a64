"""What estimators around another estimator share: reading rows, passing metadata on, tags."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import check_consistent_length, check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from fbeta.learners import take
from fbeta.metrics import metric as read_metric
from fbeta.sklearn.decision import Decider
from fbeta.sklearn.labels import Array, Labels, read_y
from fbeta.sklearn.learner import read_rows


class Rows(NamedTuple):
    """What `fit` was handed, read: rows of weight zero are gone."""

    X: Any
    y: NDArray[Any]
    weight: Array | None
    groups: NDArray[Any] | None
    params: dict[str, Any]
    weigh: bool  # whether the estimator asked for the weights


class MetaDecider(MetaEstimatorMixin, Decider):  # type: ignore[misc]
    """An estimator around `estimator`, whose scores it cuts."""

    estimator: Any
    pos_label: Any
    random_state: Any

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any, params: dict[str, Any]) -> Rows:
        """Check what can be checked without knowing what the estimator takes."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise TypeError(
                f"estimator must be a classifier, for example LogisticRegression(); got {self.estimator!r}."
            )
        read_metric(self.metric)
        X, y = read_rows(X), read_y(y)
        check_consistent_length(X, y, sample_weight, groups)
        weigh = True
        if sklearn.get_config()["enable_metadata_routing"]:
            given = {} if sample_weight is None else {"sample_weight": sample_weight}
            params = dict(process_routing(self, "fit", **given, **params).estimator.fit)
            weigh = params.pop("sample_weight", None) is not None  # they travel with the rows
        g = None if groups is None else np.asarray(groups)
        if sample_weight is None:
            return Rows(X, y, None, g, params, weigh)
        weight = read_weight(sample_weight, len(y))
        kept = np.flatnonzero(weight > 0)
        if len(kept) < len(y):  # a weight of 0 is no row, for folds and cuts as well
            params = {
                name: np.asarray(v)[kept] if hasattr(v, "__len__") and len(v) == len(y) else v
                for name, v in params.items()
            }
            X, y, weight, g = take(X, kept), y[kept], weight[kept], None if g is None else g[kept]
        return Rows(X, y, weight, g, params, weigh)

    def _labels(self, y: NDArray[Any]) -> Labels:
        return Labels.read(y, self.average, self.pos_label)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _remember(self, model: Any) -> None:
        """Take over what a fitted model knows of its input."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        self.classes_ = self.labels_.classes

    def get_metadata_routing(self) -> Any:
        """How metadata travels: own requests, and `fit` of the estimator."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.allow_nan = inner.allow_nan
        tags.classifier_tags.multi_class = self.average != "binary"
        tags.classifier_tags.multi_label = self.average != "binary"
        return tags


def read_weight(sample_weight: Any, rows: int) -> Array:
    """Check row weights: one a row, finite, none negative, not all zero.

    >>> read_weight([1, 2], 2)
    array([1., 2.])
    """
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(rows, float(weight))
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar; got shape {weight.shape}.")
    if weight.shape != (rows,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(rows,)}!")
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("sample_weight must be finite and zero or more.")
    if not (weight > 0).any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight


def check_fitted(estimator: Any) -> None:
    """Refuse a classifier that was promised to be fitted and is not."""
    try:
        check_is_fitted(estimator)
    except Exception as error:
        raise type(error)(
            f"prefit=True promises a fitted {type(estimator).__name__}, and it is not. Fit it first, or wrap it in "
            "sklearn.frozen.FrozenEstimator where something clones it (a search, cross_val_score)."
        ) from error

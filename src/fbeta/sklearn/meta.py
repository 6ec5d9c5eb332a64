"""What estimators around another estimator share: reading rows, passing metadata on, tags."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from fbeta.metrics import as_metric
from fbeta.sklearn.clones import indexable
from fbeta.sklearn.decider import Decider
from fbeta.sklearn.labels import Array


class Routed(NamedTuple):
    """What `fit` was handed, read, and what of it goes to the estimator inside."""

    X: Any
    y: NDArray[Any]
    weight: Array | None
    groups: NDArray[Any] | None
    params: dict[str, Any]
    weigh: bool  # whether the estimator gets the weights


@dataclass(eq=False, repr=False)
class MetaDecider(MetaEstimatorMixin, Decider):  # type: ignore[misc]
    """An estimator around `estimator`, whose scores it cuts."""

    estimator: Any
    metric: Any = "fbeta:beta=1"
    _: KW_ONLY
    rule: Any = "shrunk"
    cv: Any = None
    average_folds: bool = False
    average: str = "binary"
    pos_label: Any = None
    prevalence: float | None = None
    response_method: str = "auto"
    random_state: Any = None

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any, params: dict[str, Any]) -> Routed:
        """Check what can be checked without knowing what the estimator takes."""
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise TypeError(
                f"estimator must be a classifier, for example LogisticRegression(); got {self.estimator!r}."
            )
        as_metric(self.metric)
        n = len(y) if hasattr(y, "__len__") else -1
        X, y, weight, groups, kept = self._read_rows(indexable(X), y, sample_weight, groups)
        weigh = True
        if sklearn.get_config()["enable_metadata_routing"]:
            given = {} if sample_weight is None else {"sample_weight": sample_weight}
            params = dict(process_routing(self, "fit", **given, **params).estimator.fit)
            weigh = params.pop("sample_weight", None) is not None  # they travel with the rows
        if len(kept) < n:
            params = {
                name: np.asarray(v)[kept] if hasattr(v, "__len__") and len(v) == n else v
                for name, v in params.items()
            }
        return Routed(X, y, weight, groups, params, weigh)

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


def check_fitted(estimator: Any) -> None:
    """Refuse a classifier that was promised to be fitted and is not."""
    try:
        check_is_fitted(estimator)
    except Exception as error:
        raise type(error)(
            f"prefit=True promises a fitted {type(estimator).__name__}, and it is not. Fit it first, or wrap it in "
            "sklearn.frozen.FrozenEstimator where something clones it (a search, cross_val_score)."
        ) from error

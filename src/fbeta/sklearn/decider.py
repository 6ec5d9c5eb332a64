"""What the estimators share: scores and a `Decision` give margins, labels and probabilities."""

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import check_consistent_length, check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from fbeta.decisions import Calibrator, Decision, Threshold
from fbeta.decisions.abstention import ASK
from fbeta.decisions.class_scores import prices_of
from fbeta.learners.crossfit import Array, take
from fbeta.learners.ensemble import check_ensemble
from fbeta.metrics import as_metric
from fbeta.sklearn.labels import Labels, inner_folds, positive_of_prices, read_weight, read_y
from fbeta.sklearn.scoring import metric_of


class Given(NamedTuple):
    """What `fit` was handed: `kept` are the rows of weight above zero, `params` are for an estimator inside."""

    X: Any
    y: NDArray[Any]
    weight: Array | None
    groups: NDArray[Any] | None
    kept: NDArray[np.int64]
    params: Mapping[str, Any] = {}
    weigh: bool = True


class Decider(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that decides by scores; a subclass writes `_scores` and calls `_decide` in its `fit`.

    Fitted: `decision_` (how scores become probabilities and decisions), `cuts_` (its cuts, a `Threshold` of
    probabilities per column), `classes_` (sorted), `positive_` (the positive one of two classes).
    """

    metric: Any
    rule: Any
    cv: Any
    average: str
    pos_label: Any
    random_state: Any
    labels_: Labels
    decision_: Decision
    classes_: NDArray[Any]

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Scores of each column, before calibration; shape (n, K)."""

    @property
    def cuts_(self) -> tuple[Threshold, ...]:
        """The cut of each column, in probabilities."""
        check_is_fitted(self)
        return self.decision_.cuts

    @property
    def positive_(self) -> Any:
        """The positive one of two classes; None where there are more, or several labels."""
        check_is_fitted(self)
        return self.labels_.pos_label if self.labels_.kind == "binary" else None

    def _margins(self, X: Any) -> Array:
        check_is_fitted(self)
        margin = self.decision_.margin(self._of_columns(self._scores(X)))
        return margin if margin.ndim == 2 else margin[:, None]

    def _of_columns(self, columns: Array) -> Array:
        """As a decision takes them: one column is a vector."""
        return columns[:, 0] if self.labels_.kind == "binary" else columns

    def decision_function(self, X: Any) -> Array:
        """How far each row is on the side of the later class: above 0 exactly where `predict` says ``classes_[1]``.

        For two classes these are log odds above the cut, with the sign turned where the positive class is
        ``classes_[0]``; for labels likewise, one column each; for classes the value of calling each.

        Shape: ``(n,)`` for two classes; ``(n, K)`` for K classes, where the largest wins, and for K labels.
        """
        margin = self._margins(X)
        if self.labels_.kind != "binary":
            return margin
        return margin[:, 0] if self.labels_.positive == 1 else -margin[:, 0]

    def predict(self, X: Any) -> NDArray[Any]:
        """The metric's decision, in the labels of `y`.

        Two classes: the positive one where its probability reaches the cut. Labels: each on its own, or for the average
        "samples" those of a row together. Classes: the one that is worth most to the metric.
        """
        margin = self._margins(X)  # first: it says so if nothing is fitted
        return self.labels_.names(margin)

    def asks(self, X: Any) -> NDArray[np.bool_]:
        """Which rows are for a person, where `abstain` was asked; of the others `predict` says what they are.

        Shape: ``(n,)`` for two classes, ``(n, K)`` for K labels.
        """
        check_is_fitted(self)
        found: NDArray[np.bool_] = self.decision_.outcome(self._of_columns(self._scores(X))) == ASK
        return found

    def predict_proba(self, X: Any) -> Array:
        """Probabilities, which no cut changes.

        Shape: ``(n, 2)``, or ``(n, K)`` for classes (one against the rest, normalised) and for labels.
        """
        check_is_fitted(self)
        p = self.decision_.probability(self._of_columns(self._scores(X)))
        if self.labels_.kind == "binary":
            return np.stack([1 - p, p] if self.labels_.positive == 1 else [p, 1 - p], axis=1)
        return p if self.labels_.kind == "multilabel" else p / p.sum(1, keepdims=True)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The metric of the decisions (not accuracy), averaged as in training over the classes that occur."""
        called, target = self.labels_.called(self._margins(X)), self.labels_.columns(read_y(y))
        metric = as_metric(self.metric)
        if self.labels_.kind == "multiclass" and prices_of(metric) is None:
            there = (called + target).any(0)  # a class that is neither there nor called has no score
            called, target = called[:, there], target[:, there]
        return metric_of(metric, called, target, sample_weight, self.average)

    def adapt(self, X: Any = None, *, at_prevalence: Any = None) -> Self:
        """A copy adapted to rows with another share of positives, which is estimated without their labels.

        `X` are at least 50 new rows; `at_prevalence` is the share in place of them, where it is known. Probabilities
        and cuts move if the share did, see `Decision.adapt`; ``decision_.explain()`` says what was found. For two
        classes the share is that of `positive_`, for labels there is one per column.

        >>> from sklearn.linear_model import LogisticRegression
        >>> from fbeta.sklearn import ThresholdClassifier
        >>> rng = np.random.default_rng(0)
        >>> y = rng.random(2000) < 0.1
        >>> x = rng.normal(2.0 * y)[:, None]
        >>> model = ThresholdClassifier(LogisticRegression(), "f1", random_state=0).fit(x, y)
        >>> later = rng.normal(2.0 * (rng.random(2000) < 0.4))[:, None]
        >>> model.adapt(x).decision_.moved, model.adapt(later).decision_.moved
        (False, True)
        """
        check_is_fitted(self)
        scores = None if X is None else self._of_columns(self._scores(X))
        made = copy.copy(self)
        made.decision_ = self.decision_.adapt(scores, at_prevalence=at_prevalence)
        return made

    def _checked(self, X: Any, y: Any = None, **options: Any) -> Any:
        """The rows as scikit-learn checks them; with a target they are those to learn from."""
        if y is None:
            return validate_data(self, X, reset=False, **options)
        target = read_y(y)
        return validate_data(self, X, target, multi_output=target.ndim == 2, **options)[0]

    def _read_rows(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Given:
        """Check lengths and weights; a weight of 0 is no row, for folds and cuts as well."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = read_y(y)
        check_consistent_length(X, y, groups)
        g = None if groups is None else np.asarray(groups)
        weight = None if sample_weight is None else read_weight(sample_weight, len(y))
        kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
        if weight is None or len(kept) == len(y):
            return Given(X, y, weight, g, kept)
        return Given(take(X, kept), y[kept], weight[kept], None if g is None else g[kept], kept)

    def _read_labels(self, y: Any, classes: Any = None) -> None:
        """Find out what `y` means, and refuse, before anything is fitted, options that several classes cannot have."""
        pos_label = positive_of_prices(as_metric(self.metric), y, self.pos_label, classes)
        self.labels_ = Labels.read(y, self.average, pos_label, classes)
        self.classes_ = self.labels_.classes
        if self.average == "samples" and self._constraints:
            raise ValueError(
                f"{next(iter(self._constraints))} is about single labels; for average='samples' leave it out, or set "
                "average='macro'."
            )
        if self.labels_.kind == "multiclass" and self._constraints:
            raise ValueError(
                f"{next(iter(self._constraints))} is about one decision; y has {len(self.classes_)} classes that "
                "exclude each other. Pick one, for example y == 'fraud', or leave it out."
            )

    def _divide(self, rows: Given) -> tuple[Array, NDArray[np.int64], int]:
        """The columns to decide on, the fold of each row, and a random seed."""
        self._read_labels(rows.y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        fold = inner_folds(self.cv, self.labels_.spread(rows.y), rows.X, rows.groups, seed)
        return self.labels_.columns(rows.y), fold, seed

    @property
    def _constraints(self) -> dict[str, Any]:
        """What was asked of the cut besides the metric."""
        asked = {name: getattr(self, name, None) for name in ("subject_to", "prevalence", "confidence", "abstain")}
        return {name: value for name, value in asked.items() if value is not None}

    def _decide(
        self, scores: Array, target: Array, weight: Array | None, calibration: str | Sequence[Calibrator]
    ) -> None:
        """Fit `decision_` on rows that the models of these scores never saw."""
        self.labels_.check_both(target)
        self.decision_ = Decision.fit(
            self._of_columns(scores),
            self._of_columns(target),
            self.metric,
            weight,
            kind="logit",
            rule=self.rule,
            calibration=calibration,
            average="macro" if self.average == "binary" else self.average,
            exclusive=self.labels_.kind == "multiclass",
            **self._constraints,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        several = self.average != "binary"
        tags.classifier_tags.multi_class, tags.classifier_tags.multi_label = (
            several and self.average != "samples",
            several,
        )
        return tags


@dataclass(eq=False, repr=False)
class MetaDecider(MetaEstimatorMixin, Decider):  # type: ignore[misc]
    """An estimator around `estimator`, whose scores it cuts."""

    estimator: Any
    metric: Any = "fbeta:beta=1"
    _: KW_ONLY
    rule: Any = "shrunk"
    cv: Any = None
    ensemble: bool = False
    average: str = "binary"
    pos_label: Any = None
    prevalence: float | None = None
    subject_to: Mapping[Any, float] | None = None
    confidence: float | None = None
    abstain: float | str | None = None
    response_method: str = "auto"
    random_state: Any = None

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any, params: dict[str, Any]) -> Given:
        """Check what can be checked without knowing what the estimator takes."""
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise TypeError(
                f"estimator must be a classifier, for example LogisticRegression(); got {self.estimator!r}."
            )
        as_metric(self.metric)
        check_ensemble(self.ensemble)
        n = len(y) if hasattr(y, "__len__") else -1
        rows, weigh = self._read_rows(indexable(X), y, sample_weight, groups), True
        if sklearn.get_config()["enable_metadata_routing"]:
            given = {} if sample_weight is None else {"sample_weight": sample_weight}
            params = dict(process_routing(self, "fit", **given, **params).estimator.fit)
            weigh = params.pop("sample_weight", None) is not None  # they travel with the rows
        params = {name: of_rows(value, rows.kept, n) for name, value in params.items()}
        return rows._replace(params=params, weigh=weigh)

    def _remember(self, model: Any) -> None:
        """Take over what a fitted model knows of its input."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

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
        return tags


def check_whole(name: str, value: Any, otherwise: str = "") -> None:
    """Refuse what is no integer from 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an integer from 1{otherwise}; got {value!r}.")


def of_rows(value: Any, numbers: NDArray[np.int64], rows: int) -> Any:
    """A parameter of `fit` for some rows: cut to them if it has one value for each of so many rows."""
    per_row = hasattr(value, "__len__") and not isinstance(value, str | dict) and len(value) == rows
    if not per_row or len(numbers) == rows:
        return value
    return take(value if hasattr(value, "iloc") else np.asarray(value), numbers)


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

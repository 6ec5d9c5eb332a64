"""What the estimators share: scores and a `Decision` give margins, labels and probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted

from fbeta.decisions import Decision, Platt, Threshold
from fbeta.learners import take
from fbeta.metrics import as_metric
from fbeta.sklearn.labels import Array, Labels, read_y
from fbeta.sklearn.scoring import metric_of


class Given(NamedTuple):
    """What `fit` was handed, read: rows of weight zero are gone."""

    X: Any
    y: NDArray[Any]
    weight: Array | None
    groups: NDArray[Any] | None
    kept: NDArray[np.int64]


class Decider(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that decides by scores; a subclass writes `_scores` and calls `_decide` in its `fit`.

    Fitted: `decision_` (how scores become probabilities and decisions), `cuts_` (its cuts, a `Threshold` of
    probabilities per column), `classes_` (sorted), `positive_` (the positive one of two classes).
    """

    metric: Any
    average: str
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

        Two classes: the positive one where its probability reaches the cut. Labels: each on its own. Classes: the one
        that is worth most to the metric.
        """
        margin = self._margins(X)
        return self.labels_.names(margin)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities, which no cut changes.

        Shape: ``(n, 2)``, or ``(n, K)`` for classes (one against the rest, normalised) and for labels.
        """
        check_is_fitted(self)
        p = self.decision_.probability(self._of_columns(self._scores(X)))
        if self.labels_.kind == "binary":
            return self.labels_.in_order(p[:, None])
        return p if self.labels_.kind == "multilabel" else p / p.sum(1, keepdims=True)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The metric of the decisions (not accuracy), averaged as in training over the classes that occur."""
        called, target = self.labels_.called(self._margins(X)), self.labels_.columns(read_y(y))
        if self.labels_.kind == "multiclass":  # a class that is neither there nor called has no score
            there = (called + target).any(0)
            called, target = called[:, there], target[:, there]
        return metric_of(as_metric(self.metric), called, target, sample_weight, self.average)

    def _read_rows(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Given:
        """Check lengths and weights; a weight of 0 is no row, for folds and cuts as well."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = read_y(y)
        check_consistent_length(X, y, groups)
        g = None if groups is None else np.asarray(groups)
        everything = np.arange(len(y))
        if sample_weight is None:
            return Given(X, y, None, g, everything)
        weight = read_weight(sample_weight, len(y))
        kept = np.flatnonzero(weight > 0)
        if len(kept) == len(y):
            return Given(X, y, weight, g, everything)
        return Given(take(X, kept), y[kept], weight[kept], None if g is None else g[kept], kept)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _for_one_decision(self, **options: Any) -> None:
        """Refuse, before anything is fitted, options that several classes cannot have."""
        given = [name for name, value in options.items() if value is not None]
        if given and self.labels_.kind == "multiclass":
            raise ValueError(
                f"{given[0]} is about one decision; y has {len(self.labels_.classes)} classes that exclude each other. "
                "Pick one, for example y == 'fraud', or leave it out."
            )

    def _decide(
        self,
        scores: Array,
        target: Array,
        weight: Array | None,
        rule: Any,
        calibration: str | Sequence[Platt],
        **constraints: Any,
    ) -> None:
        """Fit `decision_` on rows that the models of these scores never saw."""
        self.labels_.check_both(target)
        self.decision_ = Decision.fit(
            self._of_columns(scores),
            self._of_columns(target),
            self.metric,
            weight,
            kind="logit",
            rule=rule,
            calibration=calibration,
            average="micro" if self.average == "micro" else "macro",
            exclusive=self.labels_.kind == "multiclass",
            **constraints,
        )


def read_weight(sample_weight: Any, rows: int) -> Array:
    """Check row weights: one number for all or one per row, finite, none negative, not all zero.

    >>> read_weight([1, 2], 2), read_weight(1.0, 2)
    (array([1., 2.]), array([1., 1.]))
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

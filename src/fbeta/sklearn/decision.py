"""What the estimators share: log odds and a cut a column give decisions, labels and probabilities."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fbeta.decisions import Platt, Steps, Threshold, tune
from fbeta.decisions.calibration import sigmoid
from fbeta.metrics import Confusion, Metric
from fbeta.metrics import metric as read_metric
from fbeta.sklearn.calls import Gains, best_calls
from fbeta.sklearn.labels import Array, Labels, read_y
from fbeta.sklearn.scoring import metric_of

#: Stands for a cut at infinity, 'none' or 'all', where decisions must be finite.
FAR = 1e9
#: Log odds from which on a probability is 1 to the last digit.
CERTAIN = 36.75


class Decider(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that decides each column by its log odds against a cut.

    A fitted one has `labels_`, `thresholds_` and `cuts_` (log odds, one a column), and for classes `gains_`; a subclass
    writes `_log_odds`.
    """

    metric: Any
    average: str
    labels_: Labels
    thresholds_: list[Threshold]
    cuts_: Array
    classes_: NDArray[Any]
    gains_: Gains | None = None

    @abstractmethod
    def _log_odds(self, X: Any) -> Array:
        """Log odds of each column, calibrated as far as the model is; shape (n, K)."""

    def _margins(self, X: Any) -> Array:
        check_is_fitted(self)
        log_odds = self._log_odds(X)
        if self.gains_ is not None:
            return self.gains_(_normalised(sigmoid(log_odds)))
        margin: Array = log_odds - self.cuts_
        # A score at the cut itself is positive.
        return np.where(margin == 0, np.finfo(np.float64).tiny, margin)

    def decision_function(self, X: Any) -> Array:
        """Log odds above the cut: positive exactly where `predict` says so. For classes the value of calling each.

        Shape: ``(n,)`` for two classes; ``(n, K)`` for K classes, where the largest wins, and for K labels.
        """
        margin = self._margins(X)
        return margin[:, 0] if self.labels_.kind == "binary" else margin

    def predict(self, X: Any) -> NDArray[Any]:
        """The metric's decision, in the labels of `y`.

        Two classes: the positive one where its log odds exceed the cut. Labels: each on its own. Classes: the one
        that is worth most to the metric, see `Gains`.
        """
        margin = self._margins(X)
        return self.labels_.names(margin)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities, which no cut changes.

        Shape: ``(n, 2)``, or ``(n, K)`` for classes (one against the rest, normalised) and for labels.
        """
        check_is_fitted(self)
        p: Array = sigmoid(self._log_odds(X))
        if self.labels_.kind == "binary":
            return np.concatenate([1 - p, p], axis=1)
        return p if self.labels_.kind == "multilabel" else _normalised(p)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The metric of the decisions (not accuracy), averaged as in training over the classes that occur."""
        called, target = self.labels_.called(self._margins(X)), self.labels_.columns(read_y(y))
        if self.labels_.kind == "multiclass":  # a class that is neither there nor called has no score
            there = (called + target).any(0)
            called, target = called[:, there], target[:, there]
        return metric_of(read_metric(self.metric), called, target, sample_weight, self.average)

    def _for_one_decision(self, **options: Any) -> None:
        """Refuse, before anything is fitted, options that several classes cannot have."""
        given = [name for name, value in options.items() if value is not None]
        if given and self.labels_.kind == "multiclass":
            raise ValueError(
                f"{given[0]} is about one decision; y has {len(self.labels_.classes)} classes that exclude each other. "
                "Pick one, for example y == 'fraud', or leave it out."
            )

    def _cut(
        self,
        log_odds: Array,
        target: Array,
        weight: Array | None,
        rule: Any,
        own: Array | None = None,
        **options: Any,
    ) -> None:
        """Choose `thresholds_` and `cuts_` on rows that the models of these scores never saw."""
        self.labels_.check_both(target)
        self.gains_ = None
        m = read_metric(self.metric)
        if isinstance(rule, str) and rule == "own" and own is not None:
            self.thresholds_ = []
            self.cuts_ = own
            return
        p = sigmoid(log_odds)
        if self.labels_.kind == "multiclass":
            self._choose(_normalised(p), target, m, weight, rule)
            return
        if self.average == "micro":  # one cut for all labels: what micro averages pool
            w = None if weight is None else np.repeat(weight, p.shape[1])
            cut = tune(p.ravel(), target.ravel(), m, w, rule=rule, **options)
            self.thresholds_ = [cut] * p.shape[1]
        else:
            self.thresholds_ = [
                tune(p[:, k], target[:, k], m, weight, rule=rule, **options) for k in range(p.shape[1])
            ]
        self.cuts_ = np.array([_log_odds_of(cut.value) for cut in self.thresholds_])

    def _choose(self, p: Array, target: Array, m: Metric, weight: Array | None, rule: Any) -> None:
        """The values of calls; `cuts_` and `thresholds_` say what each class would be cut at on its own."""
        self.gains_ = best_calls(p, target, m, weight, rule)
        called = self.labels_.called(self.gains_(p))
        wide = None if weight is None else np.broadcast_to(weight[:, None], p.shape)
        scores = np.asarray(m(Confusion.from_predictions(called, target, wide, axis=0)))
        values = self.gains_.offset / self.gains_.gain
        self.thresholds_ = [
            Threshold(float(value), float(score), int(count))
            for value, score, count in zip(values, scores, called.sum(0), strict=True)
        ]
        self.cuts_ = np.array([_log_odds_of(value) for value in values])


def calibrate(scores: Array, target: Array, weight: Array | None) -> tuple[Array, Array]:
    """Platt scaling of every column, on out-of-fold rows: slopes and offsets of log odds.

    Shape: `scores` and `target` ``(n, K)``; results ``(K,)``.

    >>> slope, offset = calibrate(np.array([[3.0], [1.0], [2.0], [0.0]]), np.array([[1], [0], [1], [0]]), None)
    >>> slope.shape, bool(slope[0] > 0)
    ((1,), True)
    """
    found = []
    for k in range(scores.shape[1]):
        # Scores that happen to lie in [0, 1] must not be taken for probabilities.
        top = scores[:, k].max() + 1
        platt = Platt.fit(Steps.of(scores[:, k] - top, target[:, k], weight))
        # Scores without any order still have a sign: a slope of exactly 0 would lose it.
        slope = max(platt.slope, 1e-6 / max(float(np.std(scores[:, k])), 1e-6))
        found.append((slope, platt.offset - platt.slope * top))
    slopes, offsets = np.array(found).T
    return slopes, offsets


def _normalised(p: Array) -> Array:
    # A row that no class wants has probability nowhere; then all are as likely.
    shared: Array = (p + 1e-300) / (p + 1e-300).sum(1, keepdims=True)
    return shared


def _log_odds_of(p: Any) -> float:
    value = float(p)
    if value <= 0 or np.isposinf(value):
        return -FAR if value <= 0 else FAR
    if value >= 1:
        return CERTAIN
    return float(np.log(value) - np.log1p(-value))

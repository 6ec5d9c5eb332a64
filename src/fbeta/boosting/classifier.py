"""What both boosters' estimators share: costs by the fixed point, cut and probabilities from out-of-fold scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from fbeta.boosting import files
from fbeta.boosting.learner import Array, Learner, Model
from fbeta.boosting.objectives import Objective
from fbeta.learners import CrossFit, Round, class_weights, cross_fit, solve
from fbeta.learners import costs as costs_at
from fbeta.metrics import Metric
from fbeta.metrics import metric as read_metric
from fbeta.sklearn.decision import Decider, calibrate
from fbeta.sklearn.labels import Labels, read_y
from fbeta.sklearn.meta import read_weight
from fbeta.sklearn.splitting import inner_folds

LOSSES = ("tangent", "bce", "surrogate")
#: The least slope of calibrated log odds: scores without any use keep their order, and the loss's own cut its place.
FLAT = 1e-6
#: What to do about features that scikit-learn refuses, by its words.
REMEDIES = {
    "contains infinity": "clip it, or make it NaN, which is taken for a missing value",
    "could not convert string": "encode categories as numbers first, for example with OrdinalEncoder",
}
#: What the estimator decides itself, and `params` may not.
OWN = {"objective", "num_class", "base_score", "boost_from_average", "scale_pos_weight", "is_unbalance"}


class BoosterClassifier(Decider):
    """A booster trained for a metric; `XGBMetricClassifier` and `LGBMMetricClassifier` say how."""

    average = "binary"
    _library: ClassVar[str]
    _learner: ClassVar[type[Learner]]
    _objective: ClassVar[Callable[..., Objective]]
    _suffix: ClassVar[str]
    _dtype: ClassVar[type]

    loss: str
    q: float
    rule: Any
    cv: Any
    average_folds: bool
    early_stopping_rounds: int | None
    rounds: int
    damping: float
    pos_label: Any
    n_estimators: int
    random_state: Any
    params: dict[str, Any] | None

    models_: list[Model]
    history_: tuple[Round, ...]
    costs_: tuple[float, float]
    n_rounds_: int
    out_of_fold_: Array

    @property
    def boundary_(self) -> float:
        """The log odds of the loss's own cut, where the booster's score is 0."""
        return float(np.squeeze(self._offset))

    @abstractmethod
    def _params(self, seed: int) -> dict[str, Any]:
        """The library's parameters, by its own names."""

    @staticmethod
    @abstractmethod
    def _read_booster(path: Path) -> Any:
        """A booster from the library's own file."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Find the costs and the cut on out-of-fold rows, then fit to all rows (or keep the folds' models).

        `sample_weight` multiplies the costs, and weighs rows for the cut. `groups` stay together in a fold.
        """
        metric = self._check()
        X, target, weight, groups = self._read(X, y, sample_weight, groups)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        fold = inner_folds(self.cv, target, X, groups, seed)
        learner = self._learner(
            X, target, self._params(seed), self.n_estimators, self._custom(metric, weight, target)
        )
        start = 0.5
        if self.early_stopping_rounds is not None:
            plain = class_weights(target, 0.5, weight)
            learner.rounds, at = learner.stop_early(fold, plain, metric, self.early_stopping_rounds)
            start = costs_at(metric, at)[0]
        self.n_rounds_ = learner.rounds
        found = self._fold_models(learner, metric, fold, weight, start)
        if self.average_folds:
            self.models_ = list(found.models)
        else:
            learner.forget()  # all rows need their room
            rows = np.arange(len(target))
            self.models_ = [learner.fit(rows, target, class_weights(target, self.costs_[0], weight))]
        held = found.held
        w = None if weight is None else weight[held]
        scores, truth = found.scores[held, None], target[held, None]
        slope, self._offset = calibrate(scores, truth, w)
        self._slope = np.maximum(slope, FLAT)
        log_odds = self._slope * scores + self._offset
        self.out_of_fold_ = np.full(len(target), np.nan)
        self.out_of_fold_[held] = log_odds[:, 0]
        # The loss's own cut is at score 0.
        self._cut(log_odds, truth, w, self.rule, own=self._offset)
        return self

    def _fold_models(
        self, learner: Learner, metric: Metric, fold: Any, weight: Array | None, start: float
    ) -> CrossFit[Model]:
        rows = np.arange(len(learner.y))
        if self.loss != "tangent":
            self.costs_, self.history_ = (0.5, 0.5), ()
            return cross_fit(learner.fit, learner.score, rows, learner.y, fold, weight)
        point = solve(
            learner.fit,
            learner.score,
            rows,
            learner.y,
            metric,
            fold,
            weight,
            rounds=self.rounds,
            damping=self.damping,
            start=start,
        )
        self.costs_, self.history_ = point.costs, point.history
        return point.crossfit

    def _custom(self, metric: Metric, weight: Array | None, target: Any) -> Callable[[], Objective] | None:
        """A custom objective only where the library's own logistic loss is another model."""
        if self.loss == "surrogate":
            share = float(np.average(target, weights=weight))
            return partial(self._objective, metric, loss="surrogate", prevalence=share, q=self.q)
        if self.loss == "tangent" and self.q > 0:
            return partial(self._objective, metric, costs=(0.5, 0.5), q=self.q)  # the weights hold the costs
        return None

    def _check(self) -> Metric:
        """Read what can be wrong without looking at rows."""
        metric = read_metric(self.metric)
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}; got {self.loss!r}.")
        if isinstance(self.q, str) or not 0.0 <= self.q <= 1.0:
            raise ValueError(f"q must lie in [0, 1] (0: logarithm, 1: absolute error); got {self.q!r}.")
        if self.loss == "bce" and self.q:
            raise ValueError("q belongs to the tangent and the surrogate loss; leave it 0 with loss='bce'.")
        for name in ("n_estimators", "early_stopping_rounds"):
            value = getattr(self, name)
            missing = value is None and name == "early_stopping_rounds"
            if not missing and (
                isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1
            ):
                raise ValueError(f"{name} must be an integer from 1; got {value!r}.")
        if taken := sorted(OWN & set(self.params or {})):
            raise ValueError(
                f"{type(self).__name__} sets {', '.join(taken)} itself, from loss and metric; leave it out of params."
            )
        return metric

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> tuple[Any, Any, Array | None, Any]:
        """Check rows; those of weight zero are no rows."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X = self._table(X, reset=True)
        y = read_y(y)
        check_consistent_length(X, y, sample_weight, groups)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            # The first sentence is what scikit-learn's own checks look for.
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}; for the mean over "
                f"classes (macro) wrap it: sklearn.multiclass.OneVsRestClassifier({type(self).__name__}(...))."
            )
        weight = None if sample_weight is None else read_weight(sample_weight, len(y))
        groups = None if groups is None else np.asarray(groups)
        if weight is not None and not (weight > 0).all():
            kept = np.flatnonzero(weight > 0)
            X, y, weight = X[kept], y[kept], weight[kept]
            groups = None if groups is None else groups[kept]
        self.labels_ = Labels.read(y, pos_label=self.pos_label)
        self.classes_ = self.labels_.classes
        return X, self.labels_.columns(y)[:, 0].astype(np.int64), weight, groups

    def _table(self, X: Any, reset: bool) -> Any:
        try:
            return validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=self._dtype,
                order="C",
                ensure_all_finite="allow-nan",  # a missing value; infinity is refused
            )
        except ValueError as error:
            for says, remedy in REMEDIES.items():
                if says in str(error):
                    raise ValueError(f"{str(error).rstrip('.')}; {remedy}.") from error
            raise

    def _log_odds(self, X: Any) -> Array:
        rows = self._table(X, reset=False)
        parts = [self._learner.scores(model, rows) for model in self.models_]
        log_odds: Array = self._slope * np.mean(parts, axis=0) + self._offset
        return log_odds[:, None]

    def save_model(self, path: str | Path) -> None:
        """Write a folder: the library's own model files, and a small JSON with metric, cut, costs and classes.

        Nothing in it is executed when it is read; there is no pickle.
        """
        check_is_fitted(self)
        files.save(self, Path(path))

    def load_model(self, path: str | Path) -> Self:
        """Read what `save_model` wrote into this estimator."""
        files.load(self, Path(path))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = False
        return tags

"""What both boosters' estimators share: the learner of `fbeta.learners`, and the decision on its out-of-fold scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from fbeta.boosting import files
from fbeta.learners import Goal, Rows
from fbeta.learners.booster import BoosterLearner
from fbeta.metrics import as_metric
from fbeta.sklearn.cv import inner_folds
from fbeta.sklearn.decider import Decider
from fbeta.sklearn.labels import Array, Labels

#: What to do about features that scikit-learn refuses, by its words.
REMEDIES = {
    "contains infinity": "clip it, or make it NaN, which is taken for a missing value",
    "could not convert string": "encode categories as numbers first, for example with OrdinalEncoder",
}
#: What the estimator decides itself, and `params` may not.
OWN = {"objective", "num_class", "base_score", "boost_from_average", "scale_pos_weight", "is_unbalance"}


@dataclass(eq=False, repr=False)
class BoosterClassifier(Decider):
    """A booster trained for a metric; `XGBMetricClassifier` and `LGBMMetricClassifier` say how."""

    average: ClassVar[str] = "binary"  # type: ignore[misc]
    _learner: ClassVar[type[BoosterLearner]]
    #: The library's own names of parameters that have other ones here, or are arguments of their own.
    _names: ClassVar[Mapping[str, str]]

    metric: Any = "fbeta:beta=1"
    _: KW_ONLY
    loss: str = "tangent"
    q: float = 0.0
    rule: Any = "shrunk"
    cv: Any = None
    average_folds: bool = False
    early_stopping_rounds: int | None = None
    rounds: int = 5
    damping: float = 0.5
    pos_label: Any = None
    n_estimators: int = 100
    learning_rate: float | None = None
    max_depth: int | None = None
    min_child_weight: float | None = None
    subsample: float | None = None
    colsample_bytree: float | None = None
    reg_alpha: float | None = None
    reg_lambda: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
    params: dict[str, Any] | None = None

    @property
    def boundary_(self) -> float:
        """The log odds of the loss's own cut, where the booster's score is 0."""
        return float(self.decision_.log_odds(0.0))

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Find the costs and the cut on out-of-fold rows, then fit to all rows (or keep the folds' models).

        `sample_weight` multiplies the costs, and weighs rows for the cut. `groups` stay together in a fold.
        """
        self._check()
        X, y, weight, groups, _ = self._read_rows(self._table(X, reset=True), y, sample_weight, groups)
        self.labels_ = self._labels(y)
        self.classes_ = self.labels_.classes
        target, seed = self.labels_.columns(y), self._seed()
        rows = Rows(X, target, inner_folds(self.cv, target[:, 0].astype(np.int64), X, groups, seed), weight)
        given = {name: getattr(self, ours) for ours, name in self._names.items()}
        given = {name: value for name, value in given.items() if value is not None}
        learner = self._learner(
            rounds=self.n_estimators,
            patience=self.early_stopping_rounds,
            iterations=self.rounds,
            damping=self.damping,
            q=self.q,
            refit=not self.average_folds,
            params={**given, **(self.params or {})},
        )
        found = learner.fit_folds(rows, Goal(as_metric(self.metric)), [self.loss], seed=seed)[self.loss]
        self.models_: list[Any] = list(found.of_folds if self.average_folds else (found.model,))
        self.n_rounds_, self.costs_, self.history_ = (
            found.rounds,
            found.extra["costs"],
            found.extra["history"],
        )
        self._decide(*rows.held_out(found.scores), self.rule, "platt")
        self.out_of_fold_ = self.decision_.log_odds(found.scores[:, 0])
        return self

    def _check(self) -> None:
        """Refuse what can be wrong without looking at rows."""
        as_metric(self.metric)
        losses = self._learner.losses or ()
        if self.loss not in losses:
            raise ValueError(f"loss must be one of {', '.join(losses)}; got {self.loss!r}.")
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

    def _labels(self, y: Any) -> Labels:
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            # The first sentence is what scikit-learn's own checks look for.
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}; for the mean over "
                f"classes (macro) wrap it: sklearn.multiclass.OneVsRestClassifier({type(self).__name__}(pos_label=1))."
            )
        return Labels.read(y, pos_label=self.pos_label)

    def _table(self, X: Any, reset: bool) -> Any:
        try:
            return validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=self._learner.engine.dtype,
                order="C",
                ensure_all_finite="allow-nan",  # a missing value; infinity is refused
            )
        except ValueError as error:
            for says, remedy in REMEDIES.items():
                if says in str(error):
                    raise ValueError(f"{str(error).rstrip('.')}; {remedy}.") from error
            raise

    def _scores(self, X: Any) -> Array:
        rows = self._table(X, reset=False)
        mean: Array = np.mean([model(rows) for model in self.models_], axis=0)
        return mean

    def save_model(self, path: str | Path) -> None:
        """Write one file: the library's own models, and a small JSON with metric, decision, costs and classes.

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

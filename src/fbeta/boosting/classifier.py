"""Estimators of both boosters: the learner of `fbeta.learners`, and the decision on its out-of-fold scores."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from fbeta.boosting import files
from fbeta.learners import Goal, Rows
from fbeta.learners.booster import BoosterLearner
from fbeta.learners.crossfit import Array
from fbeta.learners.ensemble import check_ensemble, mean_of
from fbeta.learners.models.lightgbm import LightGBM
from fbeta.learners.models.xgboost import XGBoost
from fbeta.metrics import as_metric
from fbeta.metrics.distance import check_q
from fbeta.sklearn.decider import Decider, check_whole

#: What to do about features that scikit-learn refuses, by its words.
REMEDIES = {
    "contains infinity": "clip it, or make it NaN, which is taken for a missing value",
    "could not convert string": "encode categories as numbers first, for example with OrdinalEncoder",
}
#: What the estimator decides itself, and `params` may not.
OWN = {"objective", "num_class", "base_score", "boost_from_average", "scale_pos_weight", "is_unbalance"}
#: What goes to the library under this name unless `_names` has another; None for its default.
TREES = ["learning_rate", "max_depth", "min_child_weight", "subsample", "colsample_bytree", "reg_alpha", "reg_lambda"]


@dataclass(eq=False, repr=False)
class BoosterClassifier(Decider):
    """A booster trained for a metric; `XGBMetricClassifier` and `LGBMMetricClassifier` say how."""

    average: ClassVar[str] = "binary"  # type: ignore[misc]
    _learner: ClassVar[type[BoosterLearner]]
    #: The library's own classifier, which takes several classes.
    _plain: ClassVar[str]
    #: The library's own names of parameters, where they differ from these or are not in `TREES`.
    _names: ClassVar[Mapping[str, str]]

    metric: Any = "fbeta:beta=1"
    _: KW_ONLY
    loss: str = "tangent"
    q: float = 0.0
    rule: Any = "shrunk"
    cv: Any = None
    ensemble: bool = False
    early_stopping_rounds: int | None = None
    rounds: int = 5
    damping: float = 0.5
    pos_label: Any = None
    subject_to: Mapping[Any, float] | None = None
    confidence: float | None = None
    abstain: float | str | None = None
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
        given = self._read_rows(self._table(X, reset=True), y, sample_weight, groups)
        target, fold, seed = self._divide(given)
        rows = Rows(given.X, target, fold, given.weight)
        names = {**dict(zip(TREES, TREES, strict=True)), **self._names}
        params = {name: getattr(self, ours) for ours, name in names.items()}
        params = {name: value for name, value in params.items() if value is not None}
        learner = self._learner(
            rounds=self.n_estimators,
            patience=self.early_stopping_rounds,
            iterations=self.rounds,
            damping=self.damping,
            q=self.q,
            refit=not self.ensemble,
            jobs=self.n_jobs,
            params={**params, **(self.params or {})},
        )
        found = learner.fit_folds(rows, Goal(as_metric(self.metric)), [self.loss], seed=seed)[self.loss]
        self.models_: list[Any] = list(found.of_folds if self.ensemble else (found.model,))
        self.n_rounds_ = found.rounds
        self.costs_, self.history_ = found.extra["costs"], found.extra["history"]
        self._decide(*rows.held_out(found.scores), "platt")
        self.out_of_fold_ = self.decision_.log_odds(found.scores[:, 0])
        return self

    def _check(self) -> None:
        """Refuse what can be wrong without looking at rows."""
        as_metric(self.metric)
        losses = self._learner.losses or ()
        if self.loss not in losses:
            raise ValueError(f"loss must be one of {', '.join(losses)}; got {self.loss!r}.")
        check_q(self.q)
        if self.loss == "bce" and self.q:
            raise ValueError("q belongs to the tangent and the surrogate loss; leave it 0 with loss='bce'.")
        check_whole("n_estimators", self.n_estimators)
        if self.early_stopping_rounds is not None:
            check_whole("early_stopping_rounds", self.early_stopping_rounds)
        check_ensemble(self.ensemble)
        if self.n_jobs is not None and (isinstance(self.n_jobs, bool) or self.n_jobs != -1):
            check_whole("n_jobs", self.n_jobs, ", −1 or None for all cores")
        if taken := sorted(OWN & set(self.params or {})):
            raise ValueError(
                f"{type(self).__name__} sets {', '.join(taken)} itself, from loss and metric; leave it out of params."
            )

    def _read_labels(self, y: Any, classes: Any = None) -> None:
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            # The first sentence is what scikit-learn's own checks look for.
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}; for the mean over "
                f"classes (macro) wrap it: sklearn.multiclass.OneVsRestClassifier({type(self).__name__}(pos_label=1)), "
                f"or let one booster learn all classes: ThresholdClassifier({self._plain}(), average='macro')."
            )
        super()._read_labels(y, classes)

    def _table(self, X: Any, reset: bool) -> Any:
        try:
            return validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=self._learner.engine.booster.dtype,
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
        return mean_of([model(rows) for model in self.models_])

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
        return tags


@dataclass(eq=False, repr=False)
class XGBMetricClassifier(BoosterClassifier):
    r"""XGBoost, trained and cut for a metric.

    .. math:: c_1 \propto \frac{\partial M/\partial t}{\pi}, \qquad c_0 \propto \frac{-\partial M/\partial u}{1 - \pi}
              \qquad \text{at the out-of-fold operating point}

    - `metric`: a `Metric`, a spec such as "fbeta:beta=2", or a function of (tp, fp, fn, tn).
    - `loss`: "tangent" (XGBoost's own logistic loss with class costs from the fixed point of `fbeta.learners`; with
      `q` > 0 a custom objective), "bce" (no costs: only the cut is the metric's) or "surrogate" (the paper's).
    - `rule`: the cut, from out-of-fold scores: "shrunk", "exact", "plugin", "constant" (see `fbeta.decisions`), or
      "own" for the loss's own cut at log odds 0.
    - `cv`: folds: None (five, fewer where a class is small), a number, or a splitter.
    - `ensemble`: keep the models of the folds and average their log odds, instead of one more fit on all rows; five
      times as slow to predict, and no sure gain (docs/boosting.md).
    - `early_stopping_rounds`: stop where the metric of the out-of-fold rows has not risen for so many rounds;
      `n_estimators` is then the most there may be.
    - `subject_to`, `confidence`, `abstain`: promises, and rows for a person, as in `ThresholdClassifier`.
    - `rounds`, `damping`: of the fixed point. `pos_label`: the positive class; None is the rarer one.
    - `n_estimators` … `reg_lambda`: XGBoost's own, None its defaults; `params`: any others, by its names. Only
      `max_delta_step` is 3, without which rare positives make it diverge.
    - `n_jobs`: how many cores to keep busy, None or −1 for all: folds are trained at once, each with one thread unless
      the table is large. The numbers are the same for any.

    Fitted: `classes_`, `positive_`, `costs_` (c₀, c₁), `decision_`, `cuts_`, `n_rounds_`, `models_`, `history_`,
    `out_of_fold_` (log odds of the rows by models that did not see them), `boundary_` (log odds of the loss's own cut).

    Shape: X ``(n, d)``, dense or CSR, NaN is a missing value; y ``(n,)`` with two classes.

    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = XGBMetricClassifier("fbeta:beta=2", n_estimators=20, pos_label=0, n_jobs=1).fit(X, y)
    >>> model.score(X, y) > 0.95, model.predict_proba(X).shape
    (True, (569, 2))

    Reference: [chen2016], [narasimhan2015]
    """

    _learner, _plain = XGBoost, "XGBClassifier"
    _names: ClassVar = {"gamma": "gamma"}

    _: KW_ONLY
    gamma: float | None = None


@dataclass(eq=False, repr=False)
class LGBMMetricClassifier(BoosterClassifier):
    """LightGBM, trained and cut for a metric.

    `n_estimators` … `reg_lambda` are LightGBM's own, None its defaults; `params`: any others, by its names. Only
    `max_delta_step` is 3, without which rare positives make it diverge. Everything else: see `XGBMetricClassifier`.

    Shape: X ``(n, d)``, dense or CSR, NaN is a missing value; y ``(n,)`` with two classes.

    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LGBMMetricClassifier("fbeta:beta=2", n_estimators=20, pos_label=0, n_jobs=1).fit(X, y)
    >>> model.score(X, y) > 0.95, model.predict_proba(X).shape
    (True, (569, 2))

    Reference: [ke2017], [narasimhan2015]
    """

    _learner, _plain = LightGBM, "LGBMClassifier"
    _names: ClassVar = {
        "num_leaves": "num_leaves",
        "min_child_samples": "min_data_in_leaf",
        "min_child_weight": "min_sum_hessian_in_leaf",
        "subsample": "bagging_fraction",
        "subsample_freq": "bagging_freq",
        "colsample_bytree": "feature_fraction",
        "reg_alpha": "lambda_l1",
        "reg_lambda": "lambda_l2",
    }

    _: KW_ONLY
    num_leaves: int | None = None
    min_child_samples: int | None = None
    subsample_freq: int | None = None

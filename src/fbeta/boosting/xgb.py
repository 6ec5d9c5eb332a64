"""XGBoost."""

from __future__ import annotations

from typing import Any

from fbeta.boosting.classifier import BoosterClassifier
from fbeta.learners.models.xgboost import XGBoost

try:
    import xgboost as _xgboost  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("XGBMetricClassifier needs XGBoost: pip install 'fbeta[boosting]'") from error


class XGBMetricClassifier(BoosterClassifier):
    r"""XGBoost, trained and cut for a metric.

    .. math:: c_1 \propto \frac{\partial M/\partial t}{\pi}, \qquad c_0 \propto \frac{-\partial M/\partial u}{1 - \pi}
              \qquad \text{at the out-of-fold operating point}

    - `metric`: a `Metric`, a spec such as "fbeta:beta=2", or a function of (tp, fp, fn, tn).
    - `loss`: "tangent" (XGBoost's own logistic loss with class costs from the fixed point of `fbeta.learners`; with
      `q` > 0 a custom objective), "bce" (no costs: only the cut is the metric's) or "surrogate" (the paper's).
    - `rule`: the cut, from out-of-fold scores: "shrunk", "exact", "plugin", "constant" (see `fbeta.decisions`), or
      "own" for the loss's own cut at log odds 0.
    - `cv`: folds: None (five, fewer where a class is small), a number, or a splitter. `average_folds`: keep the
      models of the folds and average their scores instead of one more fit on all rows; better as a rule, and
      slower to predict.
    - `early_stopping_rounds`: stop where the metric of the out-of-fold rows has not risen for so many rounds;
      `n_estimators` is then the most there may be.
    - `rounds`, `damping`: of the fixed point. `pos_label`: the positive class; None is the rarer one.
    - `n_estimators` … `reg_lambda`, `n_jobs`: XGBoost's own, None its defaults; `params`: any others, by its names.
      Only `max_delta_step` is 3, without which rare positives make it diverge.

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

    _learner = XGBoost

    def __init__(
        self,
        metric: Any = "fbeta:beta=1",
        *,
        loss: str = "tangent",
        q: float = 0.0,
        rule: Any = "shrunk",
        cv: Any = None,
        average_folds: bool = False,
        early_stopping_rounds: int | None = None,
        rounds: int = 5,
        damping: float = 0.5,
        pos_label: Any = None,
        n_estimators: int = 100,
        learning_rate: float | None = None,
        max_depth: int | None = None,
        min_child_weight: float | None = None,
        gamma: float | None = None,
        subsample: float | None = None,
        colsample_bytree: float | None = None,
        reg_alpha: float | None = None,
        reg_lambda: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        params: dict[str, Any] | None = None,
    ) -> None:
        self.metric = metric
        self.loss = loss
        self.q = q
        self.rule = rule
        self.cv = cv
        self.average_folds = average_folds
        self.early_stopping_rounds = early_stopping_rounds
        self.rounds = rounds
        self.damping = damping
        self.pos_label = pos_label
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.gamma = gamma
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.reg_alpha = reg_alpha
        self.reg_lambda = reg_lambda
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.params = params

    def _params(self) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate,
            "max_depth": self.max_depth,
            "min_child_weight": self.min_child_weight,
            "gamma": self.gamma,
            "subsample": self.subsample,
            "colsample_bytree": self.colsample_bytree,
            "reg_alpha": self.reg_alpha,
            "reg_lambda": self.reg_lambda,
            "nthread": self.n_jobs,
        }

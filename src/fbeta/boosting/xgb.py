"""XGBoost."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from fbeta.boosting.classifier import BoosterClassifier
from fbeta.learners.models.xgboost import XGBoost

try:
    import xgboost as _xgboost  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("XGBMetricClassifier needs XGBoost: pip install 'fbeta[boosting]'") from error


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
    _names: ClassVar = {
        "learning_rate": "learning_rate",
        "max_depth": "max_depth",
        "min_child_weight": "min_child_weight",
        "gamma": "gamma",
        "subsample": "subsample",
        "colsample_bytree": "colsample_bytree",
        "reg_alpha": "reg_alpha",
        "reg_lambda": "reg_lambda",
        "n_jobs": "nthread",
    }

    _: KW_ONLY
    gamma: float | None = None

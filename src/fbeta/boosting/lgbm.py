"""LightGBM."""

from __future__ import annotations

from typing import Any

from fbeta.boosting.classifier import BoosterClassifier
from fbeta.learners.models.lightgbm import LightGBM

try:
    import lightgbm as _lightgbm  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("LGBMMetricClassifier needs LightGBM: pip install 'fbeta[boosting]'") from error


class LGBMMetricClassifier(BoosterClassifier):
    r"""LightGBM, trained and cut for a metric.

    .. math:: c_1 \propto \frac{\partial M/\partial t}{\pi}, \qquad c_0 \propto \frac{-\partial M/\partial u}{1 - \pi}
              \qquad \text{at the out-of-fold operating point}

    `n_estimators` … `reg_lambda` and `n_jobs` are LightGBM's own, None its defaults; `params`: any others, by its
    names. Only `max_delta_step` is 3, without which rare positives make it diverge. Everything else: see
    `XGBMetricClassifier`.

    Shape: X ``(n, d)``, dense or CSR, NaN is a missing value; y ``(n,)`` with two classes.

    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LGBMMetricClassifier("fbeta:beta=2", n_estimators=20, pos_label=0, n_jobs=1).fit(X, y)
    >>> model.score(X, y) > 0.95, model.predict_proba(X).shape
    (True, (569, 2))

    Reference: [ke2017], [narasimhan2015]
    """

    _learner = LightGBM

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
        num_leaves: int | None = None,
        max_depth: int | None = None,
        min_child_samples: int | None = None,
        min_child_weight: float | None = None,
        subsample: float | None = None,
        subsample_freq: int | None = None,
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
        self.num_leaves = num_leaves
        self.max_depth = max_depth
        self.min_child_samples = min_child_samples
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.subsample_freq = subsample_freq
        self.colsample_bytree = colsample_bytree
        self.reg_alpha = reg_alpha
        self.reg_lambda = reg_lambda
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.params = params

    def _params(self) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "max_depth": self.max_depth,
            "min_data_in_leaf": self.min_child_samples,
            "min_sum_hessian_in_leaf": self.min_child_weight,
            "bagging_fraction": self.subsample,
            "bagging_freq": self.subsample_freq,
            "feature_fraction": self.colsample_bytree,
            "lambda_l1": self.reg_alpha,
            "lambda_l2": self.reg_lambda,
            "num_threads": self.n_jobs,
        }

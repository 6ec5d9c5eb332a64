"""LightGBM."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from fbeta.boosting.classifier import BoosterClassifier
from fbeta.learners.models.lightgbm import LightGBM

try:
    import lightgbm as _lightgbm  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("LGBMMetricClassifier needs LightGBM: pip install 'fbeta[boosting]'") from error


@dataclass(eq=False, repr=False)
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
    _names: ClassVar = {
        "learning_rate": "learning_rate",
        "num_leaves": "num_leaves",
        "max_depth": "max_depth",
        "min_child_samples": "min_data_in_leaf",
        "min_child_weight": "min_sum_hessian_in_leaf",
        "subsample": "bagging_fraction",
        "subsample_freq": "bagging_freq",
        "colsample_bytree": "feature_fraction",
        "reg_alpha": "lambda_l1",
        "reg_lambda": "lambda_l2",
        "n_jobs": "num_threads",
    }

    _: KW_ONLY
    num_leaves: int | None = None
    min_child_samples: int | None = None
    subsample_freq: int | None = None

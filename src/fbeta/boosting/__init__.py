"""Boosters that optimise the metric you report: XGBoost and LightGBM.

- `XGBMetricClassifier`, `LGBMMetricClassifier`: scikit-learn estimators with costs, cut and probabilities from
  out-of-fold rows.
- `xgboost_objective`, `lightgbm_objective`: the tangent and the surrogate loss for a training call of your own.

Each library loads with its own estimator; the objectives need NumPy only. Nothing here imports torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fbeta.boosting.lgbm import LGBMMetricClassifier as LGBMMetricClassifier
    from fbeta.boosting.xgb import XGBMetricClassifier as XGBMetricClassifier
    from fbeta.learners.objectives import lightgbm_objective as lightgbm_objective
    from fbeta.learners.objectives import xgboost_objective as xgboost_objective

_HOME = {
    "XGBMetricClassifier": "fbeta.boosting.xgb",
    "LGBMMetricClassifier": "fbeta.boosting.lgbm",
    "xgboost_objective": "fbeta.learners.objectives",
    "lightgbm_objective": "fbeta.learners.objectives",
}

__all__ = ["LGBMMetricClassifier", "XGBMetricClassifier", "lightgbm_objective", "xgboost_objective"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fbeta.boosting' has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(_HOME[name]), name)
    except ImportError as error:
        if "fbeta[boosting]" in str(error):
            raise
        raise ImportError(
            f"{name} needs an extra: pip install 'fbeta[boosting]' ({error.__cause__ or error})"
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

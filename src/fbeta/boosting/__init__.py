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
    from fbeta.boosting.classifier import LGBMMetricClassifier as LGBMMetricClassifier
    from fbeta.boosting.classifier import XGBMetricClassifier as XGBMetricClassifier
    from fbeta.learners.objectives import lightgbm_objective as lightgbm_objective
    from fbeta.learners.objectives import xgboost_objective as xgboost_objective

#: What each name needs, and where it lives.
_HOME = {
    "XGBMetricClassifier": ("xgboost", "fbeta.boosting.classifier"),
    "LGBMMetricClassifier": ("lightgbm", "fbeta.boosting.classifier"),
    "xgboost_objective": ("numpy", "fbeta.learners.objectives"),
    "lightgbm_objective": ("numpy", "fbeta.learners.objectives"),
}

__all__ = ["LGBMMetricClassifier", "XGBMetricClassifier", "lightgbm_objective", "xgboost_objective"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fbeta.boosting' has no attribute {name!r}")
    library, home = _HOME[name]
    try:
        importlib.import_module(library)
        return getattr(importlib.import_module(home), name)
    except ImportError as error:
        raise ImportError(f"{name} needs an extra: pip install 'fbeta[boosting]' ({error})") from error

"""Boosters that optimise the metric you report: XGBoost and LightGBM.

- `XGBMetricClassifier`, `LGBMMetricClassifier`: scikit-learn estimators with costs, cut and probabilities from
  out-of-fold rows.
- `xgboost_objective`, `lightgbm_objective`: the tangent and the surrogate loss for a training call of your own.

Each library loads with its own estimator; the objectives need NumPy only. Nothing here imports torch.
"""

from typing import TYPE_CHECKING

from fbeta.spelling import on_first_use

if TYPE_CHECKING:
    from fbeta.boosting.classifier import LGBMMetricClassifier as LGBMMetricClassifier
    from fbeta.boosting.classifier import XGBMetricClassifier as XGBMetricClassifier
    from fbeta.learners.objectives import lightgbm_objective as lightgbm_objective
    from fbeta.learners.objectives import xgboost_objective as xgboost_objective

__all__ = ["LGBMMetricClassifier", "XGBMetricClassifier", "lightgbm_objective", "xgboost_objective"]
_HOME = dict.fromkeys(__all__[:2], "classifier") | dict.fromkeys(__all__[2:], "fbeta.learners.objectives")
_NEEDS = {"LGBMMetricClassifier": ["sklearn", "lightgbm"], "XGBMetricClassifier": ["sklearn", "xgboost"]}
_REMEDY = "fbeta.boosting needs scikit-learn, and XGBoost or LightGBM: pip install 'fbeta[boosting]'"
__getattr__, __dir__ = on_first_use(__name__, _HOME, _NEEDS, _REMEDY)

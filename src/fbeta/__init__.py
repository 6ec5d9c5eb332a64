"""Train for the metric you report.

A confusion-matrix metric is a surface over ROC space; training, thresholding and plotting are three ways to
climb it. Names load on first use, so that ``import fbeta`` costs nothing and thresholds never pay for torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fbeta.comparison import compare as compare
    from fbeta.decisions import Threshold as Threshold
    from fbeta.decisions import tune as tune
    from fbeta.losses import RunningConfusion as RunningConfusion
    from fbeta.losses import SoftLoss as SoftLoss
    from fbeta.losses import SurrogateLoss as SurrogateLoss
    from fbeta.losses import TangentLoss as TangentLoss
    from fbeta.metrics import MCC as MCC
    from fbeta.metrics import Accuracy as Accuracy
    from fbeta.metrics import BalancedAccuracy as BalancedAccuracy
    from fbeta.metrics import Confusion as Confusion
    from fbeta.metrics import Cost as Cost
    from fbeta.metrics import FBeta as FBeta
    from fbeta.metrics import FowlkesMallows as FowlkesMallows
    from fbeta.metrics import GMean as GMean
    from fbeta.metrics import Jaccard as Jaccard
    from fbeta.metrics import Kappa as Kappa
    from fbeta.metrics import Metric as Metric
    from fbeta.metrics import Precision as Precision
    from fbeta.metrics import Recall as Recall
    from fbeta.metrics import Specificity as Specificity
    from fbeta.metrics import Tversky as Tversky
    from fbeta.metrics import as_metric as as_metric
    from fbeta.metrics import metric as metric

__version__ = "0.1.0"

_HOME = {
    "metrics": [
        "Confusion", "Metric", "as_metric", "metric",
        "FBeta", "Jaccard", "Tversky", "Kappa", "MCC", "GMean", "BalancedAccuracy", "Accuracy", "FowlkesMallows",
        "Precision", "Recall", "Specificity", "Cost",
    ],
    "losses": ["SurrogateLoss", "TangentLoss", "SoftLoss", "RunningConfusion"],
    "decisions": ["tune", "Threshold"],
    "comparison": ["compare"],
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

# Modules that `fbeta.name` may load by itself; an extra that is missing says so then.
_MODULES = {
    *_HOME, "artifact", "boosting", "data", "datasets", "explain", "learners", "lightning", "report", "sklearn",
    "tables", "train",
}  # fmt: skip

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(importlib.import_module(f"fbeta.{_MODULE_OF[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"fbeta.{name}")
    else:
        raise AttributeError(f"module 'fbeta' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

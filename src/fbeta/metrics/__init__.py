"""What a score is: confusion-matrix metrics, each one formula, from which slopes, pole and costs follow.

A metric is registered by being defined: a new file in this folder is found by the name of its class.
"""

from fbeta.metrics.anchors import Anchors, Pole
from fbeta.metrics.confusion import Cell, Confusion, divide, root
from fbeta.metrics.costs import class_costs, tangent_costs
from fbeta.metrics.distance import AnchorTerm
from fbeta.metrics.formulas import (
    MCC,
    Accuracy,
    BalancedAccuracy,
    Cost,
    FBeta,
    FowlkesMallows,
    GMean,
    Jaccard,
    Kappa,
    Precision,
    Recall,
    Specificity,
    Tversky,
)
from fbeta.metrics.metric import Metric, check_prevalence
from fbeta.metrics.spec import Custom, as_metric, title
from fbeta.spelling import import_modules

import_modules(__name__, __path__)

#: The old name of `as_metric`.
metric = as_metric

__all__ = [
    "MCC", "Accuracy", "AnchorTerm", "Anchors", "BalancedAccuracy", "Cell", "Confusion", "Cost", "Custom", "FBeta",
    "FowlkesMallows", "GMean", "Jaccard", "Kappa", "Metric", "Pole", "Precision", "Recall", "Specificity",
    "Tversky", "as_metric", "check_prevalence", "class_costs", "divide", "metric", "root", "tangent_costs", "title",
]  # fmt: skip

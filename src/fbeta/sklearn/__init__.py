"""Estimators for scikit-learn that decide by the metric you report.

- `MetricClassifier`: a linear model or a small network, trained with any loss of `fbeta.losses`.
- `TangentMetaClassifier`: any classifier that takes ``sample_weight``, trained at the metric's own costs.
- `ThresholdClassifier`: any classifier, cut where the metric wants it.
- `SVMPerfClassifier`: a linear support vector machine, trained for the metric.
- `scorer`: the metric for `GridSearchCV` and `cross_val_score`.

Only `MetricClassifier` needs torch, and only in `fit`.
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("fbeta.sklearn needs scikit-learn: pip install 'fbeta[sklearn]'") from error

from fbeta.sklearn.metric_classifier import MetricClassifier
from fbeta.sklearn.scoring import metric_score, scorer
from fbeta.sklearn.svm_perf_classifier import SVMPerfClassifier
from fbeta.sklearn.tangent_meta import TangentMetaClassifier
from fbeta.sklearn.threshold_classifier import ThresholdClassifier

__all__ = [
    "MetricClassifier", "SVMPerfClassifier", "TangentMetaClassifier", "ThresholdClassifier", "metric_score", "scorer",
]  # fmt: skip

"""The metric as scikit-learn scores it: `scorer` for searches, `metric_score` for predictions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import make_scorer
from sklearn.utils.multiclass import type_of_target

from fbeta.decisions import row_scores, score_table
from fbeta.decisions.class_scores import prices_of, table_of
from fbeta.decisions.steps import count_columns
from fbeta.learners.crossfit import Array
from fbeta.metrics import Metric, as_metric
from fbeta.sklearn.labels import Labels, check_average, positive_of_prices, read_weight, read_y


def metric_of(metric: Metric, called: Array, target: Array, weight: Any, average: str) -> float:
    """Score decisions ``(n, K)``: pooled for micro, the mean over rows for samples, else the mean over columns.

    For weighted each column weighs as many rows as are positive in it. A cost matrix has one score for all classes.
    """
    weight = None if weight is None else read_weight(weight, len(target))
    if average == "samples":
        return float(np.average(row_scores(called, target, metric), weights=weight))
    if prices_of(metric) is not None and target.shape[1] > 1:
        if not (target.sum(1) == 1).all():
            raise ValueError("A cost matrix is for classes that exclude each other; y holds rows of several labels.")
        return float(score_table(metric, table_of(called.argmax(1), target.argmax(1), target.shape[1], weight)))
    cells = count_columns(called, target, weight, axis=None if average == "micro" else 0)
    shares = cells.positives if average == "weighted" and cells.positives.any() else None
    return float(np.average(metric(cells), weights=shares))


def metric_score(
    y_true: Any,
    y_pred: Any,
    *,
    metric: Any = "fbeta:beta=1",
    average: str = "binary",
    pos_label: Any = None,
    sample_weight: Any = None,
) -> float:
    """Score predictions by any metric, as scikit-learn's own scores do.

    - `average`: "binary" is the score of `pos_label`; "macro" the mean over all classes (two as well) or labels,
      "weighted" that of three or more classes by their rows, "micro" the score of all labels' pooled counts, "samples"
      the mean over rows of labels (a row in which nothing is called or positive scores 1).
    - `pos_label`: the positive of two classes; None is the rarer one of `y_true`.

    Shape: `y_true` and `y_pred` ``(n,)`` with classes, or ``(n, K)`` with labels; `sample_weight` ``(n,)``.

    >>> metric_score(["no", "yes", "yes"], ["yes", "yes", "no"], metric="fbeta:beta=1", pos_label="yes")
    0.5
    """
    true, called = read_y(y_true), read_y(y_pred)
    if true.shape != called.shape:
        raise ValueError(f"y_true and y_pred must have one shape; got {true.shape} and {called.shape}.")
    goal = as_metric(metric)
    if average == "binary" and true.ndim == 1:
        pos_label = positive_of_prices(goal, np.concatenate([true, called]), pos_label)
    labels = _labels(true, called, average, pos_label)
    return metric_of(goal, labels.columns(called), labels.columns(true), sample_weight, average)


def scorer(metric: Any = "fbeta:beta=1", *, average: str = "binary", pos_label: Any = None) -> Any:
    """Make a scorer of a metric for `cross_val_score`, `GridSearchCV` and their kin.

    It scores what `predict` says; `average` and `pos_label` as in `metric_score`: name `pos_label` for the estimator
    and here, or leave it out of both.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DummyClassifier(strategy="constant", constant=1).fit(X, y)
    >>> round(scorer("fbeta:beta=2", pos_label=1)(model, X, y), 3)
    0.894
    """
    # A slip is refused here, not in the middle of a search.
    as_metric(metric)
    check_average(average)
    return make_scorer(metric_score, metric=metric, average=average, pos_label=pos_label)


def _labels(true: NDArray[Any], called: NDArray[Any], average: str, pos_label: Any) -> Labels:
    if true.ndim == 2 or type_of_target(true) == "multilabel-indicator":
        return Labels.read(true, average, pos_label)
    classes = np.unique(np.concatenate([true, called]))
    if average != "binary":  # over the classes that occur; a part of the data need not hold all of them
        if len(classes) > 2:
            return Labels.read(classes, average, pos_label)
        check_average(average)
        return Labels("multiclass", classes).allowed(average, pos_label)
    if len(classes) > 1:
        return Labels.read(true, average, pos_label, classes)
    # A part of the data may hold one class only; which, its rows cannot say.
    only = classes[0]
    if pos_label is None and classes.dtype.kind not in "biuf":
        raise ValueError(f"All rows are {only!r}, which may be positive or not; give pos_label.")
    positive = only > 0 if pos_label is None else only == pos_label
    other = np.array([only, only], dtype=object)
    other[0 if positive else 1] = None
    return Labels("binary", other)

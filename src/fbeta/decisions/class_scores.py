"""Scores of classes that exclude each other, from the table of true and called classes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.decisions.inputs import Vector, read_array
from fbeta.decisions.steps import score_cells
from fbeta.metrics import Confusion, Cost, Metric

AVERAGES = ("macro", "weighted")
#: Rows of probabilities may miss a sum of one by so much: three digits are often kept.
LOOSE = 0.01
NUMBERED = "For names give np.searchsorted(model.classes_, y)."


def prices_of(metric: Metric) -> Vector | None:
    """The price of each true class (rows) called as each class (columns), if that is what a metric is."""
    return np.array(metric.matrix) if isinstance(metric, Cost) and metric.matrix is not None else None


def class_shares(average: str, counts: Vector) -> Vector:
    """What each class weighs in an average: the same (macro), or its share of rows (weighted).

    Shape: `counts` ``(*, K)``, rows of each class.
    """
    if average not in AVERAGES:
        more = "; micro F of classes that exclude each other is accuracy: tune for 'accuracy'" * (average == "micro")
        raise ValueError(f"average of classes must be 'macro' or 'weighted'; got {average!r}{more}.")
    if average == "weighted":
        weighed: Vector = counts / np.maximum(counts.sum(-1, keepdims=True), 1e-300)
        return weighed
    return np.full(counts.shape, 1 / counts.shape[-1])


def table_of(called: NDArray[Any], label: NDArray[Any], classes: int, weight: Vector | None) -> Vector:
    """The weight of rows of each true class (rows of the table) that were called each class (columns)."""
    cells = np.bincount(label.astype(np.intp) * classes + called, weight, classes * classes)
    return cells.reshape(classes, classes).astype(np.float64)


def cells_of(table: Vector) -> Confusion:
    """The four cells of each class against the rest; ``(*, K)`` from ``(*, K, K)``."""
    tp, true, called = np.diagonal(table, axis1=-2, axis2=-1), table.sum(-1), table.sum(-2)
    return Confusion(tp, called - tp, true - tp, table.sum((-2, -1))[..., None] - true - called + tp)


def score_table(metric: Metric, table: Vector, average: str = "macro") -> Vector:
    r"""The score of calls among K classes: minus the mean price, or the average over classes, each against the rest.

    .. math:: M = \sum_k s_k M(\text{cells of class } k), \qquad s_k = \frac1K \text{ or the class's share of rows}

    Shape: `table` ``(*, K, K)``, rows true and columns called, as `sklearn.metrics.confusion_matrix`; scores ``(*)``.

    >>> from fbeta import Cost, FBeta
    >>> table = np.array([[8.0, 2.0, 0.0], [1.0, 4.0, 0.0], [0.0, 1.0, 4.0]])
    >>> round(float(score_table(FBeta(1), table)), 4)
    0.7992
    >>> float(score_table(Cost(matrix=[[0, 1, 1], [5, 0, 1], [9, 9, 0]]), table))
    -0.8
    """
    prices = prices_of(metric)
    if prices is not None:
        check_size(prices, table.shape[-1])
        cost: Vector = -(prices * table).sum((-2, -1)) / np.maximum(table.sum((-2, -1)), 1e-300)
        return cost
    found: Vector = (class_shares(average, table.sum(-1)) * score_cells(metric, cells_of(table))).sum(-1)
    return found


def check_size(prices: Vector, classes: int) -> None:
    """Refuse a cost matrix of other classes."""
    if len(prices) != classes:
        raise ValueError(
            f"The cost matrix is of {len(prices)} classes, and there are {classes}; give one row and one column per "
            "class, in the order of the columns of probabilities."
        )


def read_probabilities(scores: Any, classes: int | None = None) -> Vector:
    """Check probabilities of classes: ``(*, K)``, each in [0, 1] and each row of sum one."""
    p = read_array("probabilities", scores, np.float64)
    if p.ndim < 1 or p.shape[-1] < 2 or p.shape[-1] != (classes or p.shape[-1]):
        raise ValueError(
            f"There must be one column of probabilities per class{f', {classes}' if classes else ''}; got shape "
            f"{p.shape}."
        )
    if np.isnan(p).any():
        raise ValueError("probabilities hold NaN, which no class can be called by; drop or impute those rows first.")
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise ValueError(
            f"Probabilities lie in [0, 1]; got {p.min():g} to {p.max():g}. Take a softmax of logits, and a model's "
            "predict_proba in place of its decision_function."
        )
    off = np.abs(p.sum(-1) - 1)
    if p.size and off.max() > LOOSE:
        raise ValueError(
            f"Probabilities of classes that exclude each other sum to one in each row; row {int(off.argmax())} sums to "
            f"{p.reshape(-1, p.shape[-1])[int(off.argmax())].sum():.4g}. Divide each row by its sum, or leave out "
            "exclusive for labels that may be right together."
        )
    return p


def read_classes(target: ArrayLike, shape: tuple[int, int]) -> Vector:
    """The true class of each row as columns of 0 and 1, from numbers 0 … K−1 or from such columns."""
    if np.asarray(target).dtype.kind in "USO":
        raise ValueError(f"target must hold numbers of classes, from 0. {NUMBERED}")
    y = read_array("target", target)
    if y.shape == shape:
        if not (((y == 0) | (y == 1)).all() and (y.sum(1) == 1).all()):
            raise ValueError("target has a column per class, but not one 1 in each row; or give numbers of classes.")
        return y.astype(np.float64)
    if y.shape != shape[:1]:
        raise ValueError(
            f"target holds the class of each row, as a number ({shape[0]},) or as columns of 0 and 1 {shape}; got "
            f"{y.shape}."
        )
    known = np.isin(y, np.arange(shape[1]))
    if not known.all():
        raise ValueError(
            f"Classes are numbered from 0 to {shape[1] - 1}, as the columns of probabilities; got "
            f"{y[~known][0].item()!r}. {NUMBERED}"
        )
    columns: Vector = (y[:, None] == np.arange(shape[1])).astype(np.float64)
    return columns

"""Cross-fitting: every row is scored by a model that never saw it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.learners.machine import Map

AnyModel = TypeVar("AnyModel")
Array = NDArray[np.float64]

#: Fits rows with weights (None: all alike) and gives a model; the weights hold the class costs.
Fit = Callable[[Any, NDArray[Any], Array | None], AnyModel]
#: Scores rows with a model.
Score = Callable[[AnyModel, Any], ArrayLike]


@dataclass(frozen=True)
class CrossFit(Generic[AnyModel]):
    """Scores of rows by models that never saw them.

    A row of fold −1 was in every training part; its score is NaN, and `held` is False.

    Shape: `scores` ``(n,)`` or ``(n, K)``; `fold` ``(n,)``; one model per fold.

    >>> CrossFit(scores=np.array([0.2, 0.9]), models=("a", "b"), fold=np.array([0, 1])).models
    ('a', 'b')
    """

    scores: Array
    models: tuple[AnyModel, ...] = field(repr=False)
    fold: NDArray[np.int64] = field(repr=False)

    @property
    def held(self) -> NDArray[np.bool_]:
        """Which rows have an out-of-fold score."""
        return self.fold >= 0


def cross_fit(
    fit: Fit[AnyModel],
    score: Score[AnyModel],
    X: Any,
    y: ArrayLike,
    folds: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    ordered: bool = False,
    side_by_side: Map = map,
) -> CrossFit[AnyModel]:
    """Fit one model per fold on the other folds' rows, and score each row by the model that never saw it.

    Rows of fold −1 are in every training part and get no score (NaN): ``[0, -1, -1, -1]`` is one hold-out. Where folds
    are `ordered`, as by time, a model learns from the folds before its own only. `side_by_side` goes over the folds;
    the `map` of a pool of threads fits some at once.

    Shape: `X` has rows (array, sparse matrix or data frame), `y` ``(n,)`` or ``(n, K)``, `folds` and `weight` ``(n,)``.

    >>> def fit(X, y, weight):  # the point midway between the class means
    ...     return (X[y == 1].mean() + X[y == 0].mean()) / 2
    >>> X, y = np.array([0.0, 1.0, 4.0, 5.0]), np.array([0, 0, 1, 1])
    >>> cross_fit(fit, lambda model, X: X - model, X, y, folds=[0, 1, 0, 1]).scores
    array([-3., -1.,  1.,  3.])
    """
    labels, dealt = np.asarray(y), np.asarray(folds)
    if dealt.shape != labels.shape[:1]:
        raise ValueError(f"folds must name one fold per row; got {dealt.shape} for {labels.shape[0]} rows.")
    if dealt.dtype.kind not in "iu":
        raise ValueError(f"folds must be whole numbers, −1 for rows to fit on; got {dealt.dtype}.")
    names = np.unique(dealt[dealt >= 0])
    if len(names) == 0 or len(np.unique(dealt)) < 2:
        raise ValueError("One fold leaves no rows to fit on; use two or more, or fold −1 for rows to fit on.")
    w = None if weight is None else np.asarray(weight, dtype=np.float64)

    def of_fold(name: np.int64) -> tuple[AnyModel, NDArray[np.int64], Array]:
        held, rest = np.flatnonzero(dealt == name), np.flatnonzero(dealt < name if ordered else dealt != name)
        model = fit(take(X, rest), labels[rest], None if w is None else w[rest])
        found = np.asarray(score(model, take(X, held)), dtype=np.float64)
        if found.shape[:1] != held.shape or not np.isfinite(found).all():
            raise ValueError(
                f"The model of fold {name} gave scores of shape {found.shape} for {len(held)} rows, or NaN or "
                "infinite ones; score must give one finite number per row."
            )
        return model, held, found

    done = list(side_by_side(of_fold, names))
    scores = np.full((len(dealt), *done[0][2].shape[1:]), np.nan)
    for _, held, found in done:
        scores[held] = found
    return CrossFit(scores, tuple(model for model, _, _ in done), dealt.astype(np.int64))


def take(X: Any, rows: NDArray[np.int64]) -> Any:
    """Take rows of an array, a sparse matrix, a data frame or a list.

    >>> take(np.array([[1, 2], [3, 4]]), np.array([1]))
    array([[3, 4]])
    """
    if isinstance(X, list):
        return [X[i] for i in rows]
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]

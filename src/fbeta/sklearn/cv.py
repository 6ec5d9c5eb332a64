"""The one inner split of an estimator, from what users write for `cv`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from fbeta.tables.folds import folds, rarest

#: Folds where nobody said how many.
FOLDS = 5


def inner_folds(cv: Any, y: NDArray[Any], X: Any = None, groups: Any = None, seed: int | None = 0) -> NDArray[np.int64]:
    """The fold of each row; −1 for a row that every model may train on.

    `cv`: None for five folds (fewer where the rarest class cannot give two rows to each), a number of folds, a
    splitter of scikit-learn, or pairs of rows (train, test). Test parts must not overlap, and a model must train on
    all rows outside its own: a single hold-out (`StratifiedShuffleSplit(1)`) will do, forward chaining will not.

    >>> inner_folds(None, np.array([0, 1] * 4)).tolist()
    [1, 0, 0, 0, 1, 1, 0, 1]
    """
    if cv is None:
        most = FOLDS if groups is None else min(FOLDS, len(np.unique(np.asarray(groups))))
        cv = max(2, min(most, rarest(y) // 2))
    if y.ndim == 2:
        _check_labels(y)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        return folds(y, int(cv), groups, seed=seed)
    n = len(y)
    fold = np.full(n, -1, dtype=np.int64)
    rows = X if X is not None else y
    splitter = check_cv(cv, y, classifier=True)
    pairs = list(splitter.split(rows, y) if groups is None else splitter.split(rows, y, groups))
    # What models must have seen: each class, or each value of each label.
    kinds = y if y.ndim == 1 else y + 2 * np.arange(y.shape[1])
    for name, (train, test) in enumerate(pairs):
        if (fold[test] >= 0).any():
            raise ValueError(
                "The test parts of cv overlap, so a row has more than one out-of-fold score; use a splitter such as "
                "StratifiedKFold, without repeats."
            )
        if len(train) + len(test) != n:
            raise ValueError(
                "A training part of cv is not all rows outside its test part (TimeSeriesSplit is such a splitter); "
                "use folds, or one hold-out."
            )
        fold[test] = name
        if len(np.unique(kinds[train])) < len(np.unique(kinds)):
            raise ValueError("A training part of cv lacks a class that y has; use a stratified splitter.")
    if len(np.unique(y[fold >= 0], axis=0)) < 2:
        raise ValueError("The test parts of cv hold one class only; use a stratified splitter.")
    return fold


def _check_labels(y: NDArray[Any]) -> None:
    """Name the label that has too few rows of a kind; two folds with two of each need four."""
    for k, count in enumerate(y.sum(0)):
        for number, kind in ((int(count), "with"), (len(y) - int(count), "without")):
            if number < 4:
                raise ValueError(
                    f"Label {k} has {number} row{'s' * (number != 1)} {kind} it, too few for 2 folds with 2 in each: "
                    "bring at least 4 such rows, or leave the label out."
                )

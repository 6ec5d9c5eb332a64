"""What `y` means: columns of 0 and 1 to decide on, folds that hold them evenly, the way back to the user's labels."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d

from fbeta.decisions.class_scores import prices_of
from fbeta.learners.crossfit import Array
from fbeta.metrics import Metric
from fbeta.tables.folds import folds, rarest
from fbeta.tables.target import rarer_class

AVERAGES = ("binary", "macro", "micro", "samples")
OVER_ROWS = (
    "average='samples' is the mean over rows of several labels: y must be columns of 0 and 1. For classes that exclude "
    "each other set average='macro'."
)
#: Folds, unless said otherwise.
FOLDS = 5


@dataclass(frozen=True)
class Labels:
    """The classes of a problem, sorted, and its columns: one for two classes, else one per class or per label."""

    kind: str
    classes: NDArray[Any]
    positive: int = 1

    @classmethod
    def read(cls, y: Any, average: str = "binary", pos_label: Any = None, classes: Any = None) -> Self:
        """Find out what a target means, or say what it would take; `classes` are those of a fitted classifier."""
        if average != "weighted":  # of several classes only
            check_average(average)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind == "multilabel-indicator":
            return cls("multilabel", np.arange(_matrix(y).shape[1])).allowed(average, pos_label)
        if kind.endswith("multioutput"):
            raise ValueError(
                f"y has {np.shape(y)[1]} columns with other values than 0 and 1; fit one estimator per column, or make "
                "them columns of 0 and 1."
            )
        values = column_or_1d(y)
        found = np.unique(values) if classes is None else np.sort(classes)
        if len(found) == 1:
            raise ValueError(
                f"y holds one class only, {found.tolist()[0]!r}: nothing can be told apart. Bring rows of both classes."
            )
        if len(found) > 2:
            return cls("multiclass", found).allowed(average, pos_label)
        check_average(average)
        if average == "samples":
            raise ValueError(OVER_ROWS)
        if pos_label is None:
            return cls("binary", found, _rarer(found, values))
        if pos_label not in found:
            raise ValueError(f"pos_label={pos_label!r} is not a class of y, which has {found.tolist()}.")
        return cls("binary", found, int(np.flatnonzero(found == pos_label)[0]))

    def allowed(self, average: str, pos_label: Any) -> Self:
        """Itself, if several classes or labels can be averaged so."""
        what = f"{len(self.classes)} {'classes' if self.kind == 'multiclass' else 'labels'}"
        if average == "binary":
            # The first sentence is what scikit-learn's own checks look for.
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {self.kind}: y has {what}, and "
                "the metric is one of two classes. Set average='macro' for its mean over them, or pick one yourself, "
                "for example y == 'fraud'."
            )
        if pos_label is not None:
            raise ValueError(
                f"pos_label names the positive of two classes for average='binary'; y has {what} and average is "
                f"{average!r}. Leave it None."
            )
        if self.kind == "multilabel":
            check_average(average)
        if average == "samples" and self.kind == "multiclass":
            raise ValueError(OVER_ROWS)
        if average == "micro" and self.kind == "multiclass":
            raise ValueError(
                "average='micro' pools labels that may all be right at once; over classes that exclude each other "
                "micro F1 is accuracy. Set average='macro'."
            )
        return self

    @property
    def pos_label(self) -> Any:
        """The positive one of two classes."""
        return self.classes[self.positive]

    def check_known(self, y: Any) -> None:
        """Refuse labels that a classifier fitted before has never heard of."""
        if self.kind != "multilabel" and not np.isin(column_or_1d(y), self.classes).all():
            raise ValueError(
                f"y holds {np.unique(y)[:5].tolist()}, but the fitted classifier's classes are "
                f"{self.classes.tolist()}; name the classes as it does."
            )
        if self.kind == "multilabel" and _matrix(y).shape[1] != len(self.classes):
            raise ValueError(f"y has {_matrix(y).shape[1]} labels; the classifier has {len(self.classes)}.")

    def check_both(self, target: Array) -> None:
        """Refuse columns without a positive or without a negative row: no cut can be found there."""
        lone = np.flatnonzero(target.min(0) == target.max(0))
        if len(lone):
            what = "label" if self.kind == "multilabel" else "class"
            name = self.pos_label if self.kind == "binary" else self.classes.tolist()[int(lone[0])]
            some = "all" if target[0, lone[0]] else "none"
            raise ValueError(
                f"The rows that the cut of {what} {name!r} is chosen on are {some} of it: y (or a hold-out part of cv) "
                "holds one class only. Bring rows of both kinds."
            )

    def columns(self, y: Any) -> Array:
        """0 and 1, one column per decision."""
        if self.kind == "multilabel":
            return _matrix(y).astype(np.float64)
        sought = self.classes[[self.positive]] if self.kind == "binary" else self.classes
        return np.asarray(column_or_1d(y)[:, None] == sought[None, :], dtype=np.float64)

    def names(self, margin: Array) -> NDArray[Any]:
        """The user's labels for margins above 0: the largest for classes, each on its own for labels."""
        if self.kind == "multilabel":
            return (margin > 0).astype(int)
        if self.kind == "multiclass":
            return np.asarray(self.classes[margin.argmax(1)])
        return np.asarray(self.classes[np.where(margin[:, 0] > 0, self.positive, 1 - self.positive)])

    def called(self, margin: Array) -> Array:
        """The decisions as columns of 0 and 1."""
        if self.kind != "multiclass":
            return (margin > 0).astype(np.float64)
        return np.asarray(margin.argmax(1)[:, None] == np.arange(margin.shape[1]), dtype=np.float64)

    def spread(self, y: Any) -> NDArray[Any]:
        """What folds must hold evenly: classes, or the columns of labels."""
        return _matrix(y) if self.kind == "multilabel" else column_or_1d(y)


def positive_of_prices(metric: Metric, y: Any, pos_label: Any, classes: Any = None) -> Any:
    """The positive of two classes: a matrix of prices has them sorted, so it is the second; else what was said."""
    if prices_of(metric) is None or np.ndim(y) != 1:
        return pos_label
    found = np.unique(y) if classes is None else np.sort(classes)
    if len(found) != 2:
        return pos_label
    if pos_label is not None and pos_label != found[1]:
        first, second = found.tolist()
        raise ValueError(
            f"The rows of a cost matrix are the classes in sorted order, {first!r} and {second!r}, and the second is "
            f"the positive one; got pos_label={pos_label!r}. Leave it out, or give the prices as Cost(fp=…, fn=…)."
        )
    return found[1]


def check_average(average: Any) -> None:
    """Refuse a name that is no average."""
    if average not in AVERAGES:
        more = ", and for several classes weighted"
        raise ValueError(f"average must be one of {', '.join(AVERAGES)}{more}; got {average!r}.")


def read_y(y: Any) -> Any:
    """Bring a target to an array: a vector, or a matrix for labels; a column becomes a vector with a warning."""
    if hasattr(y, "toarray"):
        y = y.toarray()
    found = np.asarray(y)
    if found.ndim == 2 and found.shape[1] == 1:
        return column_or_1d(y, warn=True)
    if found.dtype.kind == "f":
        assert_all_finite(found, input_name="y")
    return found


def _matrix(y: Any) -> NDArray[Any]:
    return np.asarray(check_array(y, accept_sparse=False, dtype=None, input_name="y"))


def _rarer(classes: NDArray[Any], values: NDArray[Any]) -> int:
    """The place of the rarer class, with a warning where it is not the one that scikit-learn would take."""
    counts = {str(name): int(np.count_nonzero(values == name)) for name in classes}
    if min(counts.values()) == 0:  # a part of the data without a class does not say which is rarer
        return 1
    positive, said = rarer_class(counts)
    if positive == str(classes[1]):
        return 1
    first, second = classes.tolist()
    warnings.warn(
        f"{said[0].upper()}{said[1:]} Give pos_label={first!r} to confirm, or pos_label={second!r} for the other.",
        UserWarning,
        stacklevel=2,
    )
    return 0


def inner_folds(cv: Any, y: NDArray[Any], X: Any = None, groups: Any = None, seed: int | None = 0) -> NDArray[np.int64]:
    """The fold of each row; −1 for a row that every model may train on.

    `cv`: None for five folds (fewer where the rarest class cannot give two rows to each), a number of folds, a
    splitter of scikit-learn, or pairs of rows (train, test). Test parts must not overlap, and a model must train on
    all rows outside its own: a single hold-out (`StratifiedShuffleSplit(1)`) will do, forward chaining will not.
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


def read_weight(sample_weight: Any, rows: int) -> Array:
    """Check row weights: one number for all or one per row, finite, none negative, not all zero."""
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight holds numbers; got {sample_weight!r:.60}.") from error
    if weight.ndim == 0:
        weight = np.full(rows, float(weight))
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar; got shape {weight.shape}.")
    if weight.shape != (rows,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(rows,)}!")
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("sample_weight must be finite and zero or more.")
    if not (weight > 0).any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight

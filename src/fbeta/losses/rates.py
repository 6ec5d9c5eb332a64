"""What a loss is told about its rows: class counts of the training rows, and the population's prevalence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from torch import Tensor

from fbeta.losses.task import WIDE
from fbeta.metrics import check_prevalence

Array: TypeAlias = np.ndarray[Any, Any]

#: How far the rates of classes may sum from one: they may be rounded.
ROUNDING = 0.02


class Columns(NamedTuple):
    """The columns of a task, as far as numbers are told for them.

    >>> Columns("multilabel", 3, "macro").shape, Columns("multilabel", 3, "micro").shape
    ((3,), ())
    """

    task: str
    num_labels: int | None
    average: str

    @property
    def apart(self) -> bool:
        """Whether every label or class has numbers of its own."""
        return self.task in WIDE and self.average != "micro"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one number per column."""
        return (self.num_labels or 1,) if self.apart else ()

    def fit(self, name: str, values: Array) -> Array:
        """One number per column; a single one serves for all labels, but not for all classes."""
        if self.task == "multiclass" and values.ndim == 0 and self.apart:
            raise ValueError(
                f"{name} of a multi-class problem needs {self.num_labels} numbers, one per class."
            )
        if values.ndim and values.shape != self.shape:
            wants = f"a number or {self.num_labels} of them (one per label)" if self.apart else "one number"
            raise ValueError(f"{name} must be {wants} here; got {values.size} numbers.")
        return np.broadcast_to(values, self.shape)

    def pooled(self, name: str, values: Array) -> Array:
        """Numbers that a micro average pools: one, or one per column."""
        if values.size not in (1, self.num_labels):
            raise ValueError(
                f"{name} must be one number or {self.num_labels} (one per label); got {values.size}."
            )
        return values


def read_prevalence(prevalence: Any, columns: Columns) -> Array:
    """Read the rate of positives: one number, or one per label or class.

    >>> float(read_prevalence(0.1, Columns("binary", None, "macro")))
    0.1
    """
    try:
        rates = _numbers(prevalence)
    except (TypeError, ValueError):
        check_prevalence(prevalence)
        raise
    for p in rates.flat:
        check_prevalence(p.item())
    total = float(rates.sum())
    if columns.task == "multiclass" and rates.ndim and abs(total - 1) > ROUNDING:
        raise ValueError(
            f"prevalence of a multi-class problem holds the rates of all classes, which sum to 1; got {total:g}. "
            "Divide the class counts by their sum."
        )
    if columns.task in WIDE and not columns.apart:
        return columns.pooled("prevalence", rates).mean()  # type: ignore[no-any-return]
    return columns.fit("prevalence", rates)


def read_counts(class_counts: Any, columns: Columns) -> tuple[Array, Array]:
    """Read the negatives and positives of the training rows, of each column if they are kept apart.

    >>> from collections import Counter
    >>> negatives, positives = read_counts(Counter([0, 0, 1]), Columns("binary", None, "macro"))
    >>> int(negatives), int(positives)
    (2, 1)
    """
    if isinstance(class_counts, Mapping):
        class_counts = _by_class(class_counts, columns)
    try:
        if columns.task == "multiclass":  # one count per class: each against the rest
            n1 = _numbers(class_counts)
            n0 = n1.sum() - n1
        else:
            n0, n1 = (_numbers(n) for n in class_counts)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "class_counts is a pair (negatives, positives), each a number or one per label (for multi-class one "
            f"number per class); got {class_counts!r}."
        ) from error
    if not (np.isfinite(n0).all() and np.isfinite(n1).all() and (n0 >= 0).all() and (n1 >= 0).all()):
        raise ValueError(f"class_counts must be finite and zero or more; got {class_counts!r}.")
    for name, n in (("negatives", n0), ("positives", n1)):
        if (n == 0).any():
            raise ValueError(
                f"class_counts has no {name}: a class without rows has neither a rate nor a weight. "
                "Count the whole training set."
            )
    if columns.task in WIDE and not columns.apart:
        return columns.pooled("class_counts", n0).sum(), columns.pooled("class_counts", n1).sum()
    return columns.fit("class_counts", n0), columns.fit("class_counts", n1)


def _by_class(counts: Mapping[Any, Any], columns: Columns) -> list[Any]:
    """The counts of a mapping such as Counter(labels), in the order of the classes."""
    known = range((columns.num_labels or 2) if columns.task == "multiclass" else 2)
    if set(counts) != set(known):  # True is 1, and 1.0 is too
        wanted = "0 (negatives) and 1 (positives)" if len(known) == 2 else f"0 to {len(known) - 1}"
        raise ValueError(
            f"class_counts as a mapping has one count for each class {wanted}; got the keys "
            f"{', '.join(map(repr, counts)) or 'of an empty mapping'}. Map your labels to these numbers first."
        )
    return [counts[k] for k in known]


def _numbers(x: Any) -> Array:
    return np.asarray(x.detach().cpu() if isinstance(x, Tensor) else x, dtype=np.float64)

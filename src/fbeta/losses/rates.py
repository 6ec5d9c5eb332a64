"""What a loss is told about its rows: class counts of the training rows, and the population's prevalence."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor

from fbeta.losses.task import WIDE, Reader
from fbeta.metrics import check_prevalence

AnyArray: TypeAlias = np.ndarray[Any, Any]

#: How far the rates of classes may sum from one: they may be rounded.
ROUNDING = 0.02


def per_column(name: str, values: AnyArray, reader: Reader) -> AnyArray:
    """One number per column; a single one serves for all labels, but not for all classes."""
    if reader.task == "multiclass" and values.ndim == 0 and reader.columns:
        raise ValueError(f"{name} of a multi-class problem needs {reader.num_labels} numbers, one per class.")
    if values.ndim and values.shape != reader.shape:
        wants = f"a number or {reader.num_labels} of them (one per label)" if reader.columns else "one number"
        raise ValueError(f"{name} must be {wants} here; got {values.size} numbers.")
    return np.broadcast_to(values, reader.shape)


def _pooled(name: str, values: AnyArray, reader: Reader) -> AnyArray:
    """Numbers that a micro average pools: one, or one per column."""
    if values.size not in (1, reader.num_labels):
        raise ValueError(f"{name} must be one number or {reader.num_labels} (one per label); got {values.size}.")
    return values


def read_prevalence(prevalence: Any, reader: Reader) -> AnyArray:
    """Read the rate of positives: one number, or one per label or class."""
    try:
        rates = _numbers(prevalence)
    except (TypeError, ValueError):
        check_prevalence(prevalence)
        raise
    for p in rates.flat:
        check_prevalence(p.item())
    total = float(rates.sum())
    if reader.task == "multiclass" and rates.ndim and abs(total - 1) > ROUNDING:
        raise ValueError(
            f"prevalence of a multi-class problem holds the rates of all classes, which sum to 1; got {total:g}. "
            "Divide the class counts by their sum."
        )
    if reader.task in WIDE and not reader.columns:
        return _pooled("prevalence", rates, reader).mean()  # type: ignore[no-any-return]
    return per_column("prevalence", rates, reader)


def read_counts(class_counts: Any, reader: Reader) -> tuple[AnyArray, AnyArray]:
    """Read the negatives and positives of the training rows, of each column if they are kept apart."""
    if isinstance(class_counts, Mapping):
        class_counts = _by_class(class_counts, reader)
    try:
        if reader.task == "multiclass":  # one count per class: each against the rest
            n1 = _numbers(class_counts)
            n0 = n1.sum() - n1
        else:
            n0, n1 = (_numbers(class_counts[k]) for k in range(len(class_counts)))  # a set has no order
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
    if reader.task in WIDE and not reader.columns:
        return _pooled("class_counts", n0, reader).sum(), _pooled("class_counts", n1, reader).sum()
    return per_column("class_counts", n0, reader), per_column("class_counts", n1, reader)


def _by_class(counts: Mapping[Any, Any], reader: Reader) -> list[Any]:
    """The counts of a mapping such as Counter(labels), in the order of the classes."""
    known = range((reader.num_labels or 2) if reader.task == "multiclass" else 2)
    if set(counts) != set(known):  # True is 1, and 1.0 is too
        wanted = "0 (negatives) and 1 (positives)" if len(known) == 2 else f"0 to {len(known) - 1}"
        raise ValueError(
            f"class_counts as a mapping has one count for each class {wanted}; got the keys "
            f"{', '.join(map(repr, counts)) or 'of an empty mapping'}. Map your labels to these numbers first."
        )
    return [counts[k] for k in known]


def _numbers(x: Any) -> AnyArray:
    return np.asarray(x.detach().cpu() if isinstance(x, Tensor) else x, dtype=np.float64)

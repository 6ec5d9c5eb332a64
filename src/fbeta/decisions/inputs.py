"""What users hand in: scores, targets and weights, checked; and what the scores are."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta.spelling import did_you_mean

Vector = NDArray[np.float64]

#: What scores are: probabilities, logits, or any numbers that rise with the chance of a positive.
KINDS = ("probability", "logit", "score")
#: What all weights together may be: a metric multiplies two cells.
SMALLEST, LARGEST = 1e-100, 1e100


def read_array(name: str, x: Any, dtype: Any = None) -> NDArray[Any]:
    """Read what a user hands in, tensors included, as an array of numbers, by default of their own type."""
    if hasattr(x, "detach"):
        x = x.detach().cpu().resolve_neg()  # NumPy does not know torch's negative bit
        x = x.float() if "bfloat16" in str(x.dtype) else x  # a type that NumPy does not have
    found = np.asarray(x)
    if found.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold numbers; got {found.dtype}. Map your labels to 0 and 1 first, for example y == 'fraud'."
        )
    return found if dtype is None else found.astype(dtype, copy=False)


def read_rows(
    scores: Any, target: Any, weight: Any | None = None, *, infinite: bool = False
) -> tuple[NDArray[Any], NDArray[Any], Vector | None]:
    """Check rows and give float scores, targets and float weights (or None)."""
    s, y = read_array("scores", scores), read_array("target", target)
    # Whole numbers, and floats wider than double, are compared as doubles: `decide` does so too.
    s = s if s.dtype.kind == "f" and s.dtype.itemsize <= 8 else s.astype(np.float64)
    w = None if weight is None else read_array("weight", weight, np.float64)
    if s.ndim != 1 or s.shape != y.shape or (w is not None and s.shape != w.shape):
        got = f"{s.shape}, {y.shape}" + ("" if w is None else f", {w.shape}")
        raise ValueError(f"scores, target and weight must be vectors of one length; got {got}.")
    if s.size == 0:
        raise ValueError("There are no scores to cut; got empty arrays.")
    if np.isnan(s).any() if infinite else not np.isfinite(s).all():
        kind = "NaN" if np.isnan(s).any() else "infinity"
        raise ValueError(f"scores hold {kind}, which no cut can decide; drop, impute or clip those rows.")
    if not ((y >= 0) & (y <= 1)).all():
        raise ValueError(
            "target must lie in [0, 1]; map your labels to 0 and 1 first. For more than two classes give one column "
            "of scores and of targets per class: that is macro averaging."
        )
    if w is not None and not ((w >= 0) & np.isfinite(w)).all():
        raise ValueError("weight must be finite and zero or more.")
    with np.errstate(over="ignore"):
        total = 0.0 if w is None else float(w.sum())
    if total and not SMALLEST <= total <= LARGEST:
        raise ValueError(
            f"weight sums to {total:.3g}, whose products no float holds; divide all weights by the largest."
        )
    return s, y, w


def read_row_weight(weight: Any | None, rows: int) -> Vector:
    """The weight of each of so many rows of several columns: 1 if none is given."""
    w = np.ones(rows) if weight is None else read_array("weight", weight, np.float64)
    if w.shape != (rows,) or not ((w >= 0) & np.isfinite(w)).all() or not w.any():
        raise ValueError(f"weight is one number per row, finite, from 0 and not all 0; got shape {w.shape}.")
    return w


def read_kind(kind: str | None, low: float, high: float, *, matters: bool) -> str:
    """The kind that was said, checked; where it `matters` and was not said, the range decides, with a warning."""
    if low != low or high != high:
        raise ValueError("scores hold NaN, which no cut can decide; drop, impute or clip those rows.")
    inside = low >= 0 and high <= 1
    if kind is None and not matters:
        return "score"
    if kind is None:
        assumed, why = ("probabilities", "all") if inside else ("logits", "not all")
        warnings.warn(
            f"The scores were taken for {assumed}, because {why} of them lie in [0, 1]; say what they are: "
            "kind='probability', 'logit' or 'score'.",
            UserWarning,
            stacklevel=3,
        )
        return "probability" if inside else "logit"
    if kind not in KINDS:
        hint = did_you_mean(str(kind), KINDS)
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.{hint}")
    if kind == "probability" and not inside:
        raise ValueError(f"Scores from {low:g} to {high:g} are no probabilities; say kind='logit' or 'score'.")
    return kind

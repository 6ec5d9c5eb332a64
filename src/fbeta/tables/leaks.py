"""Columns that give the answer away: one alone tells the classes apart, or ranks nearly all rows rightly."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fbeta.tables.errors import LISTED, listed
from fbeta.tables.formats import columns_of

#: With fewer rows of a class than this, columns tell the classes apart, or rank them so, by chance.
_ENOUGH, _ENOUGH_RANKED = 5, 20
#: The area under the ROC curve from which a column is noted, and the rows of a class that it is taken from.
NEARLY, _MOST = 0.99, 20_000


def leak_notes(features: pl.DataFrame, y: NDArray[np.int8]) -> list[str]:
    """What to say of columns that give the answer away, or nearly so."""
    notes, known = [], "leave out (--drop) what is not known yet when you predict."
    if found := leaks(features, y):
        which = "one column is" if len(found) == 1 else f"each of {len(found)} columns is"
        notes.append(f"{which} enough to tell the classes apart in every row: {listed(found)}; {known}")
    if near := near_leaks(features[:, [name for name in features.columns if name not in {*found}]], y):
        which = "one column alone ranks" if len(near) == 1 else f"each of {len(near)} columns alone ranks"
        most = sorted(near, key=lambda name: -near[name])
        said = ", ".join(f"{name!r:.40} ({near[name]:.4f})" for name in most[:LISTED])
        more = f" and {len(near) - LISTED} more" if len(near) > LISTED else ""
        notes.append(f"{which} nearly all rows rightly (AUC above {NEARLY}): {said}{more}; {known}")
    return notes


def leaks(features: pl.DataFrame, y: NDArray[np.int8]) -> list[str]:
    """The columns of which each alone tells the classes apart in every row, a missing value being one more value."""
    fewest = int(np.bincount(y, minlength=2).min())
    if fewest < _ENOUGH:
        return []
    one, other = (columns_of(features.filter(y == label)) for label in (0, 1))
    return [name for name in one if _apart(one[name], other[name], fewest)]


def _apart(one: pl.Series, other: pl.Series, fewest: int) -> bool:
    if one.null_count() and other.null_count():
        return False
    if one.dtype.is_numeric() or one.dtype.is_temporal():
        low, high, least, most = one.min(), one.max(), other.min(), other.max()
        return low is None or least is None or bool(high < least or most < low)  # type: ignore[operator]
    first, second = set(one.drop_nulls().unique()), set(other.drop_nulls().unique())
    # Of a great many levels, hardly any has rows of both classes.
    return len(first) + len(second) <= fewest and not first & second


def near_leaks(features: pl.DataFrame, y: NDArray[np.int8]) -> dict[str, float]:
    """The area under the ROC curve of each column that ranks the classes nearly rightly, upwards or downwards.

    A missing value is one more value; a category has the share of positives that its level has in the other half of the
    rows.
    """
    classes = [np.flatnonzero(y == label) for label in (0, 1)]
    if min(map(len, classes)) < _ENOUGH_RANKED:
        return {}
    some = [rows[np.linspace(0, len(rows) - 1, min(len(rows), _MOST)).astype(int)] for rows in classes]
    half = np.concatenate([np.arange(len(rows)) % 2 for rows in some])
    label = np.repeat([0, 1], [len(rows) for rows in some])
    found = {}
    for name, series in columns_of(features[np.concatenate(some)]).items():
        ordered = series.dtype.is_numeric() or series.dtype.is_temporal() or series.dtype == pl.Boolean
        area = _ordered_area(series, label) if ordered else _level_area(series, label, half)
        if area > NEARLY:
            found[name] = area
    return found


def _ordered_area(series: pl.Series, label: NDArray[np.int64]) -> float:
    """The area of the values, where missing ones come first or last."""
    lost = series.is_null().to_numpy()
    values, place = np.unique(series.to_physical().cast(pl.Float64).to_numpy()[~lost], return_inverse=True)
    first, last = np.zeros((2, len(label)), np.int64)
    first[~lost], last[~lost] = place + 1, place
    last[lost] = len(values)
    return max(abs(_area(rank, label) - 0.5) + 0.5 for rank in ((first, last) if lost.any() else (last,)))


def _level_area(series: pl.Series, label: NDArray[np.int64], half: NDArray[np.int64]) -> float:
    """The area of the levels' shares of positives, of each half in the other one."""
    codes = series.cast(pl.String).rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    areas = []
    for part in (0, 1):
        learned, count = half != part, int(codes.max()) + 1
        rows = np.bincount(codes[learned], minlength=count)
        positives = np.bincount(codes[learned], label[learned], minlength=count)
        share = np.where(rows > 0, positives / np.maximum(rows, 1), label.mean())
        areas.append(_area(share[codes[~learned]], label[~learned]))
    return float(np.mean(areas))


def _area(score: NDArray[np.generic], label: NDArray[np.int64]) -> float:
    """The chance that a positive is above a negative; half of it where they are equal."""
    _, place = np.unique(score, return_inverse=True)
    negatives = np.bincount(place, label == 0)
    positives = np.bincount(place, label)
    below = np.cumsum(negatives) - negatives / 2
    return float(below @ positives / (negatives.sum() * positives.sum()))

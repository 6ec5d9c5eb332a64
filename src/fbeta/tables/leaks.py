"""Columns that give the answer away: often the target under another name, or written down after it was known."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

#: With fewer rows of a class than this, columns tell the classes apart by chance.
ENOUGH = 5


def leaks(features: pl.DataFrame, y: NDArray[np.int8]) -> list[str]:
    """The columns of which each by itself tells the classes apart in every row, a missing value being one more value.

    Shape: `y` is (N,) of 0 and 1.

    >>> frame = pl.DataFrame({"paid": [1.0, 2, 3, 4, 5] * 2, "refused on": [None] * 5 + ["Monday"] * 5})
    >>> leaks(frame, np.array([0] * 5 + [1] * 5, np.int8))
    ['refused on']
    """
    fewest = int(np.bincount(y, minlength=2).min())
    if fewest < ENOUGH:
        return []
    one, other = features.filter(y == 0), features.filter(y == 1)
    return [a.name for a, b in zip(one, other, strict=True) if _apart(a.alias("x"), b.alias("x"), fewest)]


def _apart(one: pl.Series, other: pl.Series, fewest: int) -> bool:
    if one.null_count() and other.null_count():
        return False
    if one.dtype.is_numeric() or one.dtype.is_temporal():
        low, high, least, most = one.min(), one.max(), other.min(), other.max()
        return low is None or least is None or bool(high < least or most < low)  # type: ignore[operator]
    first, second = set(one.drop_nulls().unique()), set(other.drop_nulls().unique())
    # Of a great many levels, hardly any has rows of both classes.
    return len(first) + len(second) <= fewest and not first & second

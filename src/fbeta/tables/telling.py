"""Columns that give the answer away: often the target under another name, or written down after it was known."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

#: With fewer rows of a class than this, columns tell the classes apart by chance.
ENOUGH = 5


def telling(features: pl.DataFrame, y: NDArray[np.int8]) -> list[str]:
    """The columns of which each by itself tells the classes apart in every row, a missing value being one more value.

    Shape: `y` is (N,) of 0 and 1.

    >>> frame = pl.DataFrame({"paid": [1.0, 2, 3, 4, 5] * 2, "refused on": [None] * 5 + ["Monday"] * 5})
    >>> telling(frame, np.array([0] * 5 + [1] * 5, np.int8))
    ['refused on']
    """
    positive = pl.Series(y == 1)
    fewest = min(int(positive.sum()), len(y) - int(positive.sum()))
    if fewest < ENOUGH:
        return []
    return [
        column.name
        for column in features
        if _apart(column.filter(~positive), column.filter(positive), fewest)
    ]


def _apart(one: pl.Series, other: pl.Series, fewest: int) -> bool:
    if one.null_count() and other.null_count():
        return False
    one, other = one.drop_nulls().unique(), other.drop_nulls().unique()
    if one.dtype in (pl.String, pl.Boolean):
        # Of a great many levels, hardly any has rows of both classes.
        return len(one) + len(other) <= fewest and not one.is_in(other.implode()).any()
    low, high, least, most = one.min(), one.max(), other.min(), other.max()
    return low is None or least is None or bool(high < least or most < low)  # type: ignore[operator]

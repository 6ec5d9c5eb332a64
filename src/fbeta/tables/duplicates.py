"""Rows that a split must keep together: a copy of a training row in the test rows is no test."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray


def equal_rows(features: pl.DataFrame) -> NDArray[np.int64]:
    """An id for each row, equal where all features are equal.

    Shape: (N,).

    >>> import polars as pl
    >>> equal_rows(pl.DataFrame({"a": [1, 2, 1], "b": ["x", "x", "x"]})).tolist()
    [0, 1, 0]
    """
    # 64 bits: among 10 million different rows two meet by chance once in 370,000 tables, and share a fold then
    return dense(features.hash_rows(seed=0).to_numpy())


def dense(values: NDArray[np.generic]) -> NDArray[np.int64]:
    """Ids 0, 1, 2, … in the order in which values first occur.

    >>> import numpy as np
    >>> dense(np.array([7, 3, 7])).tolist()
    [0, 1, 0]
    """
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse]


def joined(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ids that are equal where either of two ids is, or a chain of such equalities leads from row to row.

    >>> import numpy as np
    >>> joined(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])).tolist()
    [0, 0, 0, 1]
    """
    group, equal = dense(one), dense(other)
    while True:  # each round halves the length of the chains, or nearly so
        low = np.full(int(equal.max(initial=-1)) + 1, len(group), np.int64)
        np.minimum.at(low, equal, group)
        link = np.arange(int(group.max(initial=-1)) + 1)
        np.minimum.at(link, group, low[equal])
        while not np.array_equal(further := link[link], link):
            link = further
        if (link[group] == group).all():
            return dense(group)
        group = link[group]

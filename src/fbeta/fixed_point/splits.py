"""One split of the rows into folds, even in every class; everything out-of-fold uses the same one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def folds(
    y: ArrayLike, n: int = 5, groups: ArrayLike | None = None, *, seed: int | None = 0, least: int = 2
) -> NDArray[np.int64]:
    """Deal rows to `n` folds, every class evenly, rows of one group together: the fold of each row.

    One split serves everything that needs out-of-fold scores: operating point, cut, calibration. `seed` shuffles
    (None: the order of the rows decides). Each fold must hold `least` rows of each class, of each label's
    positives and negatives if `y` has columns.

    Shape: `y` ``(n,)`` with classes, or ``(n, K)`` with labels in {0, 1}; `groups` ``(n,)``; result ``(n,)``.

    >>> folds([0, 0, 0, 0, 1, 1, 1, 1], 2, seed=None)
    array([0, 1, 0, 1, 0, 1, 0, 1])
    """
    columns = _columns(np.asarray(y))
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 2:
        raise ValueError(f"The number of folds must be an integer from 2; got {n!r}.")
    if len(columns) == 0:
        raise ValueError("There are no rows to split; got an empty y.")
    rare = int(columns.sum(0).min())
    if columns.shape[1] < 2:
        raise ValueError("y holds one class only, and no fold can hold two; bring rows of both classes.")
    if rare < least * n:
        most = rare // max(least, 1)
        remedy = f"use at most {most} folds" if most >= 2 else f"bring at least {2 * least} such rows"
        raise ValueError(
            f"The rarest class has {rare} row{'s' * (rare != 1)}, too few for {n} folds with {least} in each: {remedy}."
        )
    order = np.arange(len(columns)) if seed is None else np.random.default_rng(seed).permutation(len(columns))
    if groups is None:
        return _deal(columns, n, order)
    dealt = _deal_groups(columns, n, order, np.asarray(groups))
    held = np.stack([columns[dealt == k].sum(0) for k in range(n)])
    if held.min() < least:
        raise ValueError(
            f"The groups cannot be dealt so that each of {n} folds holds {least} rows of each class; "
            "use fewer folds or smaller groups."
        )
    return dealt


def _columns(y: NDArray[Any]) -> NDArray[np.bool_]:
    """What must be spread evenly: each class, or each label's positives and negatives."""
    if y.ndim == 1:
        found: NDArray[np.bool_] = y[:, None] == np.unique(y)[None, :]
        return found
    if y.ndim != 2 or not np.isin(y, (0, 1)).all():
        raise ValueError(
            f"y must be a vector of classes or a matrix of labels in {{0, 1}}; got shape {y.shape}."
        )
    return np.concatenate([y == 1, y == 0], axis=1)


def _deal(columns: NDArray[np.bool_], n: int, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Deal the rarest class first, in turn, to the folds that have the fewest of it."""
    dealt = np.full(len(columns), -1)
    sizes = np.zeros(n, dtype=np.int64)
    for k in np.argsort(columns.sum(0), kind="stable"):
        members = order[columns[order, k] & (dealt[order] < 0)]
        held = np.array([(columns[:, k] & (dealt == fold)).sum() for fold in range(n)])
        # What is missing in each fold until all have as many; then round and round, smallest fold first.
        missing = np.repeat(np.arange(n), held.max() - held)
        turn = np.lexsort((np.arange(n), sizes))
        hands = np.concatenate([missing, np.resize(turn, max(len(members) - len(missing), 0))])
        dealt[members] = hands[: len(members)]
        sizes = np.bincount(dealt[dealt >= 0], minlength=n)
    return dealt


def _deal_groups(
    columns: NDArray[np.bool_], n: int, order: NDArray[np.int64], groups: NDArray[Any]
) -> NDArray[np.int64]:
    """Deal whole groups, the largest first, each to the fold where it leaves the classes most even."""
    if groups.shape != columns.shape[:1]:
        raise ValueError(f"groups must name one group a row; got {groups.shape} for {len(columns)} rows.")
    names, group = np.unique(groups[order], return_inverse=True)
    if len(names) < n:
        raise ValueError(f"{len(names)} groups cannot fill {n} folds; use fewer folds.")
    counts = np.zeros((len(names), columns.shape[1]))
    np.add.at(counts, group, columns[order])
    share = counts / columns.sum(0)
    # Of equally large groups the shuffled order decides.
    first = np.full(len(names), len(order))
    np.minimum.at(first, group, np.arange(len(order)))
    held = np.zeros((n, columns.shape[1]))
    home = np.zeros(len(names), dtype=np.int64)
    for g in np.lexsort((first, -share.max(1))):
        after = held[None] + np.eye(n)[:, :, None] * share[g]
        home[g] = np.argmin((after**2).sum((1, 2)))
        held[home[g]] += share[g]
    dealt = np.empty(len(columns), dtype=np.int64)
    dealt[order] = home[group]
    return dealt

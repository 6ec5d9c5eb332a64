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
    if groups is None:
        chance = np.random.default_rng(seed)
        return _deal(
            columns, n, np.arange(len(columns)) if seed is None else chance.permutation(len(columns))
        )
    names, group = np.unique(np.asarray(groups), return_inverse=True)
    if group.shape != columns.shape[:1]:
        raise ValueError(f"groups must name one group a row; got {np.shape(groups)} for {len(columns)} rows.")
    if len(names) < n:
        raise ValueError(f"{len(names)} groups cannot fill {n} folds; use fewer folds.")
    counts = np.stack([np.bincount(group, column).astype(np.int64) for column in columns.T], axis=1)
    dealt = deal_groups(counts, n, seed)[group]
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


def deal_groups(counts: NDArray[Any], n: int, seed: int | None = 0) -> NDArray[np.int64]:
    """Deal whole groups to `n` folds, the largest first, each to the fold that has least of its classes.

    Only raw bits are drawn, which are the same in every NumPy; without a `seed` the order of the groups decides.

    Shape: `counts` ``(G, K)``, how many rows of each class a group has; result ``(G,)``.

    >>> deal_groups(np.array([[4, 1], [3, 1], [1, 0], [0, 1]]), 2, seed=None)
    array([0, 1, 1, 0])
    """
    draw = np.arange if seed is None else np.random.Philox(seed).random_raw
    kinds, kind, sizes = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
    members = np.split(np.lexsort((draw(len(counts)), kind.ravel())), np.cumsum(sizes)[:-1])
    names = np.argsort(draw(n))  # who comes first among equals is chance, too
    dealt = np.zeros(len(counts), np.int64)
    held, total = np.zeros((n, counts.shape[1])), np.maximum(counts.sum(axis=0), 1)
    for k in np.argsort(-kinds.sum(axis=1), kind="stable"):
        share = kinds[k] / total**2
        hands = _levelled((held[names] * share).sum(axis=1), (kinds[k] * share).sum(), len(members[k]))
        dealt[members[k]] = np.repeat(names, hands)
        held[names] += hands[:, None] * kinds[k]
    return dealt


def _levelled(load: NDArray[np.float64], step: float, count: int) -> NDArray[np.int64]:
    """How many of `count` equal things of weight `step` each place gets, if each goes to the emptiest place."""
    low, high = float(load.min()), float(load.max()) + step * count
    for _ in range(60):  # the level to which all places can be filled
        level = (low + high) / 2
        filled = np.maximum((level - load) // step, 0).sum() <= count
        low, high = (level, high) if filled else (low, level)
    dealt = np.maximum((low - load) // step, 0).astype(np.int64)
    for _ in range(count - int(dealt.sum())):
        dealt[np.argmin(load + dealt * step)] += 1
    return dealt

"""The only place that splits rows, of a `Table` or an estimator: classes evenly, groups whole, the past first."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fbeta.tables.errors import TableError
from fbeta.tables.table import Table


@dataclass(frozen=True, eq=False)
class Folds:
    """Which rows are tested in which fold.

    Shape: `ids` and `group` are (N,) of int64. A row is tested in the fold of its id; where `ordered`, id −1 is
    the oldest part, which is never tested, and a fold trains on older rows only.

    >>> from fbeta.data import load_table
    >>> folds = split(load_table("breast-cancer"), 5)
    >>> folds.n, len(folds.train(0)), len(folds.test(0))
    (5, 456, 113)
    """

    n: int
    ids: NDArray[np.int64]
    group: NDArray[np.int64]
    ordered: bool = False

    def test(self, fold: int) -> NDArray[np.int64]:
        """Indices of the rows that a fold is tested on, in their order."""
        return np.flatnonzero(self.ids == fold)

    def train(self, fold: int) -> NDArray[np.int64]:
        """Indices of the rows that a fold trains on: none shares a group with a row that it is tested on."""
        if not self.ordered:
            return np.flatnonzero(self.ids != fold)
        tested = np.zeros(int(self.group.max(initial=-1)) + 1, bool)
        tested[self.group[self.ids == fold]] = True
        return np.flatnonzero((self.ids < fold) & ~tested[self.group])


def split(table: Table, n: int = 5, seed: int = 0) -> Folds:
    """Split a table into n folds with both classes in each, groups kept whole, by time where the table has one.

    Shape: fold ids (N,). By time, the rows are cut into n + 1 parts of about equal size: each but the oldest is
    tested once, after training on all that is older. The same seed gives the same folds on every machine.

    >>> from fbeta.data import load_table
    >>> table = load_table("breast-cancer")
    >>> folds = split(table, 4, seed=1)
    >>> [int(table.y[folds.test(k)].sum()) for k in range(4)]
    [53, 53, 53, 53]
    """
    if n < (1 if table.time is not None else 2):
        raise TableError(f"a split needs at least 2 folds, not {n}.")
    if n > len(table):
        raise TableError(f"{table.name} has {len(table):,} rows, too few for {n:,} folds: ask for fewer folds.")
    if table.time is None:
        found = Folds(n, _dealt(_classes(table.y), n, table.group, seed), table.group)
    else:
        found = Folds(n, _windows(table, n), table.group, ordered=True)
    for fold in range(n):
        for part, rows in (("test", found.test(fold)), ("training", found.train(fold))):
            positives = int(table.y[rows].sum())
            if not 0 < positives < len(rows):
                lacking = "no rows" if not len(rows) else f"no {'negatives' if positives else 'positives'}"
                raise TableError(
                    f"{table.name} cannot be split into {n} folds: {lacking} among the {part} rows of fold "
                    f"{fold + 1}. {_remedy(table, n)}."
                )
    return found


def _windows(table: Table, n: int) -> NDArray[np.int64]:
    """The window of each row by time, −1 for the oldest part; rows of one moment, such as a month, stay together."""
    assert table.time is not None
    moments, sizes = np.unique(table.time, return_counts=True)
    if len(moments) <= n:
        raise TableError(
            f"{table.name} has only {len(moments):,} different times, too few for {n:,} windows of later rows: ask for "
            f"{max(len(moments) - 1, 1):,} at most, or split without the time."
        )
    ends = np.searchsorted(np.cumsum(sizes) * (n + 1), np.arange(1, n + 1) * len(table))  # the last moment of each part
    place = np.arange(n)
    ends = np.minimum(np.maximum.accumulate(ends - place) + place, len(moments) - 1 - n + place)  # none is empty
    return np.searchsorted(moments[ends], table.time).astype(np.int64) - 1


def _remedy(table: Table, n: int) -> str:
    if table.time is not None:
        return "Ask for fewer windows, or split without the time"
    fewest = table.fewest
    if fewest < 2:
        return "A class has only one row, or group of rows, which no folds can share: bring more of them"
    if fewest < n:
        return f"Ask for fewer folds: a class has only {fewest} rows or groups of rows"
    return "Ask for fewer folds, or without groups"


def folds(y: ArrayLike, n: int = 5, groups: ArrayLike | None = None, *, seed: int | None = 0) -> NDArray[np.int64]:
    """Deal rows to `n` folds, two or more of every class in each, groups whole: the fold of each row (n,).

    `y` has classes (n,) or labels in {0, 1} (n, K); without a `seed` the order of the rows decides.
    """
    classes = _classes(np.asarray(y))
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 2:
        raise ValueError(f"The number of folds must be an integer from 2; got {n!r}.")
    if len(classes) == 0:
        raise ValueError("There are no rows to split; got an empty y.")
    if classes.shape[1] < 2:
        raise ValueError("y holds one class only, and no fold can hold two; bring rows of both classes.")
    if (rare := rarest(np.asarray(y))) < 2 * n:
        remedy = f"use at most {rare // 2} folds" if rare >= 4 else "bring at least 4 such rows"
        raise ValueError(
            f"The rarest class has {rare} row{'s' * (rare != 1)}, too few for {n} folds with 2 in each: {remedy}."
        )
    if groups is not None:
        if np.shape(groups) != classes.shape[:1]:
            raise ValueError(f"groups must name one group per row; got {np.shape(groups)} for {len(classes)} rows.")
        if (count := len(np.unique(np.asarray(groups)))) < n:
            raise ValueError(f"{count} groups cannot fill {n} folds; use fewer folds.")
    dealt = _dealt(classes, n, groups, seed)
    if groups is not None and min(classes[dealt == k].sum(0).min() for k in range(n)) < 2:
        raise ValueError(
            f"The groups cannot be dealt so that each of {n} folds holds 2 rows of each class; "
            "use fewer folds or smaller groups."
        )
    return dealt


def rarest(y: NDArray[Any]) -> int:
    """How many rows the rarest class has, or the rarest of each label's positives and negatives."""
    return int(_classes(y).sum(0).min())


def _classes(y: NDArray[Any]) -> NDArray[np.bool_]:
    """What must be spread evenly, a column for each: each class, or each label's positives and negatives."""
    if y.ndim == 1:
        found: NDArray[np.bool_] = y[:, None] == np.unique(y)[None, :]
        return found
    if y.ndim != 2 or not np.isin(y, (0, 1)).all():
        raise ValueError(f"y must be a vector of classes or a matrix of labels in {{0, 1}}; got shape {y.shape}.")
    return np.concatenate([y == 1, y == 0], axis=1)


def _dealt(classes: NDArray[np.bool_], n: int, groups: ArrayLike | None, seed: int | None) -> NDArray[np.int64]:
    """The fold of each row: of each by itself, or of its group."""
    if groups is None:
        rows = np.arange(len(classes))
        return _deal_rows(classes, n, rows if seed is None else np.random.default_rng(seed).permutation(rows))
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    counts = np.stack([np.bincount(group, column).astype(np.int64) for column in classes.T], axis=1)
    return _deal_groups(counts, n, seed)[group]


def _deal_rows(classes: NDArray[np.bool_], n: int, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Deal the rarest class first, in turn, to the folds that have the fewest of it."""
    dealt = np.full(len(classes), -1)
    sizes = np.zeros(n, dtype=np.int64)
    for k in np.argsort(classes.sum(0), kind="stable"):
        members = order[classes[order, k] & (dealt[order] < 0)]
        held = np.array([(classes[:, k] & (dealt == fold)).sum() for fold in range(n)])
        # What is missing in each fold until all have as many; then round and round, smallest fold first.
        missing = np.repeat(np.arange(n), held.max() - held)
        turn = np.lexsort((np.arange(n), sizes))
        hands = np.concatenate([missing, np.resize(turn, max(len(members) - len(missing), 0))])
        dealt[members] = hands[: len(members)]
        sizes = np.bincount(dealt[dealt >= 0], minlength=n)
    return dealt


def _deal_groups(counts: NDArray[np.int64], n: int, seed: int | None) -> NDArray[np.int64]:
    """Deal whole groups (G, K classes), the largest first, each to the fold (G,) that has least of its classes."""
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


def dense(values: NDArray[np.generic]) -> NDArray[np.int64]:
    """Ids 0, 1, 2, … in the order in which values first occur."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse]


def joined(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ids that are equal where either of two ids is, or a chain of such equalities leads from row to row."""
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

"""Folds that are honest: both classes in each, copies and groups in one, the past before the future."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fbeta.tables.errors import TableError
from fbeta.tables.folds import deal_groups
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
    folds = _by_time(table, n) if table.time is not None else _by_groups(table, n, seed)
    _check(table, folds)
    return folds


def _by_groups(table: Table, n: int, seed: int) -> Folds:
    _, group = np.unique(table.group, return_inverse=True)  # some rows of a table lack some of its groups
    positives = np.bincount(group, table.y).astype(np.int64)
    counts = np.stack([np.bincount(group) - positives, positives], axis=1)
    return Folds(n, deal_groups(counts, n, seed)[group], table.group)


def _by_time(table: Table, n: int) -> Folds:
    time = table.time
    assert time is not None
    cuts = np.quantile(time, np.arange(1, n + 1) / (n + 1), method="inverted_cdf")
    ids = np.searchsorted(cuts, time, side="left") - 1  # rows of one moment are never torn apart
    return Folds(n, ids.astype(np.int64), table.group, ordered=True)


def _check(table: Table, folds: Folds) -> None:
    for fold in range(folds.n):
        for part, rows in (("test", folds.test(fold)), ("training", folds.train(fold))):
            positives = int(table.y[rows].sum())
            if not 0 < positives < len(rows):
                lacking = "no rows" if not len(rows) else f"no {'negatives' if positives else 'positives'}"
                raise TableError(
                    f"{table.name} cannot be split into {folds.n} folds: {lacking} among the {part} rows of fold "
                    f"{fold + 1}. {_remedy(table, folds)}."
                )


def _remedy(table: Table, folds: Folds) -> str:
    if folds.ordered:
        return "Ask for fewer folds, or split without the time"
    fewest = table.fewest
    if fewest < 2:
        return "A class has only one row, or group of rows, which no folds can share: bring more of them"
    if fewest < folds.n:
        return f"Ask for fewer folds: a class has only {fewest} rows or groups of rows"
    return "Ask for fewer folds, or without groups"

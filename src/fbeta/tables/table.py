"""What a table is to the rest: typed columns, a target of 0 and 1, and what must stay together in a split."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fbeta.tables.kinds import Column


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Rows with a target of two classes, read from a file.

    Shape: `features` has N rows; `y` is (N,) of int8, 1 where the target is `positive`; `group` is (N,) of int64,
    equal for rows that a split must keep together (equal features, or equal in the group column); `time` is (N,)
    of float64 (a date in seconds since 1970) or None. `notes` are sentences to show to the reader.

    >>> from fbeta.data import load
    >>> load("breast-cancer")
    Table('breast-cancer', 569 rows, 30 columns, 212 (37.3 %) of diagnosis 'malignant')
    """

    name: str
    features: pl.DataFrame
    columns: tuple[Column, ...]
    y: NDArray[np.int8]
    target: str
    positive: str
    negative: tuple[str, ...]
    group: NDArray[np.int64]
    time: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rows = len(self.y)
        parts = {"features": self.features.height, "group": len(self.group)}
        parts |= {} if self.time is None else {"time": len(self.time)}
        for part, length in parts.items():
            if length != rows:
                raise ValueError(f"{self.name}: {part} has {length} rows, y has {rows}.")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        rate = f"{self.prevalence:.1%}".replace("%", " %")
        positives = f"{int(self.y.sum()):,} ({rate}) of {self.target} {self.positive!r}"
        columns = f"{len(self.columns)} column{'s' * (len(self.columns) != 1)}"
        return f"Table({self.name!r}, {len(self):,} rows, {columns}, {positives})"

    @property
    def prevalence(self) -> float:
        """Share of positives.

        >>> from fbeta.data import load_table
        >>> round(load_table("breast-cancer").prevalence, 3)
        0.373
        """
        return float(self.y.mean(dtype=float)) if len(self) else 0.0

    @property
    def fewest(self) -> int:
        """How many rows, or groups of rows, the rarer class has: it cannot be in more folds than that.

        >>> from fbeta.data import load_table
        >>> load_table("breast-cancer").fewest
        212
        """
        return min(len(np.unique(self.group[self.y == value])) for value in (0, 1))

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Table:
        """The table of some rows, by index or by mask.

        >>> from fbeta.data import load_table
        >>> table = load_table("breast-cancer")
        >>> len(table.take(table.y == 1))
        212
        """
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return replace(
            self,
            features=self.features[index],
            y=self.y[index],
            group=self.group[index],
            time=None if self.time is None else self.time[index],
        )

"""What a table is to the rest: typed columns, a target of 0 and 1, and what its other columns are for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sized
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

    from fbeta.tables.columns import Column


@dataclass(frozen=True)
class Roles:
    """What columns of a file are for, by their names: all that it takes to read the same table again.

    `positive` is the class of the target that counts as 1, `negative` are the others; `dropped` are the columns that
    somebody asked to leave out, `categorical` those whose numbers are codes.

    >>> Roles("fraud", "yes", ("no",), group="customer")
    Roles(target='fraud', positive='yes', negative=('no',), group='customer', time=None, dropped=(), weight=None,
          categorical=())
    """

    target: str
    positive: str = ""
    negative: tuple[str, ...] = ()
    group: str | None = None
    time: str | None = None
    dropped: tuple[str, ...] = ()
    weight: str | None = None
    categorical: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Rows with a target of two classes, read from a file.

    Shape: `features` has N rows; `y` is (N,) of int8, 1 where the target is `roles.positive`; `group` is (N,) of
    int64, equal for rows that a split must keep together (equal features, or equal in the group column); `time` is
    (N,) of float64 (a date in seconds since 1970) or None; `weight` is (N,) of float64, how much each row counts, or
    None. `notes` are sentences to show to the reader. `source` is what `fbeta.data.load_table` reads it from: a path or
    the name of a set, empty if it came from memory.

    >>> from fbeta.data import load_table
    >>> table = load_table("breast-cancer")
    >>> table
    Table('breast-cancer', 569 rows, 30 columns, 212 (37.3 %) of diagnosis 'malignant')
    >>> round(table.prevalence, 3), table.fewest, len(table.take(table.y == 1))
    (0.373, 212, 212)
    """

    name: str
    features: pl.DataFrame
    columns: tuple[Column, ...]
    y: NDArray[np.int8]
    roles: Roles
    group: NDArray[np.int64]
    time: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()
    source: str = ""
    weight: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        parts: dict[str, Sized | None] = {"features": self.features, "group": self.group}
        parts |= {"time": self.time, "weight": self.weight}
        for part, values in parts.items():
            if values is not None and len(values) != len(self):
                raise ValueError(f"{self.name}: {part} has {len(values)} rows, y has {len(self)}.")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        rate = f"{self.prevalence:.1%}".replace("%", " %")
        positives = f"{int(self.y.sum()):,} ({rate}) of {self.target} {self.positive!r}"
        columns = f"{len(self.columns)} column{'s' * (len(self.columns) != 1)}"
        return f"Table({self.name!r}, {len(self):,} rows, {columns}, {positives})"

    @property
    def target(self) -> str:
        """Name of the target column."""
        return self.roles.target

    @property
    def positive(self) -> str:
        """Name of the positive class."""
        return self.roles.positive

    @property
    def negative(self) -> tuple[str, ...]:
        """Names of the other classes."""
        return self.roles.negative

    @property
    def prevalence(self) -> float:
        """Share of positives."""
        return float(self.y.mean(dtype=float)) if len(self) else 0.0

    @property
    def fewest(self) -> int:
        """How many rows, or groups of rows, the rarer class has: it cannot be in more folds than that."""
        return min(len(np.unique(self.group[self.y == value])) for value in (0, 1))

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Table:
        """The table of some rows, by index or by mask."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        own = {"time": self.time, "weight": self.weight}
        more: dict[str, Any] = {name: None if x is None else x[index] for name, x in own.items()}
        return replace(self, features=self.features[index], y=self.y[index], group=self.group[index], **more)

    def weight_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """How much some rows count; None if all count alike."""
        return None if self.weight is None else self.weight[rows]


def digest(table: Table) -> str:
    """A digest of all that a table hands to training; unlike polars' hashes it is the same in every version."""
    import polars as pl

    from fbeta.tables.formats import columns_of

    found = hashlib.sha256(json.dumps([column.to_dict() for column in table.columns]).encode())
    found.update(b"" if table.weight is None else b"weight")  # not the same numbers as times
    _, group = np.unique(table.group, return_inverse=True)
    more = [x.astype(np.float64) for x in (table.time, table.weight) if x is not None]
    for column in (table.y.astype(np.int8), group.astype(np.int64), *more):
        found.update(np.ascontiguousarray(column).data)
    for column, series in zip(table.columns, columns_of(table.features).values(), strict=True):
        if column.kind == "category":
            levels = series.cast(pl.String).drop_nulls().unique().sort()
            found.update(json.dumps(levels.to_list()).encode())
            series = series.cast(pl.String).cast(pl.Enum(levels)).to_physical()
        elif column.kind == "date":
            series = series.to_physical()
        values = series.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        found.update(np.ascontiguousarray(values).data)
    return found.hexdigest()[:32]

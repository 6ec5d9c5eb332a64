"""A fingerprint of a table's rows."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import polars as pl

from fbeta.tables.table import Table


def digest(table: Table) -> str:
    """A digest of all that a table hands to training: columns and their kinds, values, classes, groups and times.

    It does not depend on the version of a library, as polars' own hashes do.

    >>> from fbeta.data import load_table
    >>> table = load_table("breast-cancer")
    >>> digest(table) == digest(table.take(np.arange(569))) != digest(table.take(np.arange(568)))
    True
    """
    found = hashlib.sha256(json.dumps([column.to_dict() for column in table.columns]).encode())
    _, group = np.unique(table.group, return_inverse=True)
    times = [] if table.time is None else [table.time.astype(np.float64)]
    for column in (table.y.astype(np.int8), group.astype(np.int64), *times):
        found.update(np.ascontiguousarray(column).data)
    for column, series in zip(table.columns, table.features.get_columns(), strict=True):
        if column.kind == "category":
            levels = series.cast(pl.String).drop_nulls().unique().sort()
            found.update(json.dumps(levels.to_list()).encode())
            series = series.cast(pl.String).cast(pl.Enum(levels)).to_physical()
        elif column.kind == "date":
            series = series.to_physical()
        values = series.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        found.update(np.ascontiguousarray(values).data)
    return found.hexdigest()[:32]

"""Scores of any model and the true classes beside them, from a table of any format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fbeta.tables.columns import parsed
from fbeta.tables.errors import TableError
from fbeta.tables.formats import READER_ERRORS, Source, col, need_column, opened
from fbeta.tables.reading import target_classes, target_text


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of rows, whether each is positive, and perhaps its weight.

    Shape: all ``(n,)``; rows without a target are left out.
    """

    score: NDArray[np.float64]
    y: NDArray[np.int64]
    weight: NDArray[np.float64] | None
    positive: str
    notes: tuple[str, ...]


def read_scores(
    path: str | Path, target: str, score: str, positive: str | None = None, weight: str | None = None
) -> Scores:
    """Read a column of scores and a target of two classes; a score that is no finite number is a TableError.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (file := Path(folder, "x.csv")).write_text("p,fraud\\n0.9,yes\\n0.2,no\\n0.1,no\\n")
    ...     read_scores(file, "fraud", "p").score.tolist()
    [0.9, 0.2, 0.1]
    """
    wanted = [score, *filter(None, [weight])]
    with opened(path) as source:
        for what, name in (("target", target), ("score", score), ("weight", weight)):
            need_column(source, filter(None, [name]), f"{what} column")
        if len({target, *wanted}) < 1 + len(wanted):
            raise TableError(f"target, score and weight must be different columns: {target!r}, {score!r}.")
        source = source.as_text()
        try:
            return _read(source, target, wanted, positive)
        except READER_ERRORS as error:
            raise source.fault(error) from error


def _read(source: Source, target: str, wanted: Sequence[str], positive: str | None) -> Scores:
    classes, notes = target_classes(source, target, positive)
    label = target_text(source, target)
    rows = source.frame.with_row_index("\0row").filter(label.is_not_null())
    values = [_number(source, name) for name in wanted]
    positives = label.is_in(classes.spellings).alias("\0y")
    frame = rows.select("\0row", positives, *values).collect(engine="streaming")
    for name in wanted:
        _check(source, name, frame)
    columns = [frame[name].to_numpy().astype(np.float64) for name in wanted]
    y = frame["\0y"].to_numpy().astype(np.int64)
    return Scores(columns[0], y, columns[1] if len(columns) > 1 else None, classes.positive, tuple(notes))


def _number(source: Source, name: str) -> pl.Expr:
    dtype = source.dtypes[name]
    if dtype.is_nested() or dtype.is_temporal() or dtype == pl.Binary:
        raise TableError(
            f"{source.path}: column {name!r} is of type {dtype}, not of numbers: choose another."
        )
    return parsed(col(name), dtype, source.decimal).alias(name)


def _check(source: Source, name: str, frame: pl.DataFrame) -> None:
    """Every number must be there and finite."""
    bad = frame.filter(~col(name).is_finite().fill_null(False))
    if not bad.height:
        return
    row, value = int(bad["\0row"][0]), bad[name][0]
    if value is None:  # as it stands in the file
        held = source.frame.slice(row, 1).select(col(name)).collect().item()
        what = "missing" if held is None or not str(held).strip() else f"{held!r}, no number,"
    else:
        what = f"{value:g}"
    raise TableError(
        f"{source.path}: column {name!r} is {what} in row {row + 1}, and in {bad.height:,} of {frame.height:,} rows "
        "no finite number: fill it, or leave those rows out."
    )

"""Scores of any model and the true classes beside them, from a table of any format."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fbeta.tables.errors import TableError
from fbeta.tables.formats import READER_ERRORS, OpenTable, col, need_column, opened, unused
from fbeta.tables.parsing import parsed
from fbeta.tables.profile import amounts_notes, profile
from fbeta.tables.reading import target_classes, target_text


class ScoredRows(NamedTuple):
    """Scores of rows, whether each is positive, and perhaps its weight: all (n,), of the rows that have a target."""

    score: NDArray[np.float64]
    y: NDArray[np.int64]
    weight: NDArray[np.float64] | None
    positive: str
    notes: tuple[str, ...]


def read_scores(
    path: str | Path,
    target: str,
    score: str,
    positive: str | None = None,
    weight: str | None = None,
    sheet: str | None = None,
) -> ScoredRows:
    """Read a column of scores and a target of two classes; a score that is no finite number is a TableError."""
    wanted = [name for name in (score, weight) if name is not None]
    with opened(path, sheet=sheet) as source:
        for what, name in (("target", target), ("score", score), ("weight", weight)):
            need_column(source, [name], f"{what} column")
        if len({target, *wanted}) < 1 + len(wanted):
            raise TableError(f"target, score and weight must be different columns: {target!r}, {score!r}.")
        source = source.as_text()
        try:
            return _read(source, target, wanted, positive)
        except READER_ERRORS as error:
            raise source.fault(error) from error


def _read(source: OpenTable, target: str, wanted: Sequence[str], positive: str | None) -> ScoredRows:
    classes, notes = target_classes(source, target, positive)
    label = target_text(source, target)
    row, y = (unused(source.names, name) for name in ("row", "y"))
    facts = profile(source, wanted)
    notes += amounts_notes(facts)
    values = [_number(source, name, facts[name].how if name in facts else "") for name in wanted]
    rows = source.frame.with_row_index(row).filter(label.is_not_null())
    frame = rows.select(col(row), label.is_in(classes.spellings).alias(y), *values).collect(engine="streaming")
    score, *weight = (_finite(source, name, frame, row) for name in wanted)
    truth = frame[y].to_numpy().astype(np.int64)
    return ScoredRows(score, truth, weight[0] if weight else None, classes.positive, tuple(notes))


def _number(source: OpenTable, name: str, how: str) -> pl.Expr:
    dtype = source.dtypes[name]
    if dtype.is_nested() or dtype.is_temporal() or dtype == pl.Binary:
        raise TableError(f"{source.path}: column {name!r} is of type {dtype}, not of numbers: choose another.")
    return parsed(col(name), dtype, source.decimal, how).alias(name)


def _finite(source: OpenTable, name: str, frame: pl.DataFrame, counter: str) -> NDArray[np.float64]:
    """The numbers of a column, which must all be there and finite; `counter` is the column of row numbers."""
    numbers = frame[name].to_numpy().astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if not len(bad):
        return numbers
    row, value = frame[counter][int(bad[0])], frame[name][int(bad[0])]
    if value is not None:
        what = f"{value:g}"
    else:  # as it stands in the file
        held = source.frame.slice(row, 1).select(col(name)).collect().item()
        what = "missing" if held is None or not str(held).strip() else f"{held!r}, no number,"
    raise TableError(
        f"{source.path}: column {name!r} is {what} in row {row + 1}, and in {len(bad):,} of {frame.height:,} rows "
        "no finite number: fill it, or leave those rows out."
    )

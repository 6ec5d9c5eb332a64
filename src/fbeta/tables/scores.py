"""Anybody's scores and the truth beside them, from a table of any format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fbeta.tables.errors import TableError
from fbeta.tables.formats import READER_ERRORS, Source, need_column, opened
from fbeta.tables.kinds import cleaned, parsed
from fbeta.tables.reading import choice_of


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
        source = source if source.text is None else replace(source, frame=source.text)
        try:
            return _read(source, target, wanted, positive)
        except READER_ERRORS as error:
            raise source.fault(error) from error


def _read(source: Source, target: str, wanted: Sequence[str], positive: str | None) -> Scores:
    dtypes = dict(source.frame.collect_schema())
    choice, without = choice_of(source, target, dtypes, positive)
    label = cleaned(pl.col(target), dtypes[target]).cast(pl.String)
    rows = source.frame.with_row_index("\0row").filter(label.is_not_null())
    values = [_number(source, name, dtypes[name]).alias(name) for name in wanted]
    frame = rows.select("\0row", label.is_in(choice.spellings).alias("\0y"), *values).collect(
        engine="streaming"
    )
    for name in wanted:
        _check(source, name, frame)
    columns = [frame[name].to_numpy().astype(np.float64) for name in wanted]
    notes = [choice.note, *source.notes]
    if without:
        notes.append(f"rows without a value of {target!r} were left out: {without:,}.")
    return Scores(
        columns[0],
        frame["\0y"].to_numpy().astype(np.int64),
        columns[1] if len(columns) > 1 else None,
        choice.positive,
        tuple(notes),
    )


def _number(source: Source, name: str, dtype: Any) -> pl.Expr:
    if dtype.is_nested() or dtype.is_temporal() or dtype == pl.Binary:
        raise TableError(
            f"{source.path}: column {name!r} is of type {dtype}, not of numbers: choose another."
        )
    return parsed(pl.col(name), dtype, source.decimal)


def _check(source: Source, name: str, frame: pl.DataFrame) -> None:
    """Every number must be there and finite."""
    bad = frame.filter(~pl.col(name).is_finite().fill_null(False))
    if not bad.height:
        return
    row, value = int(bad["\0row"][0]), bad[name][0]
    if value is None:  # as it stands in the file
        held = source.frame.slice(row, 1).select(name).collect().item()
        what = "missing" if held is None or not str(held).strip() else f"{held!r}, no number,"
    else:
        what = f"{value:g}"
    raise TableError(
        f"{source.path}: column {name!r} is {what} in row {row + 1}, and in {bad.height:,} of {frame.height:,} rows "
        "no finite number: fill it, or leave those rows out."
    )

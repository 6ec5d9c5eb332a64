"""A file larger than memory, in pieces, each checked against the columns that a model learnt from."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from fbeta.spelling import did_you_mean
from fbeta.tables.errors import TableError, listed
from fbeta.tables.formats import READER_ERRORS, Source, need_column, opened
from fbeta.tables.kinds import Column, cleaned, parsed

_EXPECTED = {"number": "numbers", "boolean": "true or false", "date": "dates", "category": "categories"}


def stream(
    path: str | Path,
    columns: Sequence[Column],
    *,
    rows: int = 65_536,
    keep: Sequence[str] = (),
    delimiter: str | None = None,
) -> Generator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Read a table in pieces: its features, typed as `columns` say, and the columns in `keep` as they stand.

    Columns are found by name, in any order; others are passed over. A column that is missing, or a value of
    another kind than the one that was learnt, is a TableError.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (file := Path(folder, "new.csv")).write_text("id,amount\\nx,1.5\\ny,?\\n")
    ...     for features, kept in stream(file, [Column("amount", "number")], keep=["id"]):
    ...         features["amount"].to_list(), kept["id"].to_list()
    ([1.5, None], ['x', 'y'])
    """
    with opened(path, delimiter) as source:
        frame = source.frame if source.text is None else source.text
        dtypes = dict(frame.collect_schema())
        _check(source, columns, dtypes, keep)
        names = list(dict.fromkeys([*(column.name for column in columns), *keep]))
        done = 0
        pieces = frame.select(names).collect_batches(chunk_size=rows, maintain_order=True, engine="streaming")
        while True:  # around the reader alone: what is done with a piece has errors of its own
            try:
                piece = next(pieces, None)
            except READER_ERRORS as error:
                raise source.fault(error) from error
            if piece is None:
                return
            yield _typed(source, piece, columns, dtypes, done), piece.select(keep)
            done += piece.height


def typed(frame: pl.DataFrame, columns: Sequence[Column], name: str = "the table") -> pl.DataFrame:
    """The features of a frame in memory, checked and typed as those of `stream` are.

    >>> typed(pl.DataFrame({"id": ["x"], "amount": ["1.5"]}), [Column("amount", "number")])["amount"].to_list()
    [1.5]
    """
    source = Source(Path(name), frame.lazy(), tuple(frame.columns))
    dtypes = dict(frame.schema)
    _check(source, columns, dtypes)
    return _typed(source, frame, columns, dtypes, 0)


def _typed(
    source: Source, piece: pl.DataFrame, columns: Sequence[Column], dtypes: dict[str, Any], done: int
) -> pl.DataFrame:
    _check_values(source, piece, columns, dtypes, done)
    return piece.select(c.read(dtypes[c.name], source.decimal) for c in columns)


def _check(
    source: Source, columns: Sequence[Column], dtypes: dict[str, Any], keep: Sequence[str] = ()
) -> None:
    needed = [column.name for column in columns]
    lacking = [name for name in needed if name not in source.names]
    if lacking:
        others = [name for name in source.names if name not in needed]
        one = len(lacking) == 1
        hint = did_you_mean(lacking[0], others, ask="Is it") if one else ""
        what = f"the column {lacking[0]!r}" if one else f"the columns {listed(lacking)}"
        add = "add it" if one else "add them"
        raise TableError(f"{source.path} lacks {what} that the model learnt from: {add}.{hint}")
    need_column(source, keep, "kept column")
    for column in columns:
        _check_type(source, column, dtypes[column.name])


def _check_type(source: Source, column: Column, dtype: Any) -> None:
    text = dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)
    fits = {
        "number": dtype.is_numeric() or dtype == pl.Boolean,
        "boolean": dtype == pl.Boolean,
        "date": dtype in (pl.Date, pl.Datetime),
        "category": not dtype.is_nested(),
    }
    if not (text and (column.kind != "date" or column.format or dtype == pl.Null)) and not fits[column.kind]:
        raise TableError(
            f"{source.path}: column {column.name!r} is of type {dtype}, but the model learnt "
            f"{_EXPECTED[column.kind]} from it: convert it."
        )


def _check_values(
    source: Source, piece: pl.DataFrame, columns: Sequence[Column], dtypes: dict[str, Any], done: int
) -> None:
    for column in columns:
        dtype = dtypes[column.name]
        if column.kind == "category" or dtype not in (pl.String, pl.Categorical, pl.Enum):
            continue
        raw = pl.col(column.name)
        read = parsed(raw, dtype, source.decimal) if column.kind == "number" else column.read(dtype)
        present = cleaned(raw, dtype)
        doubtful = piece.with_row_index("\0row").filter(read.is_null() & raw.is_not_null())
        bad = doubtful.filter(present.is_not_null() & ~present.is_in(column.missing))
        if bad.height:
            raise TableError(
                f"{source.path}: column {column.name!r} is {bad[column.name][0]!r} in row "
                f"{done + bad[chr(0) + 'row'][0] + 1}, but the model learnt {_EXPECTED[column.kind]} from it: "
                "correct it, or leave the field empty."
            )

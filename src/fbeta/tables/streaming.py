"""A file larger than memory, in pieces, each checked against the columns that a model learnt from."""

from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import polars as pl

from fbeta.spelling import did_you_mean
from fbeta.tables.amounts import Reading
from fbeta.tables.columns import Column, alike, read_columns
from fbeta.tables.errors import TableError, listed
from fbeta.tables.formats import PIECE, READER_ERRORS, OpenTable, cols, need_column, opened, pieces, stack
from fbeta.tables.parsing import cleaned, is_text, parsed, readable

_EXPECTED = {"number": "numbers", "boolean": "true or false", "date": "dates", "category": "categories"}


def stream(
    path: str | Path,
    columns: Sequence[Column],
    *,
    rows: int = PIECE,
    keep: Sequence[str] = (),
    delimiter: str | None = None,
    sheet: str | None = None,
    tell: Callable[[str], None] = lambda note: None,
) -> Generator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Read a table in pieces: its features, typed as `columns` say, and the columns in `keep` as they stand.

    Columns are found by name, in any order; others are passed over. A column that is missing, or a value of
    another kind than the one that was learnt, is a TableError. `tell` is told what is unusual about the file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (file := Path(folder, "new.csv")).write_text("id,amount\\nx,1.5\\ny,?\\n")
    ...     for features, kept in stream(file, [Column("amount", "number")], keep=["id"]):
    ...         features["amount"].to_list(), kept["id"].to_list()
    ([1.5, None], ['x', 'y'])
    """
    with opened(path, delimiter, sheet=sheet) as source:
        source = source.as_text()
        _check(source, columns, keep)
        for note in source.notes:
            tell(note)
        names = dict.fromkeys([*(column.name for column in columns), *keep])
        done = 0
        held = pieces(source.frame.select(cols(names)), len(names), rows)
        while True:  # around the reader alone: what is done with a piece has errors of its own
            try:
                piece = next(held, None)
            except READER_ERRORS as error:
                raise source.fault(error) from error
            if piece is None:
                return
            yield _typed(source, piece, columns, done), piece[:, list(keep)]
            done += piece.height


def typed(frame: pl.DataFrame, columns: Sequence[Column], name: str = "the table") -> pl.DataFrame:
    """The features of a frame in memory, checked and typed as those of `stream` are."""
    source = OpenTable(Path(name), frame.lazy(), tuple(frame.columns))
    _check(source, columns)
    return _typed(source, frame, columns, 0)


def _check(source: OpenTable, columns: Sequence[Column], keep: Sequence[str] = ()) -> None:
    needed = [column.name for column in columns]
    if lacking := [name for name in needed if name not in source.dtypes]:
        what, remedy = f"columns {listed(lacking)}", "add them."
        if len(lacking) == 1:
            others = [name for name in source.names if name not in {*needed}]
            what, remedy = f"column {lacking[0]!r}", "add it." + did_you_mean(lacking[0], others, ask="Is it")
        raise TableError(f"{source.path} lacks the {what} that the model learnt from: {remedy}")
    need_column(source, keep, "kept column")
    for column in columns:
        dtype = source.dtypes[column.name]
        fits = {
            "number": dtype.is_numeric() or dtype == pl.Boolean,
            "boolean": dtype == pl.Boolean,
            "date": dtype in (pl.Date, pl.Datetime),
            "category": readable(dtype),
        }
        as_text = dtype == pl.Null or (is_text(dtype) and (column.kind != "date" or column.format))
        if not as_text and not fits[column.kind]:
            raise TableError(
                f"{source.path}: column {column.name!r} is of type {dtype}, but the model learnt "
                f"{_EXPECTED[column.kind]} from it: convert it."
            )


def _typed(source: OpenTable, piece: pl.DataFrame, columns: Sequence[Column], done: int) -> pl.DataFrame:
    """The features of a piece; a text that is not of its column's kind is a TableError."""
    texts = [c for c in columns if c.kind != "category" and is_text(source.dtypes[c.name])]
    missing = {column.name: column.missing for column in texts}
    for how, dtype, names in alike(texts, source):
        rows, value = stack(piece, names).with_row_index("place").lazy(), pl.col("value")
        # An infinite number is read as missing, and is no fault; so is a text that stands for a missing value.
        number = how.kind == "number"
        read = parsed(value, dtype, source.decimal, how.format) if number else how.read(value, dtype)
        unread = rows.filter(read.is_null() & cleaned(value, dtype).is_not_null())
        expected = Reading.of(how.format).says if number and how.format else _EXPECTED[how.kind]
        for place, text in unread.select("place", cleaned(value, dtype)).collect().iter_rows():
            name = names[place // piece.height]
            if text not in missing[name]:
                raise TableError(
                    f"{source.path}: column {name!r} is {text!r} in row {done + place % piece.height + 1}, but "
                    f"the model learnt {expected} from it: correct it, or leave the field empty."
                )
    return read_columns(piece, columns, source)

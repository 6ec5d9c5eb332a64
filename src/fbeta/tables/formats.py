"""Files of every format as one thing: a lazy frame of named columns. The content decides, not the name."""

import contextlib
import errno
import itertools
import math
import os
import stat
import sys
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from fbeta.sealed import DAMAGED, in_short
from fbeta.spelling import did_you_mean
from fbeta.tables.claims import checked_arrow, checked_parquet
from fbeta.tables.delimited import CHUNK, THOUSANDS, Copy, Delimited, chunks, inspect, unpacked
from fbeta.tables.errors import TableError, absent, listed
from fbeta.tables.json_lines import is_json, read_json_lines
from fbeta.tables.values import MISSING, is_number
from fbeta.tables.workbook import is_workbook, read_workbook
from fbeta.writing import is_stdout, nameless

#: What the reader raises: on a damaged file it may also panic, which is no Exception.
READER_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
#: Rows that decide whether a column of text is read as numbers at once; the rest of the file may overrule them.
_GUESS = 10_000
#: Rows and values that a piece of a table has at most, but for a single row.
PIECE, _VALUES = 1 << 16, 1 << 23


@dataclass(frozen=True)
class OpenTable:
    """An open table: `frame` reads it, `text` is the same with all columns as text, where it is a text `file`."""

    path: Path
    frame: pl.LazyFrame
    names: tuple[str, ...]
    text: pl.LazyFrame | None = None
    file: Delimited | None = None
    decimal: str = "."
    notes: tuple[str, ...] = ()

    @cached_property
    def dtypes(self) -> dict[str, Any]:
        """The type of each column, asked for once: polars takes a while where there are many."""
        return dict(self.frame.collect_schema())

    def as_text(self) -> Self:
        """The same with all columns as text, where it is a text file."""
        return self if self.text is None else replace(self, frame=self.text)

    def with_texts(self, names: Sequence[str]) -> Self:
        """The same with some columns as text."""
        return replace(self, frame=self.frame.with_columns(cols(names).cast(pl.String))) if names else self

    def fault(self, error: BaseException) -> TableError:
        """What to tell about an error of the reader."""
        first = (str(error).splitlines() or ["no reason given"])[0][:200]
        if self.file:
            return TableError(f"cannot read {self.path}: {first}.")
        return TableError(f"{self.path} is damaged ({first}): copy or export it again.")


def col(name: str) -> pl.Expr:
    """The column of that very name: polars takes `*` and `^…$` for patterns."""
    return cols([name])


def cols(names: Iterable[str]) -> pl.Expr:
    """The columns of these very names, as one expression."""
    return cs.by_name(*names).as_expr()


def columns_of(frame: pl.DataFrame) -> dict[str, pl.Series]:
    """The columns of a frame by their names, each called otherwise: polars finds a series by its name, as a pattern."""
    return {name: series.alias("value") for name, series in zip(frame.columns, frame.get_columns(), strict=True)}


def stack(piece: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Columns of one type, one below the other, as one column `value`.

    A query takes time and memory for every column of every step, however few rows there are.
    """
    held = columns_of(piece)
    return pl.concat([held[name] for name in names], rechunk=True).to_frame("value")


def streamed_stack(frame: pl.LazyFrame, names: Sequence[str]) -> pl.LazyFrame:
    """Columns of one type, one below the other in any order: `value`, and the `name` of the column that has it."""
    name, value = (unused(names, own) for own in ("name", "value"))
    long = frame.select(cols(names)).unpivot(variable_name=name, value_name=value)
    return long.select(col(name).alias("name"), col(value).alias("value"))


def pieces(frame: pl.LazyFrame, width: int, rows: int = PIECE) -> Iterator[pl.DataFrame]:
    """A frame of so many columns, piece by piece; of a very wide one a piece has fewer rows."""
    size = max(1, min(rows, _VALUES // width))
    return frame.collect_batches(chunk_size=size, maintain_order=True, engine="streaming")


def unused(names: Collection[str], name: str) -> str:
    """A name for a column of our own, which none of the table's has."""
    while name in names:
        name = f"\0{name}"
    return name


def need_column(source: OpenTable, names: Iterable[str | None], what: str) -> None:
    """Refuse a name that is no column, and name the nearest that is; None is no name."""
    for name in names:
        if name is not None and name not in source.names:
            hint = did_you_mean(name, source.names) or f" It has {listed(source.names)}."
            raise TableError(f"{source.path} has no {what} {name!r}.{hint}")


@contextlib.contextmanager
def opened(
    path: str | Path, delimiter: str | None = None, text: Collection[str] = (), sheet: str | None = None
) -> Iterator[OpenTable]:
    """Open a table of any format for the time of a `with`; the columns in `text` stay text where the file is.

    A pipe, or `-` for the standard input, is copied first: it is read more than once.
    """
    path = Path(os.path.expanduser(path))
    folder = Path(tempfile.gettempdir())
    with contextlib.ExitStack() as copies:

        def copy(content: Iterable[bytes]) -> Path:
            place = copies.enter_context(nameless(folder))
            with open(place, "wb") as out:
                out.writelines(content)
            return place

        try:
            before = stamp(path)
            yield _open(path, copy, delimiter, text, sheet)
            if stamp(path) != before:
                raise TableError(f"{path} was changed while it was read: read it again when it stays as it is.")
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise TableError(
                    f"no room for {path} in {folder}: free some, or set TMPDIR to another folder."
                ) from error
            raise TableError(f"cannot read {path}: {error.strerror or error}.") from error


def stamp(path: str | Path) -> tuple[int, ...] | None:
    """What tells whether a file is still the one that it was, and has its content; None if it is no plain file."""
    with contextlib.suppress(OSError, ValueError):  # none, or a name that cannot be
        now = os.stat(os.path.expanduser(path))
        return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns) if stat.S_ISREG(now.st_mode) else None
    return None


def _open(path: Path, copy: Copy, delimiter: str | None, text: Collection[str], sheet: str | None) -> OpenTable:
    held, ending = path, path.suffix.casefold()
    lost = is_stdout(path)
    if str(path) == "-":
        path = Path("the standard input")
        if sys.stdin is None:
            raise TableError(f"{path} is closed: give a file.")
        held = path if lost else copy(iter(lambda: sys.stdin.buffer.read(CHUNK), b""))
    elif path.is_dir():
        raise TableError(f"{path} is a folder: name a file in it.")
    elif not path.exists():
        raise TableError(absent(path))
    elif path.is_fifo() or _shown(path) != path:  # polars takes no name that is not in UTF-8
        held, path = copy(chunks(path)), _shown(path)
    elif not path.is_file():
        raise TableError(f"{path} is neither a file nor a pipe: give one.")
    if lost:
        raise TableError(f"{path} is where the standard output goes, and would be lost: send that to another file.")
    with open(held, "rb") as stream:
        head = stream.read(8)
    if not head:
        raise TableError(f"{path} is empty: export it again.")
    if not (workbook := is_workbook(held)) and sheet is not None:
        raise TableError(f"{path} is no Excel workbook, and has no sheet {sheet!r}: leave the sheet out.")
    if head.startswith(b"PAR1"):
        return _binary(path, "Parquet", lambda: pl.scan_parquet(checked_parquet(held), glob=False))
    if head.startswith(b"ARROW1"):
        return _binary(path, "Arrow", lambda: pl.scan_ipc(checked_arrow(held), glob=False))
    if head.startswith(b"\xff\xff\xff\xff"):
        return _binary(path, "Arrow", lambda: pl.read_ipc_stream(checked_arrow(held)).lazy())
    if head.startswith(b"FEA1"):
        raise TableError(f"{path} is Feather of version 1: write it again as version 2 or Parquet.")
    if ending == ".npz":
        return _npz(path, held)
    if ending in (".parquet", ".pq", ".arrow", ".feather", ".ipc"):
        raise TableError(f"{path} is no {ending[1:]} file, whatever its name says: export it again.")
    if workbook:
        file = read_workbook(path, held, sheet, copy)
    else:
        own, notes = unpacked(path, held, copy)
        lines = is_json(own)
        file = read_json_lines(path, own, copy, notes) if lines else inspect(path, own, delimiter, notes)
    guess, text_only = _numbers(file) - {*text}, dict.fromkeys(file.names, pl.String)
    schema = text_only | dict.fromkeys((name for name in file.names if name in guess), pl.Float64)
    frame, plain = _scan(file, schema, MISSING), _scan(file, text_only)
    return OpenTable(path, frame, file.names, plain, file, file.decimal, file.notes)


def _shown(path: Path) -> Path:
    return Path(os.fsencode(path).decode(errors="replace"))


def _binary(path: Path, what: str, scan: Any) -> OpenTable:
    try:
        frame = scan()
        names = tuple(frame.collect_schema().names())
        rows = frame.select(pl.len()).collect().item() if names else 0
    except (*READER_ERRORS, ValueError, OSError) as error:
        raise TableError(
            f"{path} is truncated or damaged {what} ({in_short(error)}): copy or export it again."
        ) from error
    if not rows:
        raise TableError(f"{path} has {len(names)} columns but no rows: export it again.")
    return OpenTable(path, frame, names)


def _scan(file: Delimited, schema: dict[str, Any], missing: Collection[str] = ()) -> pl.LazyFrame:
    how: dict[str, Any] = {"separator": file.delimiter, "skip_lines": file.skip, "has_header": False, "glob": False}
    return pl.scan_csv(file.path, schema=schema, n_rows=file.rows, null_values=list(missing) or None, **how)


def _numbers(file: Delimited) -> set[str]:
    """Columns whose first values are all numbers that the reader can take as they stand."""
    columns: Iterable[tuple[str, ...]] = itertools.zip_longest(file.names, *file.sample[:_GUESS], fillvalue="")
    if file.decimal == ",":  # then 1.234 may be written for 1234
        columns = (column for column in columns if not any(map(THOUSANDS.fullmatch, column[1:])))
    return {name for name, *cells in columns if all(cell in MISSING or is_number(cell) for cell in cells)}


def _npz(path: Path, held: Path) -> OpenTable:
    """Arrays X (N, d) and y (N,), and the names of the d columns in `features` where they are given."""
    try:
        with zipfile.ZipFile(held) as archive:
            keys = [name.removesuffix(".npy") for name in archive.namelist()]
            if len({*keys}) < len(keys):
                raise ValueError("two arrays have one name")
            arrays = {key: _array(archive, f"{key}.npy") for key in ("X", "y", "features") if key in keys}
    except (*DAMAGED, zlib.error, tokenize.TokenError, SystemError) as error:  # the last for letters that are none
        if "allow_pickle" in str(error):
            raise TableError(
                f"{path} holds Python objects, which can run code when read: save plain arrays."
            ) from error
        raise TableError(f"{path} is truncated or damaged NPZ: copy or save it again.") from error
    x, y = arrays.get("X"), arrays.get("y")
    if x is None or y is None or x.ndim != 2 or y.shape != x.shape[:1] or not (_plain(x) and _plain(y, "fiubSU")):
        raise TableError(f"{path} must hold numbers X (N, d) and a target y (N,), but has {listed(keys)}.")
    if not len(y):
        raise TableError(f"{path} has {x.shape[1]} columns but no rows: save it again.")
    names = [str(n) for n in arrays.get("features", np.array([f"x{i}" for i in range(x.shape[1])])).ravel()]
    if len(names) != x.shape[1] or len({*names, "y"}) <= len(names):
        raise TableError(f"{path} names its {x.shape[1]} columns by {len(names)} features: give each its own name.")
    frame = pl.DataFrame({n: x[:, i] for i, n in enumerate(names)} | {"y": y})
    return OpenTable(path, frame.lazy(), (*names, "y"))


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """An array of an archive, if the shape that it claims is that of its content."""
    with archive.open(name) as member:
        version = np.lib.format.read_magic(member)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(member)
        size = archive.getinfo(name).file_size - member.tell()
        if not dtype.hasobject and (math.prod(shape) * dtype.itemsize != size or not dtype.itemsize):
            raise ValueError(f"{shape} is not its shape")
    with archive.open(name) as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
    if array.dtype.kind == "U":
        "".join(array.ravel().tolist()).encode()  # letters that are none are an error here, not later
    return array


def _plain(array: NDArray[Any], kinds: str = "fiub") -> bool:
    return array.dtype.kind in kinds and (array.dtype.itemsize <= 8 or array.dtype.kind in "SU")

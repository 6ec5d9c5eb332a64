"""Excel workbooks (.xlsx): the first sheet or the one that is asked for, row by row, its cells as texts."""

import contextlib
import datetime
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fbeta.sealed import in_short
from fbeta.spelling import did_you_mean
from fbeta.tables.delimited import Copy, Delimited
from fbeta.tables.errors import TableError, listed
from fbeta.tables.text_copy import copied

#: Bytes that a workbook may unpack to.
LARGEST = 1 << 31
#: Rows that a sheet of Excel has at most.
MOST_ROWS = 1 << 20
_OLE, _ZIP = b"\xd0\xcf\x11\xe0", b"PK\x03\x04"
_WRITTEN = "save it as .xlsx, or its sheet as CSV"


def is_workbook(plain: Path) -> bool:
    """Whether a file is a workbook of Excel, new, old or locked."""
    with open(plain, "rb") as stream:
        head = stream.read(4)
    if head != _ZIP:
        return head == _OLE
    with contextlib.suppress(zipfile.BadZipFile, OSError, ValueError), zipfile.ZipFile(plain) as archive:
        return any(name.startswith(("xl/", "content.xml")) for name in archive.namelist())
    return False


def read_workbook(path: Path, plain: Path, sheet: str | None, copy: Copy) -> Delimited:
    """The table of a sheet, whose first row that is not blank has the names of the columns."""
    _check(path, plain)
    try:
        import openpyxl
    except ImportError as error:
        raise TableError(f"{path} is an Excel workbook, which needs openpyxl: pip install 'fbeta[excel]'") from error
    with contextlib.ExitStack() as held, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and drawings, which are passed over
        try:
            book = openpyxl.load_workbook(plain, read_only=True, data_only=True)
            held.callback(book.close)
            return _table(path, book, sheet, copy)
        except (TableError, OSError, MemoryError):
            raise
        except Exception as error:  # whatever a parser of a damaged file stumbles over
            raise TableError(f"{path} is a damaged workbook ({in_short(error)}): {_WRITTEN}.") from error


def _check(path: Path, plain: Path) -> None:
    with open(plain, "rb") as stream:
        if stream.read(4) == _OLE:
            locked = "EncryptedPackage".encode("utf-16-le") in stream.read(1 << 24)
            what = (
                "locked by a password: save it without one" if locked else f"an old Excel workbook (.xls): {_WRITTEN}"
            )
            raise TableError(f"{path} is {what}.")
    with zipfile.ZipFile(plain) as archive:
        members = archive.infolist()
    names = {member.filename for member in members}
    if "xl/workbook.xml" not in names:
        kind = "of LibreOffice" if "content.xml" in names else "a binary one (.xlsb)"
        raise TableError(f"{path} is a workbook {kind}: {_WRITTEN}.")
    if sum(member.file_size for member in members) > LARGEST:
        raise TableError(f"{path} unpacks to more than {LARGEST >> 30} GB: save its sheet as CSV.")


def _table(path: Path, book: Any, sheet: str | None, copy: Copy) -> Delimited:
    sheets = {held.title: held for held in book.worksheets}
    if sheet is not None and sheet not in sheets:
        raise TableError(f"{path} has no sheet {sheet!r}, but {listed(sheets)}.{did_you_mean(sheet, sheets)}")
    if not sheets:
        raise TableError(f"{path} has no sheet of cells: {_WRITTEN}.")
    name = next(iter(sheets)) if sheet is None else sheet
    notes = []
    if sheet is None and len(sheets) > 1:
        others = listed([other for other in sheets if other != name])
        notes.append(f"{path.name} has several sheets: {name!r} was read, not {others} (--sheet NAME).")
    sheets[name].reset_dimensions()  # what a sheet says of its size is often wrong
    rows = _filled(sheets[name].iter_rows(), notes)
    header = next(rows, None)
    if header is None:
        raise TableError(f"the sheet {name!r} of {path} is empty: name another (--sheet NAME).")
    start = next(i for i, text in enumerate(header) if text)
    names = [text or "" for text in header[start:]]
    if unnamed := [f"column {i}" for i, text in enumerate(names, 1) if not text]:
        notes.append(
            f"{path.name} has columns without a name, called {listed(unnamed)}; merged cells count as the first."
        )

    def below() -> Iterator[tuple[str | None, ...]]:
        for row in rows:
            if len(row) > len(header):
                raise TableError(
                    f"the sheet {name!r} of {path} has {row[-1]!r:.60} in a column without a name: keep a table alone "
                    "in its sheet, with a name above each column."
                )
            yield row[start:]

    return copied(path, names, below(), copy, notes)


def _filled(rows: Iterable[Sequence[Any]], notes: list[str]) -> Iterator[tuple[str | None, ...]]:
    """The rows that are not blank, up to the last field that is not; how many are left out is added to `notes`."""
    blank = between = begun = 0
    for number, cells in enumerate(rows):
        if number > MOST_ROWS:  # a damaged row may say that it is at any place
            raise ValueError(f"a row is beyond {MOST_ROWS:,}")
        texts = tuple(map(_text, cells))
        if width := next((i for i in range(len(texts), 0, -1) if texts[i - 1]), 0):
            between, blank, begun = between + blank * begun, 0, 1
            yield texts[:width]
        else:
            blank += 1
    if between:
        notes.append(f"blank rows were left out: {between:,}.")


def _text(cell: Any) -> str | None:
    """What a cell holds, as text; errors such as #DIV/0! are missing."""
    value = cell.value
    if value is None or cell.data_type == "e":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        timed = "h" in str(cell.number_format).casefold() or value.time() != datetime.time()
        return value.isoformat(sep=" ") if timed else value.date().isoformat()
    return str(value).strip()

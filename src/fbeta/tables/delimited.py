"""Text files: which encoding, which delimiter, which names. All of it is found, and said where it is unusual."""

import codecs
import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fbeta.tables.errors import TableError, listed
from fbeta.tables.values import is_number

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_CHUNK = 1 << 20
#: Characters that a header and the first row may have together.
_HEADER = 1 << 26
#: Beginnings of files that people take for tables.
_FOREIGN = {
    b"PK\x03\x04": "an Excel workbook or a zip archive: save its sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save its sheet as CSV",
    b"%PDF": "a PDF: export the table as CSV",
    b"SQLite format 3": "an SQLite data base: export its table as CSV",
    b"BZh": "compressed by bzip2: unpack it, or use gzip",
    b"\xfd7zXZ": "compressed by xz: unpack it, or use gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it, or use gzip",
}


@dataclass(frozen=True)
class Delimited:
    """A text file in UTF-8 and what was found about it; `sample` are its first rows, after `skip` lines."""

    path: Path
    delimiter: str
    decimal: str
    names: tuple[str, ...]
    skip: int
    sample: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def inspect(path: Path, folder: Path, delimiter: str | None = None) -> Delimited:
    """Look at a text file, plain or gzip; where it is not plain UTF-8, a copy that is goes into `folder`."""
    plain = path
    if next(_chunks(path), b"").startswith(b"\x1f\x8b"):
        plain = folder / "unpacked"
        try:
            with gzip.open(path) as stream:
                _write(plain, iter(lambda: stream.read(_CHUNK), b""))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(f"{path} is truncated or damaged gzip: copy or export it again.") from error
    notes: list[str] = []
    plain = _as_utf8(plain, folder, path, notes)
    with open(plain, encoding="utf-8-sig", newline="") as stream:
        text, whole = "", False
        while text.count("\n") < 2 and not whole and len(text) < _HEADER:
            text += (more := stream.read(_CHUNK))
            whole = len(more) < _CHUNK
    if not text.strip():
        raise TableError(f"{path} is empty: export it again.")
    if not whole and "\n" in text:
        text = text[: text.rindex("\n") + 1]
    found = delimiter or sniff(text)
    if len(found) != 1 or not found.isascii():
        raise TableError(f"a delimiter is one ASCII character, not {found!r}.")
    rows = list(_rows(text, found, path))
    if not rows:
        raise TableError(f"{path} has fields but all are blank: export it again.")
    (skip, header), *rows = rows
    names, sample = _names(header, path, delimiter), [row for _, row in rows]
    if not sample and whole:
        raise TableError(f"{path} has a header ({listed(names)}) but no rows: export it again.")
    if _cut_off(plain, found, len(names)):
        raise TableError(f"{path} ends in the middle of a row: it is truncated, copy or export it again.")
    decimal = _decimal(found, sample)
    if decimal == ",":
        notes.append(f"{path.name} has numbers with a comma; it was read as the decimal sign, not as thousands.")
    return Delimited(plain, found, decimal, names, skip, tuple(sample), tuple(notes))


def sniff(text: str) -> str:
    """The delimiter that splits the header and the first rows into the same number of fields."""
    lines = text.splitlines(keepends=True)[:100]
    best, chosen = (0.0, 0), ","
    for delimiter in DELIMITERS:
        try:
            rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 0
        if width > 1:
            fit = sum(len(row) == width for row in rows) / len(rows)
            best, chosen = max((best, chosen), ((fit, width), delimiter))
    return chosen


def long_row(file: Delimited) -> str:
    """Where the first row stands that has more fields than the header has names, or nothing if none has."""
    with open(file.path, encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=file.delimiter)
        try:
            for row in reader:
                if len(row) > len(file.names):
                    return (
                        f"line {reader.line_num} has {len(row)} fields, the header has {len(file.names)}: quote "
                        f"fields that contain a {DELIMITERS.get(file.delimiter, repr(file.delimiter))}"
                    )
        except csv.Error as error:
            return f"line {reader.line_num}: {error}"
    return ""


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    with open(path, "wb") as out:
        for chunk in chunks:
            out.write(chunk)


def _chunks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def _as_utf8(plain: Path, folder: Path, path: Path, notes: list[str]) -> Path:
    head = next(_chunks(plain), b"")[: 1 << 16]
    for start, what in _FOREIGN.items():
        if head.startswith(start):
            raise TableError(f"{path} is not a table of text but {what}.")
    copy = folder / "utf8"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decode = codecs.getincrementaldecoder("utf-16")("replace").decode
        _write(copy, (decode(chunk).encode() for chunk in _chunks(plain)))
        notes.append(f"{path.name} is in UTF-16, and was read so.")
        return copy
    control = sum(byte < 32 and byte not in b"\t\n\r\f\v" for byte in head)
    if b"\0" in head or control > len(head) // 10:
        raise TableError(f"{path} is a binary file, not a table of text: export it as CSV or Parquet.")
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for chunk in _chunks(plain):
            if b"\0" in chunk:
                raise TableError(f"{path} has zero bytes inside: it is damaged, copy or export it again.")
            if not chunk.isascii() or decoder.getstate()[0]:
                decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        _write(copy, (chunk.decode("latin-1").encode() for chunk in _chunks(plain)))
        notes.append(f"{path.name} is not in UTF-8: it was read as Latin-1; save it as UTF-8 if letters look wrong.")
        return copy
    return plain


def _rows(text: str, delimiter: str, path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The rows that are not blank, each with the number of the line that it ends in."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        yield from ((reader.line_num, tuple(row)) for row in reader if any(map(str.strip, row)))
    except csv.Error as error:
        raise TableError(f"cannot read {path} as a table of text: {error}.") from error


def _names(header: tuple[str, ...], path: Path, asked: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in header)
    if len(names) == 1:
        remedy = f"separate its fields by {', '.join(DELIMITERS.values())}, or say which delimiter it has"
        if asked:
            remedy = "leave the delimiter out to have it found"
        raise TableError(f"{path} has one column only ({listed(names)}): {remedy}.")
    if all(map(is_number, names)) and names != tuple(map(str, range(len(names)))):
        raise TableError(f"{path} begins with numbers ({listed(names)}): give it a first line with column names.")
    named = tuple(name or f"column {i}" for i, name in enumerate(names, 1))
    twice = [name for name, count in Counter(named).items() if count > 1]
    if twice:
        raise TableError(f"{path} has several columns of one name ({listed(twice)}): rename them.")
    return named


def _decimal(delimiter: str, sample: Iterable[tuple[str, ...]]) -> str:
    """A comma where fields like 1,5 stand and none like 1.5."""
    if delimiter == ",":
        return "."
    cells = [cell.strip() for row in sample for cell in row if "," in cell or "." in cell]
    commas = sum(cell.count(",") == 1 and is_number(cell.replace(",", ".")) for cell in cells)
    return "," if commas > sum(map(is_number, cells)) else "."


def _cut_off(plain: Path, delimiter: str, width: int) -> bool:
    """Whether the last line has neither its end nor all of its fields; with quotes in it nobody can tell."""
    with open(plain, "rb") as stream:
        stream.seek(max(0, plain.stat().st_size - (1 << 16)))
        last = stream.read().rpartition(b"\n")[2]
    return bool(last.strip()) and b'"' not in last and last.count(delimiter.encode()) < width - 1

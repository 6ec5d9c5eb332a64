"""Text files: which encoding, which delimiter, which names. All of it is found, and said where it is unusual."""

import codecs
import contextlib
import csv
import gzip
import io
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from fbeta.tables.errors import TableError, listed
from fbeta.tables.fields import DELIMITERS, count_rows
from fbeta.tables.values import is_number

CHUNK = 1 << 20
#: Keeps content as long as the table is open, and says where.
Copy = Callable[[Iterable[bytes]], Path]
#: Characters that a header and the first row may have together.
_HEADER = 1 << 26
_ASCII = bytes(range(128))
#: A letter beyond ASCII in UTF-8.
_LETTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
#: A number with one sign that may be of thousands or of decimals.
THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2}[.,][0-9]{3}")
#: Beginnings of files that people take for tables.
_FOREIGN = {
    b"PK\x03\x04": "a damaged Excel workbook or a zip archive: save its sheet as CSV",
    b"%PDF": "a PDF: export the table as CSV",
    b"SQLite format 3": "an SQLite data base: export its table as CSV",
    b"BZh": "compressed by bzip2: unpack it, or use gzip",
    b"\xfd7zXZ": "compressed by xz: unpack it, or use gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it, or use gzip",
}


class Delimited(NamedTuple):
    """A text file in UTF-8 and what was found about it: `rows` rows, after `skip` lines; `sample` are the first."""

    path: Path
    delimiter: str
    decimal: str
    names: tuple[str, ...]
    skip: int
    rows: int
    sample: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def unpacked(path: Path, plain: Path, copy: Copy) -> tuple[Path, list[str]]:
    """A text file, plain or gzip, as plain UTF-8 with line ends, and notes; what is not that yet is copied as such."""
    notes: list[str] = []
    if next(chunks(plain), b"").startswith(b"\x1f\x8b"):
        try:
            with gzip.open(plain) as packed:
                plain = copy(iter(lambda: packed.read(CHUNK), b""))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(f"{path} is truncated or damaged gzip: copy or export it again.") from error
    return _with_line_ends(_as_utf8(plain, copy, path, notes), copy, path, notes), notes


def inspect(path: Path, plain: Path, delimiter: str | None, notes: list[str]) -> Delimited:
    """Look at the text of a file that lies at `plain`."""
    with open(plain, encoding="utf-8-sig", newline="") as stream:
        text, whole = "", False
        while text.count("\n") < 2 and not whole and len(text) < _HEADER:
            text += (more := stream.read(CHUNK))
            whole = len(more) < CHUNK
    if not text.strip():
        raise TableError(f"{path} is empty: export it again.")
    if not whole and "\n" in text:
        text = text[: text.rindex("\n") + 1]
    found = delimiter or sniff(text)
    if len(found) != 1 or not found.isascii() or found in '\0\n\r"':
        raise TableError(f"a delimiter is one ASCII character, not {found!r}.")
    lines = _rows(text, found)
    skip, header = next(lines, (0, ()))
    if not header:
        reason = "all fields are blank, or a carriage return stands inside of a line"
        raise TableError(f"{path} has no header, because {reason}: export it again.")
    names = _names(header, path, delimiter)
    try:
        rows = count_rows(plain, found, len(names), skip)
    except ValueError as error:
        raise TableError(f"cannot read {path}: {error}.") from error
    if not rows:
        raise TableError(f"{path} has a header ({listed(names)}) but no rows: export it again.")
    sample = tuple(row for _, row in lines)
    decimal = _decimal(found, sample)
    if decimal == ",":
        notes.append(f"{path.name} has numbers with a comma; it was read as the decimal sign, not as thousands.")
    return Delimited(plain, found, decimal, names, skip, rows, sample, tuple(notes))


def sniff(text: str) -> str:
    """The delimiter that splits the header and the first rows into the same number of fields."""
    best, chosen = (0.0, 0), ","
    for delimiter in DELIMITERS:
        rows = [row for _, row in itertools.islice(_rows(text, delimiter), 100)]
        width = len(rows[0]) if rows else 0
        if width > 1:
            fit = sum(len(row) == width for row in rows) / len(rows)
            best, chosen = max((best, chosen), ((fit, width), delimiter))
    return chosen


def chunks(path: Path) -> Iterator[bytes]:
    """The content of a file, piece by piece."""
    with open(path, "rb") as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def _sound(path: Path, content: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in content:
        if b"\0" in chunk:
            raise TableError(f"{path} has zero bytes inside: it is damaged, copy or export it again.")
        yield chunk


def _with_line_ends(plain: Path, copy: Copy, path: Path, notes: list[str]) -> Path:
    """A file whose lines end as those of all others; of old Macs, and of some exports, they end in a return alone."""
    if any(b"\n" in chunk for chunk in chunks(plain)) or not any(b"\r" in chunk for chunk in chunks(plain)):
        return plain
    notes.append(f"{path.name} ends its lines by carriage returns alone, and was read so.")
    return copy(chunk.replace(b"\r", b"\n") for chunk in chunks(plain))


def _as_utf8(plain: Path, copy: Copy, path: Path, notes: list[str]) -> Path:
    head = next(chunks(plain), b"")[: 1 << 16]
    for start, what in _FOREIGN.items():
        if head.startswith(start):
            raise TableError(f"{path} is not a table of text but {what}.")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decoder = codecs.getincrementaldecoder("utf-16")()
        notes.append(f"{path.name} is in UTF-16, and was read so.")
        last = [(b"", True)]  # is refused where half a letter stands before it
        pieces = itertools.chain(((chunk, False) for chunk in chunks(plain)), last)
        try:
            return copy(_sound(path, (decoder.decode(*piece).encode() for piece in pieces)))
        except UnicodeDecodeError as error:
            raise TableError(f"{path} is truncated or damaged UTF-16: copy or export it again.") from error
    control = sum(byte < 32 and byte not in b"\t\n\r\f\v" for byte in head)
    if b"\0" in head or control > len(head) // 10:
        raise TableError(f"{path} is a binary file, not a table of text: export it as CSV or Parquet.")
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for chunk in _sound(path, chunks(plain)):
            if not chunk.isascii() or decoder.getstate()[0]:
                decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        if (line := _other_line(plain)) is not None:
            raise TableError(f"{path} is in UTF-8 but for line {line}: save all of it in UTF-8.") from None
        notes.append(f"{path.name} is not in UTF-8: it was read as Latin-1; save it as UTF-8 if letters look wrong.")
        return copy(chunk.decode("latin-1").encode() for chunk in chunks(plain))
    return plain


def _other_line(plain: Path) -> int | None:
    """The first line that is not in UTF-8, if most of the letters beyond ASCII are; then it is no file in Latin-1."""
    fit, odd, first = 0, 0, None
    with open(plain, "rb") as stream:
        marked = stream.read(3) == codecs.BOM_UTF8
        stream.seek(0)
        for number, line in enumerate(stream, 1):
            if not line.isascii():
                rest, letters = _LETTER.subn(b"", line)
                others = len(rest.translate(None, _ASCII))
                fit, odd = fit + letters, odd + others
                first = number if first is None and others else first
    return first if marked or fit > odd else None


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The rows that are not blank, each with the number of the line that it ends in, up to one that cannot be read."""
    csv.field_size_limit(max(_HEADER, csv.field_size_limit()))  # of the whole process: a reader has none of its own
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter)
    with contextlib.suppress(csv.Error):
        yield from ((reader.line_num, tuple(row)) for row in reader if any(map(str.strip, row)))


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
    """A comma where more fields are like 1,5 than like 1.5; 1.234 and 1,234 decide if there are no others."""
    if delimiter == ",":
        return "."
    cells = [cell.strip() for row in sample for cell in row if "," in cell or "." in cell]
    dots = list(filter(is_number, cells))
    commas = [cell for cell in cells if cell.count(",") == 1 and is_number(cell.replace(",", "."))]
    clear = [sum(THOUSANDS.fullmatch(cell) is None for cell in found) for found in (commas, dots)]
    return "," if (clear[0] - clear[1] or len(commas) - len(dots)) > 0 else "."

"""Rows of text from another format, copied to a file that is read as any text file is."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fbeta.tables.delimited import Copy, Delimited
from fbeta.tables.errors import TableError, listed

#: Fields that may be empty for each that is not, beyond the first ones: a table has rows and columns.
EMPTY, FREE = 1000, 1 << 24
_SAMPLE = 10_000


def copied(
    path: Path, names: Sequence[str], rows: Iterable[Sequence[str | None]], copy: Copy, notes: Sequence[str]
) -> Delimited:
    """Copy the rows of a table as CSV; each has at most as many fields as there are names."""
    named = tuple(name.strip() or f"column {i}" for i, name in enumerate(names, 1))
    if twice := [name for name, count in Counter(named).items() if count > 1]:
        raise TableError(f"{path} has several columns of one name ({listed(twice)}): rename them.")
    if len(named) == 1:
        raise TableError(f"{path} has one column only ({listed(named)}): bring features and a target.")
    sample: list[tuple[str, ...]] = []
    count, filled = 0, 0

    def lines() -> Iterator[bytes]:
        nonlocal count, filled
        for row in _padded(rows, len(named)):
            count, filled = count + 1, filled + sum(map(bool, row))
            if count * len(named) > FREE + EMPTY * filled:
                raise TableError(
                    f"{path} has {len(named):,} columns, and nearly all of their fields are empty: export less."
                )
            if len(sample) < _SAMPLE:
                sample.append(row)
            yield _line(row)

    plain = copy(lines())
    if not count:
        raise TableError(f"{path} has a header ({listed(named)}) but no rows: export it again.")
    return Delimited(plain, ",", ".", named, 0, count, tuple(sample), tuple(notes))


def _padded(rows: Iterable[Sequence[str | None]], width: int) -> Iterator[tuple[str, ...]]:
    for row in rows:
        yield (*(text or "" for text in row), *[""] * (width - len(row)))


def _line(row: Sequence[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(row)
    return text.getvalue().encode()

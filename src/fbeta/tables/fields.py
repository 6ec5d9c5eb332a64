"""The fields of every row of a text file, counted before it is read: a reader takes a short row for one with gaps.

One streamed pass over bytes. Of some whole lines only the marks are looked at: delimiters, line ends, quotes, carriage
returns. Quotes open and close in turn (two inside a quoted field close it and open it again), so one that opens must
stand right after a mark, and one that closes right before one. Line ends outside of quotes end the rows.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_PIECE = 1 << 18
_LINE, _RETURN, _QUOTE = b'\n\r"'
Mask = NDArray[np.bool_]
_TRUNCATED = "it ends in the middle of a row, so it is truncated: copy or export it again"


def count_rows(path: Path, delimiter: str, width: int, skip: int) -> int:
    """How many rows of `width` fields stand below `skip` lines; blank lines at the end of the file are none.

    ValueError says in a few words what is wrong with the first row that has other fields.
    """
    end = _end(path, delimiter)
    counter = _Counter(delimiter, width, skip)
    with open(path, "rb") as stream:
        for _ in range(skip):
            stream.readline()
        while (at := stream.tell()) < end:
            piece = (stream.read(_PIECE) + stream.readline())[: end - at]
            whole = piece.endswith(b"\n")
            counter.add(piece if whole else piece + b"\n", whole)
    if counter.open_in:
        raise ValueError(f"line {counter.open_in} opens a quote that does not close")
    return counter.rows


def _end(path: Path, delimiter: str) -> int:
    """Where the last row ends; at most blank lines are behind it."""
    blank = bytes(set(b" \t\r\n\v\f") - set(delimiter.encode()))
    with open(path, "rb") as stream:
        for at in range(path.stat().st_size, 0, -_PIECE):
            stream.seek(start := max(0, at - _PIECE))
            if text := stream.read(at - start).rstrip(blank):
                stream.seek(start + len(text))
                stream.readline()
                return stream.tell()
    return 0


class _Counter:
    """Where the count stands: lines and rows so far, marks in the row that goes on, the line whose quote is open."""

    def __init__(self, delimiter: str, width: int, lines: int) -> None:
        self.delimiter, self.width, self.lines = delimiter, width, lines
        self.rows = self.begun = self.open_in = 0

    def add(self, piece: bytes, whole: bool) -> None:
        """Count the rows of some lines; the last of them is `whole` if it has a line end in the file, too."""
        letters = np.frombuffer(piece, np.uint8)
        marked = (letters == ord(self.delimiter)) | (letters == _LINE)
        others = [letter for letter in (_QUOTE, _RETURN) if letter in piece]
        for letter in others:
            marked |= letters == letter
        marks = np.flatnonzero(marked)
        kinds = letters[marks]
        outer: Any = slice(None)
        if others or self.open_in:
            beside = np.concatenate(([True], marked[:-1]))[marks]  # diff(marks) == 1 takes three times as long
            outer = self._outside(piece, marks, kinds, beside)
        counted = kinds[outer]
        ends = np.flatnonzero(counted == _LINE)
        fields = np.diff(ends, prepend=-1 - self.begun)
        for row in np.flatnonzero(fields != self.width)[:1]:
            cut_off = not whole and row == len(ends) - 1 and fields[row] < self.width
            raise ValueError(_TRUNCATED if cut_off else self._wrong(piece, marks[outer][ends[row]], int(fields[row])))
        self.rows, self.lines = self.rows + len(ends), self.lines + int(np.count_nonzero(kinds == _LINE))
        self.begun += len(counted) - int(fields.sum())

    def _outside(self, piece: bytes, marks: NDArray[np.int64], kinds: NDArray[np.uint8], beside: Mask) -> Mask:
        """Which marks are delimiters and line ends outside of quotes; `beside` are those right after another mark."""
        quote, back = kinds == _QUOTE, kinds == _RETURN
        inside = np.logical_xor.accumulate(quote) ^ bool(self.open_in)
        opens = quote & inside

        def opened(before: int) -> int:
            """The line of the last quote that opens, among so many marks."""
            found = np.flatnonzero(opens[:before])
            return self._line(piece, marks[found[-1]]) if len(found) else self.open_in

        stray = opens & ~beside
        stray[:-1] |= (quote & ~inside)[:-1] & ~beside[1:]
        for place in np.flatnonzero(stray)[:1]:
            raise ValueError(
                f"line {opened(place + 1)} has a quote that does not enclose a whole field: close it where the field "
                "ends, and write two for one inside"
            )
        alone = back & ~inside
        alone[:-1] &= ~(beside[1:] & (kinds[1:] == _LINE))
        for place in np.flatnonzero(alone)[:1]:
            line = self._line(piece, marks[place])
            raise ValueError(f"line {line} has a carriage return inside: end all lines alike")
        self.open_in = opened(len(marks)) if inside[-1] else 0
        outer: Mask = ~(quote | inside | back)
        return outer

    def _wrong(self, piece: bytes, end: int, fields: int) -> str:
        """What to say of a row that ends there."""
        line = self._line(piece, end)
        if fields == 1 and not piece[piece.rfind(b"\n", 0, end) + 1 : end].strip():
            return f"line {line} is blank, and no row: delete it"
        sign = DELIMITERS.get(self.delimiter, repr(self.delimiter))
        remedy = f"quote fields that contain a {sign}" if fields > self.width else f"write a {sign} for each empty one"
        return f"line {line} has {fields} field{'s' * (fields != 1)}, the header has {self.width}: {remedy}"

    def _line(self, piece: bytes, place: int) -> int:
        """The number of the line in which a letter stands."""
        return self.lines + piece.count(b"\n", 0, place) + 1

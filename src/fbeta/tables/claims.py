"""What Parquet and Arrow files say of their own sizes, checked before polars reserves memory for it.

Rust ends the process where memory that is asked for is not there, and one flipped bit may ask for petabytes.
"""

import contextlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

#: Values per byte of a Parquet column, and bytes per packed byte of an Arrow buffer, that are still believed.
PER_BYTE, PACKED = 1 << 20, 1 << 16
#: Bytes that the description of a page has mostly, and at most.
HEADER = 1 << 8, 1 << 20
#: Structures of Parquet's footer lie in each other so deep.
DEEPEST = 20


def checked_parquet(path: Path) -> Path:
    """The path; ValueError where a group of rows, a column or a page says that it holds what it cannot hold."""
    with open(path, "rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        footer = _before_magic(stream, size, b"PAR1")
        try:
            about, _ = _thrift(footer, 0)
            for group in about[4]:
                _need(group[3] >= 0, "a group of rows")
                for column in (chunk[3] for chunk in group[1]):
                    _need(group[3] <= column[5] <= PER_BYTE * column[7] <= PER_BYTE * size, "a column")
                    _check_pages(stream, min(column[9], column.get(11) or column[9]), column[5])
            _need(sum(group[3] for group in about[4]) == about[3], "the file")
        except (IndexError, KeyError, TypeError) as error:
            raise ValueError("its description is damaged") from error
    return path


def _check_pages(stream: IO[bytes], at: int, count: int) -> None:
    """The pages of a column, from its first one on, until there are as many values as it has."""
    while count:
        _need(at >= 4, "a page")
        about, length = _header(stream, at)
        held = (about.get(5) or about.get(8) or about.get(7) or {1: 0})[1]
        _need(min(about[2], about[3], held) >= 0, "a page")
        count -= 0 if 7 in about else held
        _need(count >= 0, "a page")
        at += length + about[3]


def checked_arrow(path: Path) -> Path:
    """The same where a buffer reaches beyond its message, or a message beyond the file, which may be a stream."""
    with open(path, "rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        try:
            for start, body in _batches(stream, size):
                _check_batch(stream, size, start, body)
        except (struct.error, OverflowError, IndexError, RecursionError) as error:
            raise ValueError("a message is damaged") from error
    return path


def _header(stream: IO[bytes], at: int) -> tuple[dict[int, Any], int]:
    for size in HEADER:
        stream.seek(at)
        with contextlib.suppress(IndexError):
            return _thrift(stream.read(size), 0)
    raise ValueError("a page is damaged")


def _check_batch(stream: IO[bytes], size: int, meta: bytes, body: int) -> None:
    message = _Flat.root(meta)
    length = message.number(3, "<q")
    kind, batch = message.number(1, "<B"), message.table(2)
    batch = batch.table(1) if kind == 2 else batch
    _need(0 <= length <= size - body, "a message")
    if kind not in (2, 3):
        return
    places = batch.structs(2, 16)
    at, long = np.frombuffer(places, "<i8").reshape(-1, 2).T
    _need(bool(((at >= 0) & (long >= 0) & (long <= length) & (at <= length - long)).all()), "a buffer")
    if batch.has(3):
        for start, packed in zip(at[long >= 8].tolist(), long[long >= 8].tolist(), strict=True):
            stream.seek(body + start)
            (unpacked,) = struct.unpack("<q", stream.read(8))
            _need(-1 <= unpacked <= PACKED * packed, "a packed buffer")


def _batches(stream: IO[bytes], size: int) -> Iterator[tuple[bytes, int]]:
    """The description of each message, and where its body begins."""
    stream.seek(0)
    if stream.read(6) == b"ARROW1":
        footer = _Flat.root(_before_magic(stream, size, b"ARROW1"))
        for start, long, _ in (one for k in (2, 3) for one in struct.iter_unpack("<qi4xq", footer.structs(k, 24))):
            _need(start >= 0 and 0 < long <= size - start, "a block")
            stream.seek(start)
            data = stream.read(long)
            yield data[8 if data[:4] == b"\xff" * 4 else 4 :], start + long
        return
    start = 0
    while start < size:
        stream.seek(start)
        head = stream.read(8)
        marked = head[:4] == b"\xff" * 4
        (long,) = struct.unpack_from("<i", head, 4 if marked else 0)
        if not long:
            return
        start += 8 if marked else 4
        _need(0 < long <= size - start, "a message")
        stream.seek(start)
        meta = stream.read(long)
        yield meta, start + long
        start += long + _Flat.root(meta).number(3, "<q")


class _Flat:
    """A table of a flatbuffer: fields by their numbers."""

    def __init__(self, data: bytes, at: int) -> None:
        _need(0 <= at < len(data), "a message")
        self.data, self.at = data, at
        self.names = at - struct.unpack_from("<i", data, at)[0]
        _need(0 <= self.names < len(data), "a message")

    @classmethod
    def root(cls, data: bytes) -> "_Flat":
        return cls(data, struct.unpack_from("<I", data)[0])

    def place(self, field: int) -> int:
        """Where a field lies; 0 if it is not there."""
        (size,) = struct.unpack_from("<H", self.data, self.names)
        if 4 + 2 * field >= size:
            return 0
        (offset,) = struct.unpack_from("<H", self.data, self.names + 4 + 2 * field)
        return self.at + offset if offset else 0

    def has(self, field: int) -> bool:
        return bool(self.place(field))

    def number(self, field: int, form: str) -> int:
        place = self.place(field)
        return int(struct.unpack_from(form, self.data, place)[0]) if place else 0

    def table(self, field: int) -> "_Flat":
        place = self.place(field)
        return _Flat(self.data, place + self.number(field, "<I"))

    def structs(self, field: int, size: int) -> bytes:
        """A list of structures, as bytes."""
        if not (place := self.place(field)):
            return b""
        place += self.number(field, "<I")
        (count,) = struct.unpack_from("<I", self.data, place)
        _need(count * size <= len(self.data) - place - 4, "a list")
        return self.data[place + 4 : place + 4 + count * size]


def _before_magic(stream: IO[bytes], size: int, magic: bytes) -> bytes:
    """The last part of a file, before its length and the letters of the format."""
    end = len(magic) + 4
    stream.seek(max(0, size - end))
    tail = stream.read(end)
    long = int.from_bytes(tail[:4], "little")
    _need(tail[4:] == magic and 0 < long <= size - end - len(magic), "the footer")
    stream.seek(size - end - long)
    return stream.read(long)


def _thrift(data: bytes, at: int, deep: int = 0) -> tuple[dict[int, Any], int]:
    """A structure of Thrift's compact protocol: fields by their numbers, and where it ends; texts are left out."""
    found: dict[int, Any] = {}
    name = 0
    _need(deep < DEEPEST, "its description")
    while head := data[at]:
        at, kind = at + 1, head & 15
        if head >> 4:
            name += head >> 4
        else:
            name, at = _zigzag(data, at)
        if kind > 2:  # the kinds 1 and 2 are true and false, without anything behind them
            found[name], at = _value(data, at, kind, deep)
    return found, at + 1


def _value(data: bytes, at: int, kind: int, deep: int) -> tuple[Any, int]:
    if kind in (1, 2, 3):
        return None, at + 1
    if kind in (4, 5, 6):
        return _zigzag(data, at)
    if kind == 7:
        return None, at + 8
    if kind == 8:
        long, at = _varint(data, at)
        return None, at + long
    if kind in (9, 10):
        head, at = data[at], at + 1
        count, inner = head >> 4, head & 15
        if count == 15:
            count, at = _varint(data, at)
        if count > len(data) - at:
            raise IndexError("the list ends later")
        values = []
        for _ in range(count):
            value, at = _value(data, at, inner, deep + 1)
            values.append(value)
        return values, at
    if kind == 12:
        return _thrift(data, at, deep + 1)
    raise ValueError("its description is damaged")


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[at]) > 127:
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        _need(shift < 70, "a number")
    return value | byte << shift, at + 1


def _need(sound: bool, what: str) -> None:
    if not sound:
        raise ValueError(f"{what} says that it is larger than it can be")

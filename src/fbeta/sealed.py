"""Files of named parts in which nothing is executed and no change goes unnoticed.

A sealed file is a zip whose members are stored as they are; its comment is the SHA-256 of all bytes before it.
"""

import hashlib
import io
import json
import math
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

#: No model that this package fits comes near.
LARGEST = 1 << 30
_SEAL = b"sha256:"
_SEALED = len(_SEAL) + 64

#: What reading made-up content can raise.
DAMAGED = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError, RuntimeError, OverflowError, struct.error,
    zipfile.BadZipFile, OSError, MemoryError,
)  # fmt: skip


def seal(members: Mapping[str, bytes]) -> bytes:
    """A zip of members as they stand, with its own checksum at the end."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)  # of 1980: the same members are the same file
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
        archive.comment = _SEAL + b"0" * 64
    body = out.getvalue()[:-_SEALED]
    return body + _SEAL + hashlib.sha256(body).hexdigest().encode()


def unseal(data: bytes) -> dict[str, bytes]:
    """The members of a sealed file; ValueError says in a few words what is wrong with it."""
    if not data:
        raise ValueError("is empty")
    if not data.startswith(b"PK\x03\x04"):
        raise ValueError("is no file that fbeta wrote")
    if data[-_SEALED:-64] != _SEAL:
        raise ValueError("is truncated")
    if hashlib.sha256(data[:-_SEALED]).hexdigest().encode() != data[-64:]:
        raise ValueError("is damaged (its checksum does not match)")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
                raise ValueError("its members are compressed")
            # Two headers a member, as `seal` writes them, and the end: nothing lies before, between or over them.
            held = sum(76 + 2 * len(info.filename.encode()) + info.file_size for info in infos)
            if held + 22 + _SEALED != len(data):
                raise ValueError("there is more or less in it than its members")
            found = {info.filename: archive.read(info) for info in infos}
        if len(found) < len(infos):
            raise ValueError("it has two members of one name")
    except DAMAGED as error:
        raise ValueError(f"is damaged ({in_short(error)})") from error
    return found


def read_json(text: bytes) -> dict[str, Any]:
    """An object of JSON without NaN and infinity, names given twice, and halves of characters; ValueError otherwise.

    RecursionError is what very deep lists are.
    """
    found = json.loads(text.decode(), parse_constant=_number, parse_float=_number, object_pairs_hook=_object)
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    if b"\\u" in text:  # the only way to half a character
        json.dumps(found, ensure_ascii=False).encode()
    return found


def in_short(error: BaseException) -> str:
    """The first line of what an error says."""
    said = str(error).splitlines() or [type(error).__name__]
    return (f"no {said[0]}" if isinstance(error, KeyError) else said[0]).rstrip(".")[:160]


def _number(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError(f"{text:.40} is no finite number")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found

"""The error of a table that cannot be used, and how its sentences list names."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from fbeta.spelling import did_you_mean

#: More names than this are not listed in a sentence.
LISTED = 5
#: A sentence of more letters loses its middle.
LONGEST = 1000


class TableError(ValueError):
    """A table that cannot be used as it is; the message says why, and what to do.

    >>> len(str(TableError("x" * 10**6)))
    1001
    """

    def __init__(self, sentence: str) -> None:
        half = LONGEST // 2  # a field of the table may be of any length
        super().__init__(sentence if len(sentence) <= LONGEST else f"{sentence[:half]}…{sentence[-half:]}")


def absent(path: Path) -> str:
    """Say that there is no such file, and which one beside it may be meant."""
    if path.is_symlink():
        return f"{path} is a link that leads to no file: check its name."
    beside: list[str] = []
    with contextlib.suppress(OSError):
        beside = os.listdir(path.parent)
    return f"there is no file {path}: check its name.{did_you_mean(path.name, beside)}"


def listed(names: Iterable[str]) -> str:
    """Names for a sentence, the first few of them."""
    names = [name if len(name) <= 40 else f"{name[:39]}…" for name in names]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(repr, names[:LISTED])) + more

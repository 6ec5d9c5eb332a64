"""The error of a table that cannot be used, and how its sentences list names."""

from __future__ import annotations

from collections.abc import Iterable

#: More names than this are not listed in a sentence.
LISTED = 5


class TableError(ValueError):
    """A table that cannot be used as it is; the message says why, and what to do."""


def listed(names: Iterable[str]) -> str:
    """Names for a sentence, the first few of them.

    >>> listed(["a", "b"]), listed("abcdefg")
    ("'a', 'b'", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    names = [name if len(name) <= 40 else f"{name[:39]}…" for name in names]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(repr, names[:LISTED])) + more

"""The terminal's face of `fbeta data`: a table, and a line that shows how far a download is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import IO, Any


def table(facts: Iterable[dict[str, Any]]) -> str:
    """The facts of data sets as a table.

    >>> from fbeta.data import get
    >>> print(table([get("digits").facts() | {"bytes": 57_523, "here": True}]))
    name    train  test  shape  classes  MB   from          here
    digits  1,438  359   8x8x1  10       0.1  scikit-learn  yes
    """
    rows = [("name", "train", "test", "shape", "classes", "MB", "from", "here")]
    for f in facts:
        shape, classes = "x".join(map(str, f["shape"])), str(len(f["classes"]))
        shape += {"table": " columns", "tables": " tables"}.get(f["kind"], "")
        megabytes, here = f"{f['bytes'] / 1e6:.1f}", "yes" if f["here"] else "no"
        counts = (f"{f[part]:,}" if f[part] else "–" for part in ("train", "test"))
        rows.append((f["name"], *counts, shape, classes, megabytes, ", ".join(f["sources"]), here))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


class Meter:
    """Shows progress for the time of a `with`: one line that changes in a terminal, a line a step in a log."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self.stream = stream or sys.stderr
        self.shown = ""
        self.next = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Take a step of a download: what it is, the bytes that are here and those there are (0: unknown)."""
        if not done:
            self._close()
            print(what, file=self.stream)
        elif self.stream.isatty() and (time.monotonic() >= self.next or done == total):
            share = f" {done / total:4.0%} of {total / 1e6:.1f} MB" if total else f" {done / 1e6:.1f} MB"
            line = what + share
            print("\r" + line.ljust(len(self.shown)), end="", file=self.stream, flush=True)
            self.shown, self.next = line, time.monotonic() + 0.1

    def _close(self) -> None:
        if self.shown:
            print(file=self.stream)
            self.shown = ""

    def __enter__(self) -> Meter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._close()

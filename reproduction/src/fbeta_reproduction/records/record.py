"""The file of one run: a line of JSON about it, the names of the columns, and a line of numbers per epoch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Record:
    """One run: what it is, and its columns with a number per epoch.

    Shape: every column ``(epochs,)``, in double precision; the first is the epoch, 1, 2, …

    >>> Record({"run": {"loss": "bce"}}, {"epoch": np.array([1.0, 2.0]), "loss": np.array([0.7, 0.4])}).epochs
    2
    """

    header: dict[str, Any]
    columns: dict[str, NDArray[np.float64]]

    @property
    def epochs(self) -> int:
        """The number of complete rows."""
        return len(self.columns["epoch"])


def read(path: Path | str) -> Record:
    r"""Read a run's file without a last line that was cut off while it was written; damage elsewhere is an error.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "bce-r0.csv")
    >>> _ = path.write_text('# {"run": {"loss": "bce"}}\nepoch,loss\n1,0.7\n2,0.4\n3,0.')
    >>> record = read(path)
    >>> record.epochs, record.columns["loss"].tolist()
    (2, [0.7, 0.4])
    """
    return parse(Path(path).read_bytes(), path)


def ids(folder: Path | str) -> list[str]:
    """The runs that have a file in a folder, in alphabetical order.

    >>> ids("a folder that is not there")
    []
    """
    found = []
    for here, below, files in os.walk(folder):
        # Hidden folders, above all the claims, change while others train.
        below[:] = [name for name in below if not name.startswith(".")]
        names = (Path(here, name) for name in files if name.endswith(".csv") and not name.startswith("."))
        found += [path.relative_to(folder).as_posix().removesuffix(".csv") for path in names]
    return sorted(found)


def records(folder: Path | str) -> Iterator[tuple[str, Record]]:
    """All runs of a folder by name.

    >>> list(records("a folder that is not there"))
    []
    """
    for id in ids(folder):
        yield id, read(Path(folder, f"{id}.csv"))


def parse(data: bytes, path: Path | str) -> Record:
    r"""Read the bytes of a file; `path` is for the errors.

    >>> parse(b'# {}\nepoch,loss\n1,inf\n', "bce-r0.csv").columns["loss"]
    array([inf])
    """
    first, _, rest = data.partition(b"\n")
    second, _, body = rest.partition(b"\n")
    if data.count(b"\n") < 2:
        raise _damaged(path, "its two header lines are not complete")
    try:
        header = json.loads(first.removeprefix(b"# ")) if first.startswith(b"# ") else None
        names = second.decode().rstrip("\r").split(",")  # \r: a checkout on Windows
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise _damaged(path, "its first line is not '# ' and a JSON object")
    if names[0] != "epoch" or len(set(names)) < len(names) or not all(names):
        raise _damaged(path, f"its second line names the columns {', '.join(names)!r}, not epoch and others")
    # What follows the last newline is a line that a kill cut off.
    rows = []
    for epoch, line in enumerate(body.decode(errors="replace").split("\n")[:-1], start=1):
        row = numbers(line, epoch, len(names))
        if row is None:
            raise _damaged(path, f"line {epoch + 2} is not epoch {epoch} with {len(names)} numbers")
        rows.append(row)
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    return Record(header, {name: table[:, i].copy() for i, name in enumerate(names)})


def _damaged(path: Path | str, why: str) -> ValueError:
    return ValueError(f"{path} is damaged: {why}; delete it, or restore it from a copy, and run again.")


def numbers(row: str, epoch: int, columns: int) -> list[float] | None:
    """Read one line, or None where it is not that epoch's with so many numbers.

    >>> numbers("1,0.7,nan", epoch=1, columns=3), numbers("1,0.7", epoch=2, columns=2)
    ([1.0, 0.7, nan], None)
    """
    cells = row.split(",")
    try:
        return [float(x) for x in cells] if cells[0] == str(epoch) and len(cells) == columns else None
    except ValueError:
        return None

"""Outputs that a user names: a look beforehand whether they can be written, and errors that say which it was."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from errno import EIO
from pathlib import Path

from fbeta.writing import WriteError


class OutputError(ValueError):
    """An output that cannot be written; the message says why."""


def check_output(path: Path | str, *read: Path | str | None) -> Path:
    """Refuse, before an hour of work, an output that cannot be written or is one of the files to `read`.

    >>> check_output("no/such/folder/model.fbeta")
    Traceback (most recent call last):
    fbeta.artifact.outputs.OutputError: cannot write no/such/folder/model.fbeta: there is no folder no/such/folder.
    """
    path = Path(path).expanduser()
    folder = path.parent
    why = ""
    try:
        if path.is_dir():
            why = "it is a folder, so give a file in it"
        elif path.exists() and not path.is_file():
            why = "it is no plain file"
        elif not folder.is_dir():
            why = f"there is no folder {folder}"
        elif not os.access(folder, os.W_OK | os.X_OK):
            why = f"the folder {folder} is read-only"
        elif path.exists() and not os.access(path, os.W_OK):
            why = "it is read-only"
        elif any(_same(path, Path(other).expanduser()) for other in read if other is not None):
            why = "it is read as well, and would be lost: give another name"
    except OSError as error:
        why = str(error.strerror)
    if why:
        raise OutputError(f"cannot write {path}: {why}.")
    return path


def _same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


@contextlib.contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Errors of writing, which do not say where, get the name of the output."""
    try:
        yield
    except BrokenPipeError:
        raise  # no fault of the output: whoever reads it has enough
    except OSError as error:
        raise WriteError(
            error.errno or EIO, error.strerror or str(error), str(path)
        ) from error  # polars has no number

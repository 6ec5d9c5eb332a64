"""Files that are there whole or not at all, and a look beforehand whether they can be written."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path


class OutputError(ValueError):
    """An output that cannot be written; the message says why."""


def check_output(path: Path | str) -> Path:
    """Refuse, before an hour of work, an output that cannot be written; nothing is written yet.

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
    except OSError as error:
        why = str(error.strerror)
    if why:
        raise OutputError(f"cannot write {path}: {why}.")
    return path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A hidden file beside `path` for the time of a `with`; only if all went well it takes the name.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "out.csv") as part:
    ...     _ = part.write_text("a\\n")
    >>> [file.name for file in folder.iterdir()]
    ['out.csv']
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Errors of writing, which do not say where, get the name of the output."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # polars'
            raise OutputError(f"cannot write {path}: {error}.") from error
        error.filename = str(path)
        raise


def is_device(path: Path) -> bool:
    """Whether a path is a device or a pipe, which is written into and never replaced.

    >>> is_device(Path("/dev/null"))
    True
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)

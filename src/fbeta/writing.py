"""Files that are there whole or not at all: whatever happens while one is written, its name holds the old content."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path


class WriteError(OSError):
    """A file that cannot be written, by the name that its user knows."""


class OutputError(ValueError):
    """An output that cannot be written, found out before any work; the message says why."""


def check_output(path: Path | str, *read: Path | str | None) -> Path:
    """Refuse, before an hour of work, an output that cannot be written or is one of the files to `read`.

    >>> check_output("no/such/folder/model.fbeta")
    Traceback (most recent call last):
    fbeta.writing.OutputError: cannot write no/such/folder/model.fbeta: there is no folder no/such/folder.
    """
    path = Path(path).expanduser()
    folder, others = path.parent, [Path(other).expanduser() for other in read if other is not None]
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
        elif path.exists() and any(other.exists() and path.samefile(other) for other in others):
            why = "it is read as well, and would be lost: give another name"
    except OSError as error:
        why = str(error.strerror)
    if why:
        raise OutputError(f"cannot write {path}: {why}.")
    return path


@contextlib.contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Give errors of writing, which do not say where, the name of the output for the time of a `with`."""
    try:
        yield
    except (BrokenPipeError, WriteError):
        raise  # a broken pipe is no fault of the output: whoever reads it has enough
    except OSError as error:
        raise _named(error, path) from error


def _named(error: OSError, path: Path | str) -> WriteError:
    return WriteError(error.errno or errno.EIO, error.strerror or str(error), str(path))  # polars gives no number


def settle(part: Path, path: Path) -> None:
    """Give a finished file its name, once its content is on the disk; both must lie on the same one."""
    with part.open("r+b") as file:
        os.fsync(file.fileno())
    os.replace(part, path)


def is_device(path: Path) -> bool:
    """Whether a path is a device or a pipe, which is written into and never replaced."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A hidden file beside `path` for the time of a `with`, named so if all went well; a device is given as it is."""
    if is_device(path):
        yield path
        return
    real = path.resolve()  # a link stays one
    part = real.parent / f".{real.name}.{secrets.token_hex(4)}"  # with_name would stumble over "/"
    try:
        yield part
        settle(part, real)
    except OSError as error:
        if isinstance(error, WriteError) or error.filename not in (None, str(part), str(real)):
            raise  # something else went wrong in the meantime
        raise _named(error, path) from error  # nobody knows the part's name
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, data: bytes) -> None:
    """Write a file, and the folders it lies in where they are missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_bytes(data)

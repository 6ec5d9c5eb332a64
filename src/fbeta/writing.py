"""Files that are there whole or not at all: whatever happens while one is written, its name holds the old content."""

import contextlib
import errno
import io
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

_OPEN_FILES = Path("/proc/self/fd")


class WriteError(OSError):
    """A file that cannot be written, by the name that its user knows."""


class OutputError(ValueError):
    """An output that cannot be written, found out before any work; the message says why."""


def check_output(path: Path | str, *others: Path | str | None) -> Path:
    """Refuse, before an hour of work, an output that cannot be written or is one of the `others`: inputs, outputs.

    >>> check_output("no/such/folder/model.fbeta")
    Traceback (most recent call last):
    fbeta.writing.OutputError: cannot write no/such/folder/model.fbeta: there is no folder no/such/folder.
    """
    path = Path(path).expanduser()
    if is_device(path):
        return path
    real, why = Path(os.path.realpath(path)), ""
    folder = real.parent if os.path.islink(path) else path.parent
    try:
        if real.is_dir():
            why = "it is a folder, so give a file in it"
        elif real.is_symlink():
            why = "its links lead in a circle"
        elif real.exists() and not real.is_file():
            why = "it is no plain file"
        elif not folder.is_dir():
            why = f"there is no folder {folder}"
        elif not os.access(folder, os.W_OK | os.X_OK):
            why = f"the folder {folder} is read-only"
        elif real.exists() and not os.access(real, os.W_OK):
            why = "it is read-only"
        elif any(_same(real, other) for other in others if other is not None):
            why = "it is given for something else as well, which would be lost: give another name"
    except OSError as error:
        why = str(error.strerror)
    if why:
        raise OutputError(f"cannot write {path}: {why}.")
    return path


def check_outputs(outputs: Iterable[Path | None], *others: Path | str | None) -> None:
    """Refuse outputs as `check_output` does, and two of them that are one file."""
    given = [path for path in outputs if path is not None]
    for i, path in enumerate(given):
        check_output(path, *others, *given[:i])


def is_stdout(path: Path | str) -> bool:
    """Whether the standard output goes into this very file; `-` is the one that the standard input comes from."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # not there, no file at all, closed
        there = os.fstat(sys.stdout.fileno())
        return stat.S_ISREG(there.st_mode) and os.path.samestat(there, _status(path))
    return False


def _same(real: Path, other: Path | str) -> bool:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if os.path.samestat(real.stat(), _status(other)):
            return True
    return str(other) != "-" and real == Path(os.path.realpath(os.path.expanduser(other)))


def _status(path: Path | str) -> os.stat_result:
    return os.fstat(sys.stdin.fileno()) if str(path) == "-" else os.stat(os.path.expanduser(path))


@contextlib.contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Give errors of writing, which do not say where, the name of the output for the time of a `with`."""
    try:
        yield
    except (BrokenPipeError, WriteError):
        raise  # a broken pipe is no fault of the output: its reader has closed it
    except OSError as error:
        # polars gives no number
        raise WriteError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error


def is_device(path: Path) -> bool:
    """Whether a path is a device or a pipe, which is written into and never replaced."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


@contextlib.contextmanager
def nameless(folder: Path) -> Iterator[Path]:
    """A path to a file that has no name, for the time of a `with`: nothing is left of it, however the process ends.

    Where the system has no such files, as on some network drives, it is a hidden one in the folder.
    """
    try:
        held = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
    except (AttributeError, OSError):  # whatever else is wrong with the folder, a file with a name finds, too
        hidden = _hidden(folder)
        try:
            yield hidden
        finally:
            hidden.unlink(missing_ok=True)
        return
    try:
        yield _OPEN_FILES / str(held)
    finally:
        os.close(held)


def settle(part: Path, path: Path) -> None:
    """Give a finished file its name, once its content is on the disk; both must lie on the same one.

    It has the mode and, if that can be, the owner of a file that has the name before.
    """
    with part.open("r+b") as file:
        os.fsync(file.fileno())
    with contextlib.suppress(FileNotFoundError):
        before = path.stat()
        with contextlib.suppress(OSError, AttributeError):  # no right to, or no owners at all
            os.chown(part, before.st_uid, before.st_gid)
        part.chmod(stat.S_IMODE(before.st_mode))
    if part.parent != _OPEN_FILES:
        os.replace(part, path)
        return
    hidden = _hidden(path.parent)  # a link takes the place of nothing
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.link(part, hidden.name, dst_dir_fd=folder)  # without a folder's number it would link to the link
        os.replace(hidden, path)
    finally:
        os.close(folder)
        hidden.unlink(missing_ok=True)


def _hidden(folder: Path) -> Path:
    return folder / f".fbeta-{secrets.token_hex(8)}"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write for the time of a `with`, which is named `path` if all went well; a device is given as it is."""
    real = Path(os.path.realpath(path))  # a link stays one
    with contextlib.nullcontext(path) if is_device(path) else nameless(real.parent) as part:
        try:
            yield part
        except OSError as error:
            if error.filename not in (None, str(part)):
                raise  # something else went wrong in the meantime
            with naming(path):  # users do not know the part's name
                raise
        if part != path:
            with naming(path):
                settle(part, real)


def write(path: Path, data: bytes) -> None:
    """Write a file, and the folders it lies in where they are missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_bytes(data)


@contextlib.contextmanager
def buffered(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    """A stream for the time of a `with`, with a buffer: without one (`python -u`) a write may take a part only."""
    if isinstance(stream, io.RawIOBase):
        with open(stream.fileno(), "wb", closefd=False) as whole:
            yield whole
    else:
        yield stream
        stream.flush()

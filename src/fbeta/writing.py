"""Files that are there whole or not at all: whatever happens while one is written, its name holds the old content."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path


class WriteError(OSError):
    """A file that cannot be written, by the name that its user knows.

    >>> raise WriteError(28, "No space left on device", "out.csv")
    Traceback (most recent call last):
    fbeta.writing.WriteError: [Errno 28] No space left on device: 'out.csv'
    """


def settle(part: Path, path: Path) -> None:
    r"""Give a finished file its name, once its content is on the disk; both must lie on the same one.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "part").write_bytes(b"new\n")
    >>> settle(folder / "part", folder / "file")
    >>> (folder / "file").read_bytes(), (folder / "part").exists()
    (b'new\n', False)
    """
    with part.open("r+b") as file:
        os.fsync(file.fileno())
    os.replace(part, path)


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


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    r"""A hidden file beside `path` for the time of a `with`; only if all went well it takes the name.

    A device or a pipe is given as it is: it is written into, never replaced.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "out.csv") as part:
    ...     _ = part.write_text("a\n")
    >>> [file.name for file in folder.iterdir()]
    ['out.csv']
    """
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
        raise WriteError(
            error.errno or errno.EIO, error.strerror or str(error), str(path)
        ) from error  # nobody knows the part's name
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, data: bytes) -> None:
    r"""Write a file, and the folders it lies in where they are missing.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "new", "file")
    >>> write(path, b"text\n")
    >>> path.read_bytes()
    b'text\n'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_bytes(data)

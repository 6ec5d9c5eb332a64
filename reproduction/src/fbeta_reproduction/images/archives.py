"""Reading archives of others safely: nothing is unpacked to a path that they name."""

import gzip
import tarfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

from fbeta.datasets.archives import pieces
from fbeta.datasets.download import DataError


def gunzip(file: Path | IO[bytes], name: str) -> Iterator[bytes]:
    """The decompressed content of a gzip file, piece by piece."""
    with gzip.open(file) as stream:
        yield from pieces(stream, name)


def members(archive: Path, names: Collection[str]) -> Iterator[tuple[str, IO[bytes]]]:
    """The regular files of a tar archive with these names, in the archive's order; read each before the next."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                stream = tar.extractfile(member) if member.isfile() and member.name in names else None
                if stream is not None:
                    yield member.name, stream
    except (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError) as error:
        raise DataError(f"{archive.name} is damaged: {error}") from error

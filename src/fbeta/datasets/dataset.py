"""One data set: its facts, its files with their checksums, and the ways to fetch and to load them."""

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from fbeta.datasets.download import DataError, DownloadProgress, download, need_pooch

Content = TypeVar("Content", covariant=True)

#: Seconds after which what a killed fetch left behind is removed by the next one.
STALE = 86_400.0


def root() -> Path:
    """The folder of all data sets: `FBETA_DATA`, or a folder in the user's cache.

    >>> from unittest.mock import patch
    >>> with patch.dict("os.environ", FBETA_DATA="/data"):
    ...     root().as_posix()
    '/data'
    """
    if chosen := os.environ.get("FBETA_DATA"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fbeta"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "fbeta" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fbeta"


@dataclass(frozen=True)
class File:
    """Size and SHA-256 of a file as it lies in the folder, decompressed."""

    size: int
    sha256: str

    def fault(self, path: Path) -> str:
        """What is wrong with the file at `path`; empty if nothing is."""
        if not path.is_file():
            return "is missing"
        if (size := path.stat().st_size) != self.size:
            return f"has {size} bytes, not {self.size}"
        with open(path, "rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        return "" if sha256 == self.sha256 else f"has SHA-256 {sha256[:12]}…, not {self.sha256[:12]}…"


@dataclass(frozen=True)
class Job:
    """What a source works with: the folder, the files that are missing in it, and a callback for progress."""

    folder: Path
    wanted: Mapping[str, File]
    tell: DownloadProgress

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write a file, and give it its name once its checksum is right; DataError if it is not."""
        file = self.wanted[name]

        def write(url: str, part: str, store: object) -> None:
            os.unlink(part)  # pooch makes it for its owner alone, a file of ours is for whom the folder is
            with open(part, "wb") as out:
                for chunk in chunks:
                    if out.tell() + len(chunk) > file.size:  # a small archive may unpack to a full disk
                        raise DataError(f"{name} has the wrong content: more than its {file.size} bytes")
                    out.write(chunk)

        try:
            need_pooch().Pooch(self.folder, "", {name: file.sha256}).fetch(name, downloader=write)
        except ValueError as error:  # pooch found another checksum
            raise DataError(f"{name} has the wrong content: its SHA-256 is not {file.sha256[:12]}…") from error

    @contextlib.contextmanager
    def download(self, url: str) -> Iterator[Path]:
        """Download a file for the time of a `with`; it may not be larger than all wanted files, unpacked."""
        limit = sum(file.size for file in self.wanted.values())
        limit += limit // 100 + (1 << 16)  # what cannot be compressed grows a little
        with self.scratch() as folder:
            yield download(url, folder, self.tell, limit)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for the time of a `with`, on the disk of the data."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            yield Path(name)


#: Puts the files that a job wants, or raises DataError with a reason.
Source = Callable[[Job], None]


@dataclass(frozen=True, kw_only=True)
class Dataset(Generic[Content]):
    """A data set of files in `root()/name`, or in `root()/home` where it shares them with others.

    `kind` is images, table or tables; `shape` is that of an image, the number of columns, the number of tables. A
    table comes without a split: all of its rows are in `train`. `read` makes of `path()` what `load` returns, a
    `Content`. The `sources` are tried in order, each for the files that are still missing or damaged; `offline` says
    what helps if none is within reach. Several processes may fetch at once: each works in files of its own, and a
    file gets its name when it is whole and verified.
    """

    name: str
    about: str
    shape: tuple[int, ...]
    classes: tuple[str, ...]
    read: Callable[..., Content]
    kind: str = "images"
    train: int = 0
    test: int = 0
    files: Mapping[str, File] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    offline: str = ""
    home: str = ""

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in self.files.values())

    @property
    def folder(self) -> Path:
        """Where the files belong."""
        return root() / (self.home or self.name)

    def here(self) -> bool:
        """Whether it is on this machine, judged without reading its files."""
        try:
            return all((self.folder / name).stat().st_size == file.size for name, file in self.files.items())
        except OSError:
            return False

    def path(self) -> Path:
        """Its folder or file, with the content verified; DataError says how to fetch it."""
        command = f"run `fbeta data fetch {self.name}`"
        if not any((self.folder / name).exists() for name in self.files):
            raise DataError(f"{self.name} is not in {self.folder}: {command}.")
        with self._trying(f"read {self.name}", f"fix that, or {command}"):
            for name, file in self.files.items():
                if fault := file.fault(self.folder / name):
                    raise DataError(f"{self.folder / name} {fault}: {command} to replace it.")
        return self.folder

    def fetch(self, source: str = "auto", progress: DownloadProgress | None = None) -> Path:
        """Download what is missing or damaged, and return its folder or file."""
        if source not in ("auto", *self.sources):
            raise ValueError(f"{self.name} has no source {source!r}. Choices: {', '.join(('auto', *self.sources))}.")
        with self._trying(f"keep {self.name} in {self.folder}", "fix that, or set FBETA_DATA to another folder"):
            if wanted := self._wanted():
                need_pooch()  # without it every source would fail
                self.folder.mkdir(parents=True, exist_ok=True)
                _sweep(self.folder)
                tell = progress or (lambda what, done, total: None)
                self._fetch(wanted, tuple(self.sources) if source == "auto" else (source,), tell)
        return self.folder

    def load(self, **options: Any) -> Content:
        """Read it; a table takes `duplicates`, as `fbeta.data.load_table` does."""
        place = self.path()
        with self._trying(f"read {self.name}", "fix that and try again"):
            return self.read(place, **options)

    def facts(self) -> dict[str, Any]:
        """A line of `fbeta data list`, as plain data."""
        return {
            **{fact: getattr(self, fact) for fact in ("name", "about", "kind", "train", "test")},
            "shape": list(self.shape),
            "classes": list(self.classes),
            "bytes": self.size,
            "sources": list(self.sources),
            "here": self.here(),
        }

    @contextlib.contextmanager
    def _trying(self, what: str, remedy: str) -> Iterator[None]:
        """Say what an error of the system is, and about which file."""
        try:
            yield
        except OSError as error:
            reason = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
            raise DataError(f"cannot {what} ({reason}): {remedy}.") from error

    def _wanted(self) -> dict[str, File]:
        return {name: file for name, file in self.files.items() if file.fault(self.folder / name)}

    def _fetch(self, wanted: dict[str, File], sources: tuple[str, ...], tell: DownloadProgress) -> None:
        reasons = []
        for source in sources:
            why = "not all files were in it"
            try:
                self.sources[source](Job(self.folder, wanted, tell))
            except DataError as error:
                why = str(error).rstrip(".")
            if not (wanted := self._wanted()):
                return
            reasons.append(f"from {source} ({why})")
        raise DataError(f"cannot fetch {self.name} {', nor '.join(reasons)}: {self.offline}.")


def _sweep(folder: Path) -> None:
    """Remove what a killed fetch left behind, as tempfile names it; a fetch that is at work is not so old."""
    for path in folder.glob("tmp????????"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

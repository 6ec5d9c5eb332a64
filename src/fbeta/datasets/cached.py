"""Data sets that are fetched into a folder: what lies there is verified, whichever source it came from."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fbeta.datasets.dataset import DataError, Dataset, Kind, Progress
from fbeta.datasets.download import download
from fbeta.writing import replacing, settle

try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows: two fetches at once then only waste work)
    fcntl = None  # type: ignore[assignment]

_STAMP = ".verified.json"
_SCRATCH = ".tmp-"


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


@dataclass(frozen=True)
class Job:
    """What a source works with: the files that are wanted, where to put them, whom to tell."""

    folder: Path
    wanted: Mapping[str, File]
    tell: Progress
    done: set[str] = field(default_factory=set)

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Store a file whose content is right, as a whole; refuse any other before it has its name."""
        file, total, digest = self.wanted[name], 0, hashlib.sha256()
        with self.scratch() as folder:
            with open(folder / name, "wb") as out:
                for chunk in chunks:
                    total += len(chunk)
                    if total > file.size:  # before the disk is full of what a small archive unpacks to
                        raise DataError(f"{name} has the wrong content: more than its {file.size} bytes")
                    digest.update(chunk)
                    out.write(chunk)
            if (total, digest.hexdigest()) != (file.size, file.sha256):
                raise DataError(
                    f"{name} has the wrong content: it {_differs(total, digest.hexdigest(), file)}"
                )
            settle(folder / name, self.folder / name)
        self.done.add(name)

    @contextlib.contextmanager
    def download(self, url: str) -> Iterator[Path]:
        """Download into a file for the time of a `with`; only an interrupted one stays, to be resumed."""
        part = self.folder / f"{_part(url)}.part"
        download(url, part, self.tell)
        try:
            yield part
        except OSError:  # a full disk, say; like an interrupt it leaves a good download
            raise
        except Exception:
            _remove(part)
            raise
        _remove(part)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for the time of a `with`, on the disk of the data."""
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=self.folder) as name:
            yield Path(name)


#: Puts the files that a job wants, or raises DataError with a reason.
Source = Callable[[Job], None]


@dataclass(frozen=True, kw_only=True)
class Cached(Dataset[Kind]):
    """A data set of files in `root()/name`, or in `root()/home` where it shares them with others.

    Its sources are tried in order; `offline` says what else helps.
    """

    files: Mapping[str, File]
    sources: Mapping[str, Source]
    read: Callable[[Path], Kind]
    offline: str
    home: str = ""

    @property
    def origins(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(self.sources)

    @property
    def size(self) -> int:  # noqa: D102
        return sum(file.size for file in self.files.values())

    @property
    def folder(self) -> Path:
        """Where the files belong."""
        return root() / (self.home or self.name)

    def here(self) -> bool:  # noqa: D102
        return all(_size(self.folder / name) == file.size for name, file in self.files.items())

    def path(self) -> Path:  # noqa: D102
        command = f"run `fbeta data fetch {self.name}`"
        if not any((self.folder / name).exists() for name in self.files):
            raise DataError(f"{self.name} is not in {self.folder}: {command}.")
        stamp = self._stamp()
        try:
            seen = {name: self._verified(name, stamp) for name in self.files}
        except OSError as error:
            raise DataError(f"cannot read {self.name} ({_words(error)}): mend that, or {command}.") from error
        for name, sha256 in seen.items():
            if sha256 != (file := self.files[name]).sha256:
                fault = "is missing" if sha256 is None else _differs(_size(self.folder / name), sha256, file)
                raise DataError(f"{self.folder / name} {fault}: {command} to replace it.")
        self._write_stamp(stamp)
        return self.folder

    def load(self) -> Kind:  # noqa: D102
        return self.read(self.path())

    def fetch(self, source: str = "auto", progress: Progress | None = None) -> Path:  # noqa: D102
        self.check_source(source)
        tell = progress or _silent
        try:
            if self._wanted():
                self.folder.mkdir(parents=True, exist_ok=True)
                with _locked(self.folder, tell):
                    self._fetch(self.origins if source == "auto" else (source,), tell)
            self._write_stamp({})
        except OSError as error:
            raise DataError(
                f"cannot keep {self.name} in {self.folder} ({_words(error)}): mend that, or set FBETA_DATA to "
                "another folder."
            ) from error
        return self.folder

    def _wanted(self) -> dict[str, File]:
        """Files to fetch. All are read here: a fetch must also heal what a stamp of size and time cannot see."""
        return {name: file for name, file in self.files.items() if self._verified(name, {}) != file.sha256}

    def _fetch(self, sources: tuple[str, ...], tell: Progress) -> None:
        wanted, reasons = self._wanted(), []  # again: another process may have fetched them meanwhile
        for source in sources:
            if not wanted:
                break
            job = Job(self.folder, wanted, tell)
            try:
                self.sources[source](job)
                reason = "not all files were in it"
            except DataError as error:
                reason = str(error)
            reasons.append(f"from {source} ({reason})")
            wanted = {name: file for name, file in wanted.items() if name not in job.done}
        if wanted:
            raise DataError(f"cannot fetch {self.name} {', nor '.join(reasons)}: {self.offline}.")
        for part in (*self.folder.glob("*.part"), *self.folder.glob("*.tag")):
            part.unlink()  # begun in vain: another source was faster

    def _verified(self, name: str, stamp: Mapping[str, object]) -> str | None:
        """SHA-256 of a file, by the stamp where size and time are those that were verified, or None."""
        path, file = self.folder / name, self.files[name]
        if _size(path) is None:
            return None
        if stamp.get(name) == _mark(path, file):
            return file.sha256
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _stamp(self) -> Mapping[str, object]:
        try:
            stamp = json.loads((self.folder / _STAMP).read_text())
        except (OSError, ValueError):
            return {}
        return stamp if isinstance(stamp, dict) else {}

    def _write_stamp(self, old: Mapping[str, object]) -> None:
        new = {name: _mark(self.folder / name, file) for name, file in self.files.items()}
        if new == old:
            return
        # A folder that one may only read is verified each time.
        with contextlib.suppress(OSError), replacing(self.folder / _STAMP) as part:
            part.write_text(json.dumps(new))


def _mark(path: Path, file: File) -> list[object]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, file.sha256]


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def _words(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


def _differs(size: int | None, sha256: str, file: File) -> str:
    if size != file.size:
        return f"has {size} bytes, not {file.size}"
    return f"has SHA-256 {sha256[:12]}…, not {file.sha256[:12]}…"


def _part(url: str) -> str:
    """A name that is one URL's alone, so that no download goes on with the bytes of another."""
    return f"{url.rpartition('/')[2]}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"


def _remove(part: Path) -> None:
    part.unlink(missing_ok=True)
    part.with_suffix(".tag").unlink(missing_ok=True)


def _silent(what: str, done: int, total: int) -> None:
    pass


@contextlib.contextmanager
def _locked(folder: Path, tell: Progress) -> Iterator[None]:
    """One fetch at a time in a folder; the next one waits, and then finds the files there."""
    if fcntl is None:  # pragma: no cover
        yield
        return
    with open(folder / ".lock", "wb") as lock:
        with contextlib.suppress(OSError):  # some network file systems have no locks
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                tell("waiting for another fetch", 0, 0)
                fcntl.flock(lock, fcntl.LOCK_EX)
            _sweep(folder)
        yield


def _sweep(folder: Path) -> None:
    """Remove what a killed fetch left behind. Downloads stay: they are resumed."""
    for path in (*folder.glob(f"{_SCRATCH}*"), *folder.glob(f".{_STAMP}.*")):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)

"""Who trains which run: claims that processes and machines share through a folder, without locks.

A claim is a directory with one empty file, whose name says who and since when, and whose time is the last
heartbeat. Every step is one rename that names the owner it expects to find, so that of several processes exactly
one succeeds, and a kill at any moment leaves a claim that is either whole or not there.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType


@dataclass(frozen=True)
class Owner:
    """The process behind a claim; `place` tells machines and containers of one name apart.

    >>> Owner.read("node7~1a2b3c4d~4711~1700000000~5e6f").pid
    4711
    """

    host: str
    place: str
    pid: int
    since: int
    token: str

    @classmethod
    def here(cls, since: int = 0) -> Owner:
        """This process; the token is new each time.

        >>> Owner.here().pid == os.getpid()
        True
        """
        host = socket.gethostname().replace("/", "-").replace("~", "-")
        return cls(host, _place(), os.getpid(), since, secrets.token_hex(8))

    @classmethod
    def read(cls, name: str) -> Owner:
        """Read the name of a claim's file."""
        try:
            host, place, pid, since, token = name.split("~")
            return cls(host, place, int(pid), int(since), token)
        except ValueError:
            return cls(name, "", 0, 0, "")  # not ours: it goes stale like any other

    @property
    def name(self) -> str:
        """The name of the file.

        >>> Owner("node7", "1a2b3c4d", 4711, 1700000000, "5e6f").name
        'node7~1a2b3c4d~4711~1700000000~5e6f'
        """
        return "~".join((self.host, self.place, str(self.pid), str(self.since), self.token))

    @property
    def dead(self) -> bool:
        """Whether the process is known to be gone; about other machines nothing is known.

        >>> Owner.here().dead
        False
        """
        if self.place != _place() or os.name != "posix":
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass
        return False

    def __str__(self) -> str:
        return f"{self.host}, process {self.pid}"


class DiskClock:
    """The time on the disk's clock: the clocks of machines that share a disk may differ by minutes."""

    def now(self, folder: Path) -> float:
        """The time where a folder lies."""
        clock = folder / ".clock"
        clock.touch()
        return clock.stat().st_mtime

    def stamp(self, path: Path) -> None:
        """Set a file's time to now."""
        os.utime(path)

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait, at most until `stop` is set; says whether it is."""
        return stop.wait(seconds)


@dataclass
class Leases:
    """The claims of one process on names in a folder; as a context it keeps them alive and gives them back.

    A claim without a heartbeat for `patience` seconds, or of a dead process on this machine, may be taken over.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with Leases(folder) as mine, Leases(folder) as theirs:
    ...     mine.take(["a", "b"]), theirs.take(["b", "c"])
    (['a', 'b'], ['c'])
    >>> Leases(folder).take(["a", "b", "c"])
    ['a', 'b', 'c']
    """

    folder: Path
    patience: float = 600.0
    clock: DiskClock = field(default_factory=DiskClock, repr=False)
    _held: dict[str, Path] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _heart: threading.Thread | None = field(default=None, repr=False)
    _pid: int = field(default_factory=os.getpid, repr=False)

    def take(self, ids: Iterable[str]) -> list[str]:
        """Claim what is free or given up; the result is all of `ids` that are now held here."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._lock:
            return [id for id in ids if self.holds(id) or self._take(id)]

    def holds(self, id: str) -> bool:
        """Whether a claim is held here, and nobody took it over."""
        path = self._held.get(id)
        return path is not None and path.exists()

    def beat(self) -> list[str]:
        """Show that the holder is alive; the result is what others took over in the meantime."""
        lost = []
        with self._lock:
            for id, path in list(self._held.items()):
                try:
                    self.clock.stamp(path)
                except FileNotFoundError:
                    del self._held[id]
                    lost.append(id)
        return lost

    def release(self, ids: Iterable[str] | None = None) -> None:
        """Give claims back, all of them if none are named; those of others stay."""
        if os.getpid() != self._pid:
            return  # a forked child inherits the object, not the claims
        with self._lock:
            for id in list(self._held) if ids is None else list(ids):
                path = self._held.pop(id, None)
                if path is not None:
                    with suppress(FileNotFoundError):
                        path.unlink()
                    # Somebody may have claimed it already: a directory that is not empty stays.
                    with suppress(OSError):
                        path.parent.rmdir()

    def _take(self, id: str) -> bool:
        place = self.folder / _flat(id)
        now = self.clock.now(self.folder)
        mine = Owner.here(int(now))
        found = _entries(place)
        if not found:
            taken = self._enter(place, mine)
        elif any(not _stale(path, beat, now, self.patience) for path, beat in found):
            return False
        else:
            # The name has a token that no other claim ever has: who moves it is the only one.
            taken = _moved(found[0][0], place / mine.name)
        if taken:
            self._held[id] = place / mine.name
            with suppress(FileNotFoundError):
                self.clock.stamp(self._held[id])
        return taken

    def _enter(self, place: Path, mine: Owner) -> bool:
        """Move a directory with the claim in it to where none, or an empty one, is: wholly, or not at all."""
        new = self.folder / f".new-{mine.token}"
        new.mkdir()
        (new / mine.name).touch()
        try:
            os.rename(new, place)
        except OSError as error:
            (new / mine.name).unlink()
            new.rmdir()
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        return True

    def __enter__(self) -> Leases:
        self._stop.clear()
        self._heart = threading.Thread(target=self._keep_beating, name="heartbeat", daemon=True)
        self._heart.start()
        return self

    def _keep_beating(self) -> None:
        # A beat that fails (a network disk that is away) does no harm: the next one follows.
        while not self.clock.wait(self._stop, self.patience / 10):
            with suppress(OSError):
                self.beat()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._heart is not None and os.getpid() == self._pid:
            self._heart.join(timeout=10)
        self.release()


def owner(folder: Path, id: str, patience: float = 600.0) -> Owner | None:
    """Who holds a claim now; None if nobody does or the claim is stale.

    >>> import tempfile
    >>> with Leases(Path(tempfile.mkdtemp())) as claims:
    ...     _ = claims.take(["a"])
    ...     owner(claims.folder, "a").pid == os.getpid(), owner(claims.folder, "b")
    (True, None)
    """
    held = (path for path, beat in _entries(folder / _flat(id)) if not _stale(path, beat, time.time(), patience))
    return next((Owner.read(path.name) for path in held), None)


def shard(ids: Iterable[str], part: str) -> list[str]:
    """The part "2/3" of a whole plan, for machines without a common disk; results are merged by copying files.

    Every third name in alphabetical order: give the whole plan, not what is left of it, so that parts fit.

    >>> shard(["a-r1", "b-r1", "a-r0", "b-r0"], "1/2"), shard(["a-r1", "b-r1", "a-r0", "b-r0"], "2/2")
    (['a-r0', 'b-r0'], ['a-r1', 'b-r1'])
    """
    which, _, of = part.partition("/")
    if not (which.isdecimal() and of.isdecimal() and 1 <= int(which) <= int(of)):
        raise ValueError(f"A shard is written 2/3, the second of three parts; got {part!r}.")
    ids = list(ids)
    chosen = set(sorted(set(ids))[int(which) - 1 :: int(of)])
    return [id for id in ids if id in chosen]


def _moved(path: Path, to: Path) -> bool:
    try:
        os.rename(path, to)
    except FileNotFoundError:
        return False
    return True


def _flat(id: str) -> str:
    return id.replace("/", "~")


def _entries(place: Path) -> list[tuple[Path, float]]:
    """The claims in a directory with their last heartbeats, the latest first; more than one is somebody's copy."""
    found = []
    with suppress(FileNotFoundError):
        for path in place.iterdir():
            with suppress(FileNotFoundError):
                found.append((path, path.stat().st_mtime))
    return sorted(found, key=lambda x: -x[1])


def _stale(path: Path, beat: float, now: float, patience: float) -> bool:
    # A rename keeps the file's old time: until the new owner's first heartbeat the time in the name counts.
    who = Owner.read(path.name)
    return who.dead or now - max(beat, who.since) > patience


@functools.cache
def _place() -> str:
    """This machine since its last start, and the processes that can be seen from here (containers)."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]

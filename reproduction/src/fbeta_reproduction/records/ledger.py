"""Results of many runs in one folder: a line per run and epoch, safe against kills and shared by machines.

`protocol.json` says what the folder holds, `<id>.csv` is one run, `.claims/` who trains it now, `.checkpoints/`
where to go on from. The first line of a run's file is ``# `` and JSON about the run, the second names the columns.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from fbeta.writing import write
from fbeta_reproduction.records.checkpoint import load as load
from fbeta_reproduction.records.checkpoint import save as save
from fbeta_reproduction.records.leases import Leases, Owner, owner
from fbeta_reproduction.records.leases import shard as shard
from fbeta_reproduction.records.record import Record, numbers, parse, records
from fbeta_reproduction.records.record import ids as ids
from fbeta_reproduction.records.record import read as read

_REMEDY = "give another folder with --results"
_NAME = re.compile(r"\w[\w.=+-]*(/\w[\w.=+-]*)*")


def owners(folder: Path | str, ids: Iterable[str]) -> dict[str, Owner]:
    """Who trains which of `ids` now; runs that nobody has claimed are left out.

    >>> owners("a folder that is not there", ["digits/bce-r0"])
    {}
    """
    found = {id: owner(Path(folder, ".claims"), id) for id in ids}
    return {id: who for id, who in found.items() if who is not None}


def check(folder: Path | str, protocol: Mapping[str, Any]) -> None:
    """Refuse a folder whose `protocol.json` belongs to another protocol; a folder without one passes.

    >>> check("a folder that is not there", {"version": 1})
    """
    path = Path(folder, "protocol.json")
    if not path.exists():
        return
    try:
        there = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); restore it from a copy, or {_REMEDY}.") from error
    unlike = _differences(there, _plain(protocol))
    if unlike:
        raise ValueError(f"{folder} holds results of another protocol ({'; '.join(unlike)}); {_REMEDY}.")


class NotHeldError(RuntimeError):
    """A run is to be written that this process has not claimed, or that another one took over."""


class Ledger:
    """A results folder that this process writes to; as a context it keeps its claims alive and gives them back.

    Rows reach the operating system at once, so a killed process loses none of them; `sync` brings them to the disk
    and belongs before a checkpoint. Look at `epochs` after a claim: another process may have worked in between.

    >>> import tempfile
    >>> with Ledger(Path(tempfile.mkdtemp(), "results"), {"protocol": "mine", "version": 1}) as ledger:
    ...     for run in ledger.claim(["digits/bce-r0", "digits/bce-r1"]):
    ...         start = ledger.begin(run, {"run": {"loss": "bce"}}, ["epoch", "loss"])
    ...         ledger.append(run, ["1,0.7", "2,0.4"])
    ...     ledger.epochs("digits/bce-r0"), ledger.done("digits/bce-r1", 3)
    (2, False)
    """

    def __init__(
        self,
        folder: Path | str,
        protocol: Mapping[str, Any],
        *,
        may_differ: Collection[str] = ("machine", "run.epochs"),
    ) -> None:
        self.folder = Path(folder)
        self.claims = Leases(self.folder / ".claims")
        self.may_differ = frozenset(may_differ)
        self._files: dict[str, _File] = {}
        self._unsynced: set[Path] = set()
        _settle(self.folder, _plain(protocol))

    def path(self, id: str) -> Path:
        """The file of a run."""
        return self.folder / f"{_checked(id)}.csv"

    def checkpoint_path(self, key: str) -> Path:
        """Where `save` may put a checkpoint of a run, or of several that are trained at once."""
        return self.folder / ".checkpoints" / f"{_checked(key)}.safetensors"

    def claim(self, ids: Iterable[str]) -> list[str]:
        """Claim runs; the result is those of `ids` that this process now holds."""
        return self.claims.take([_checked(id) for id in ids])

    def beat(self) -> list[str]:
        """Show that this process is alive (a context does so by itself); the result is what others took over."""
        return self.claims.beat()

    def release(self, ids: Iterable[str] | None = None) -> None:
        """Give runs back, all of them if none are named."""
        self.claims.release(ids)

    def epochs(self, id: str) -> int:
        """The complete epochs of a run, 0 without a file."""
        path = self.path(id)
        return read(path).epochs if path.exists() else 0

    def done(self, id: str, epochs: int) -> bool:
        """Whether a run has all its epochs."""
        return self.epochs(id) >= epochs

    def records(self) -> Iterator[tuple[str, Record]]:
        """All runs by name, whoever trained them."""
        return records(self.folder)

    def begin(self, id: str, header: Mapping[str, Any], columns: Sequence[str]) -> int:
        """Start the file of a run, or take up the one that is there; the result is the epochs that it holds.

        What is there must be the same run: only the parts of the header named in `may_differ` may have changed,
        and are brought up to date.
        """
        self.check_claim(id)
        if list(columns[:1]) != ["epoch"]:
            raise ValueError(f"The first column must be 'epoch'; got {list(columns)}.")
        path = self.path(id)
        head = f"# {json.dumps(header)}\n{','.join(columns)}\n".encode()
        new = parse(head, path)
        data = path.read_bytes() if path.exists() else head
        old = parse(data, path)
        unlike = _differences(old.header, new.header, self.may_differ)
        unlike += _differences({"columns": list(old.columns)}, {"columns": list(new.columns)})
        if unlike:
            raise ValueError(
                f"{path} is of another run ({'; '.join(unlike)}); delete it, or give another results folder."
            )
        self._rewrite(id, head, data, old.epochs)
        return old.epochs

    def append(self, id: str, rows: str | Iterable[str]) -> None:
        """Add an epoch, or several: each one line of comma-separated numbers, the epoch first."""
        self.check_claim(id)
        file = self._files.get(id)
        if file is None:
            raise NotHeldError(f"{id} was not begun here; call begin first, which says how many epochs it has.")
        rows = [rows] if isinstance(rows, str) else list(rows)
        for epoch, row in enumerate(rows, start=file.epochs + 1):
            if numbers(row, epoch, file.columns) is None or row.split() != [row]:
                raise ValueError(f"Epoch {epoch} of {id} must be a line of {file.columns} numbers; got {row!r}.")
        data = "".join(f"{row}\n" for row in rows).encode()
        path = self.path(id)
        there = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            # Somebody else's rows would be between ours: this process slept and lost its claim.
            if (os.fstat(there).st_ino, os.fstat(there).st_size) != (file.inode, file.size):
                raise NotHeldError(f"{path} was changed by somebody else; this process must not go on with {id}.")
            if os.write(there, data) < len(data):
                os.ftruncate(there, file.size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        finally:
            os.close(there)
        file.size += len(data)
        file.epochs += len(rows)
        self._unsynced.add(path)

    def truncate(self, id: str, epoch: int) -> None:
        """Drop all rows after `epoch`, the one that a checkpoint was taken at."""
        self.check_claim(id)
        path = self.path(id)
        data = path.read_bytes()
        epochs = parse(data, path).epochs
        if not 0 <= epoch <= epochs:
            raise ValueError(
                f"{path} has {epochs} epochs and cannot go back to epoch {epoch}; "
                "delete the checkpoint, which belongs to other results."
            )
        self._rewrite(id, b"".join(data.splitlines(keepends=True)[:2]), data, epoch)

    def sync(self) -> None:
        """Bring all rows to the disk, so that after a power cut no checkpoint is there without its rows."""
        while self._unsynced:
            with self._unsynced.pop().open("rb") as file:
                os.fsync(file.fileno())

    def _rewrite(self, id: str, head: bytes, data: bytes, epochs: int) -> None:
        path = self.path(id)
        whole = head + b"".join(data.splitlines(keepends=True)[2 : 2 + epochs])
        if whole != data or not path.exists():
            write(path, whole)
        self._files[id] = _File(head.count(b",", head.index(b"\n")) + 1, epochs, len(whole), path.stat().st_ino)

    def check_claim(self, id: str) -> None:
        """Raise NotHeldError unless this process holds a run."""
        if not self.claims.holds(_checked(id)):
            who = owner(self.claims.folder, id, self.claims.patience)
            by = f"it is held by {who}" if who else "nobody holds it"
            raise NotHeldError(f"{id} is not claimed by this process ({by}); claim it before you write.")

    def __enter__(self) -> Ledger:
        self.claims.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.sync()
        finally:
            self.claims.__exit__(kind, error, trace)


@dataclass
class _File:
    """What this process knows about a file that it writes: if the file differs, somebody else wrote to it."""

    columns: int
    epochs: int
    size: int
    inode: int


def _settle(folder: Path, protocol: dict[str, Any]) -> None:
    """Set the folder up for this protocol, or refuse the one that is there."""
    path = folder / "protocol.json"
    if not path.exists():
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file, not a results folder; {_REMEDY}.")
        # Hidden files do not count: another process may be setting up this folder, too.
        others = sorted(x.name for x in folder.iterdir() if x.name[0] != ".") if folder.exists() else []
        if not path.exists():
            if others:
                raise ValueError(f"{folder} holds other things ({others[0]}, …) and no protocol.json; {_REMEDY}.")
            write(path, (json.dumps(protocol, indent=1) + "\n").encode())
    check(folder, protocol)


def _differences(there: Any, here: Any, skip: Collection[str] = (), at: str = "") -> list[str]:
    if at in skip or there == here:
        return []
    if isinstance(there, dict) and isinstance(here, dict):
        names = dict.fromkeys([*there, *here])
        nothing = "absent"
        pairs = ((name, there.get(name, nothing), here.get(name, nothing)) for name in names)
        return [x for name, a, b in pairs for x in _differences(a, b, skip, f"{at}.{name}".lstrip("."))]
    return [f"{at or 'it'} is {json.dumps(there)} there and {json.dumps(here)} here"]


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """As it comes back from JSON: tuples are lists."""
    return dict(json.loads(json.dumps(data)))


def _checked(id: str) -> str:
    # A name becomes a path: it must stay inside the folder, and off its hidden files.
    if not _NAME.fullmatch(id):
        raise ValueError(f"A run's name has letters, digits, . = + - _ and / between words; got {id!r}.")
    return id

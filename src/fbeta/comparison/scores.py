"""What came out of training: scores of rows by models that did not see them, kept in a file per part."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fbeta.comparison.plan import Part
from fbeta.learners.learner import Course
from fbeta.sealed import DAMAGED, read_json, seal, unseal
from fbeta.writing import write

Array = NDArray[np.float64]
ABOUT, NUMBERS = "part.json", "scores.safetensors"


@dataclass(frozen=True, eq=False)
class Scores:
    """One method on one split; positive at or above 0 by its loss's own boundary.

    `remark` says in words what went wrong in training.

    Shape: `inner` (learning rows, by models of the other folds) and `outer` (test rows, by the model of all).
    """

    inner: Array
    outer: Array
    seconds: float = 0.0
    rounds: int = 0
    course: Course = field(default_factory=Course)
    remark: str = ""


class Folder:
    """A folder of finished parts, one sealed file each; `say` is told of damage, which is mended by training again.

    >>> import tempfile
    >>> part = Part("xgboost", ("bce",), split=0, seed=0)
    >>> folder = Folder(Path(tempfile.mkdtemp()))
    >>> folder.write(part, {"bce": Scores(np.zeros(3), np.zeros(2), rounds=7)})
    >>> folder.read(part)["bce"].rounds
    7
    """

    def __init__(self, path: Path | str, say: Callable[[str], None] = print) -> None:
        self.path, self.say = Path(path).expanduser(), say

    def file(self, part: Part) -> Path:
        """Where a part is kept."""
        return self.path / f"{part.key}.scores"

    @contextmanager
    def lock(self, part: Part, wait: bool = True) -> Iterator[bool]:
        """Hold a part for the time of a `with`: whether it could be had; a process that ends lets go of it."""
        from filelock import FileLock, Timeout

        self.path.mkdir(parents=True, exist_ok=True)
        held = FileLock(self.path / f"{part.key}.lock")
        try:
            held.acquire(timeout=-1 if wait else 0)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            held.release()

    def read(self, part: Part) -> dict[str, Scores] | None:
        """A finished part; None if it is not there, or not whole."""
        path = self.file(part)
        if not path.exists():
            return None
        try:
            return _from_bytes(part, path.read_bytes())
        except DAMAGED:
            self.say(f"{path} is damaged; what it held is trained again.")
            return None

    def write(self, part: Part, found: Mapping[str, Scores]) -> None:
        """Keep a part, whole or not at all."""
        write(self.file(part), _to_bytes(found))


def _to_bytes(found: Mapping[str, Scores]) -> bytes:
    from safetensors.numpy import save

    names = ("inner", "outer", "course")
    numbers = {f"{loss}.{name}": getattr(x, name) for loss, x in found.items() for name in names}
    about = {
        loss: {"seconds": x.seconds, "rounds": x.rounds, "remark": x.remark} for loss, x in found.items()
    }
    arrays = {name: np.ascontiguousarray(x, dtype=np.float64) for name, x in numbers.items()}
    return seal({ABOUT: json.dumps(about).encode(), NUMBERS: save(arrays)})


def _from_bytes(part: Part, data: bytes) -> dict[str, Scores]:
    from safetensors.numpy import load

    members = unseal(data)
    numbers, about = load(members[NUMBERS]), read_json(members[ABOUT])
    return {
        loss: Scores(
            numbers[f"{loss}.inner"],
            numbers[f"{loss}.outer"],
            float(about[loss]["seconds"]),
            int(about[loss]["rounds"]),
            Course(*(tuple(map(float, x)) for x in numbers[f"{loss}.course"])),
            str(about[loss]["remark"]),
        )
        for loss in part.losses
    }

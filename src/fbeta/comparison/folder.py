"""Finished parts: scores of rows by models that did not see them, kept in one file per part."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fbeta.comparison.plan import Part
from fbeta.decisions import Platt
from fbeta.learners import Scorer
from fbeta.learners.crossfit import Array
from fbeta.learners.learner import Course
from fbeta.learners.network import read_arrays
from fbeta.sealed import DAMAGED, LARGEST, read_json, seal, unseal
from fbeta.tables import Encoder
from fbeta.writing import naming, write

ABOUT, NUMBERS, KEY = "part.json", "scores.safetensors", "part"


@dataclass(frozen=True, eq=False)
class SplitScores:
    """One method on one split: `inner` scores learning rows by models of the other folds, `outer` test rows.

    `calibration` is known where the loss implies probabilities, and learned from `inner` elsewhere. `fitted` are the
    encoder and the model that learned from all rows of a fit; a comparison keeps none.
    """

    inner: Array
    outer: Array
    seconds: float = 0.0
    rounds: int = 0
    course: Course = field(default_factory=Course)
    remark: str = ""
    calibration: tuple[Platt, ...] | None = None
    fitted: tuple[Encoder, Scorer] | None = None


class Folder:
    """A folder of finished parts, one sealed file each; damage is told to `say`, and trained again."""

    def __init__(self, path: Path | str, say: Callable[[str], None] = print) -> None:
        self.path, self.say = Path(path).expanduser(), say

    def file(self, part: Part) -> Path:
        """Where a part is kept."""
        return self.path / f"{part.key}.scores"

    @contextmanager
    def lock(self, part: Part, wait: bool = True) -> Iterator[bool]:
        """Lock a part within a `with`; says whether it was free. The lock of a process that ends is released."""
        from filelock import FileLock, Timeout

        with naming(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        try:
            held = FileLock(self.path / f"{part.key}.lock").acquire(timeout=-1 if wait else 0)
        except Timeout:
            yield False
            return
        with held:
            yield True

    def read(self, part: Part) -> dict[str, SplitScores] | None:
        """A finished part; None if it is not there, or not whole."""
        path = self.file(part)
        if not path.exists():
            return None
        try:
            if not path.is_file() or path.stat().st_size > LARGEST:
                raise ValueError("no file that `write` made")
            return _read(part, path.read_bytes())
        except DAMAGED:
            self.say(f"{path} is damaged; what it held is trained again.")
            return None

    def write(self, part: Part, found: Mapping[str, SplitScores]) -> None:
        """Keep a part, whole or not at all."""
        from safetensors.numpy import save

        numbers: dict[str, Array] = {}
        about: dict[str, Any] = {KEY: part.key}
        for loss, x in found.items():
            known = None if x.calibration is None else [(c.slope, c.offset) for c in x.calibration]
            about[loss] = {"seconds": x.seconds, "rounds": x.rounds, "remark": x.remark, "calibration": known}
            for name, values in (("inner", x.inner), ("outer", x.outer), ("course", astuple(x.course))):
                numbers[f"{loss}.{name}"] = np.ascontiguousarray(values, dtype=np.float64)
        write(self.file(part), seal({ABOUT: json.dumps(about).encode(), NUMBERS: save(numbers)}))


def _read(part: Part, data: bytes) -> dict[str, SplitScores]:
    members = unseal(data)
    about = read_json(members[ABOUT])
    if about[KEY] != part.key:
        raise ValueError("it is another part")
    numbers = read_arrays(members, NUMBERS)
    found = {}
    for loss in part.losses:
        inner, outer, course = (numbers[f"{loss}.{name}"] for name in ("inner", "outer", "course"))
        seconds, rounds, remark = (about[loss][name] for name in ("seconds", "rounds", "remark"))
        epochs, lines = Course(*(tuple(x.tolist()) for x in course)), about[loss]["calibration"]
        known = None if lines is None else tuple(Platt(float(a), float(b)) for a, b in lines)
        found[loss] = SplitScores(inner, outer, float(seconds), int(rounds), epochs, str(remark), known)
    return found

"""Where gradients point along training: one file for each data set, written at once and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fbeta.numerals import series
from fbeta.writing import write
from fbeta_reproduction.protocol import BETAS

#: The folder of these files in a results folder, and how many decimals are kept.
FOLDER, DIGITS = "gradients", 5
#: On the plateau outputs of negatives are alike (a gap of log(a + f) below the first), and not because all are near 0
#: (a gap of log(1 − f) above the second).
ALIKE, POSITIVE = 0.01, 0.05


@dataclass(frozen=True)
class GradientPaths:
    """All points of a data set: after some epochs of each run, the cosines and Jensen's gaps (`gradient_paths`)."""

    dataset: str
    epochs: int
    machine: Mapping[str, Any]
    points: tuple[Mapping[str, Any], ...]

    @property
    def repeats(self) -> int:
        """How many runs there are of each loss."""
        return len({point["repeat"] for point in self.points})

    @property
    def measured(self) -> list[int]:
        """The epochs after which was measured."""
        return sorted({point["epoch"] for point in self.points})

    @property
    def when(self) -> str:
        """These epochs in a sentence."""
        return series([str(epoch) for epoch in self.measured])

    def cosines(self, loss: str, beta: float, *, along: str | None = None, learning: bool = False) -> list[float]:
        """Cosines of a loss with soft F_β of one β, on its own way or (`along`) on that of another loss."""
        place = BETAS.index(beta)
        found = (point["cosine"][loss][place] for point in self.along(along or loss, learning=learning))
        return [value for value in found if value is not None]

    def along(self, loss: str, *, learning: bool = False) -> list[Mapping[str, Any]]:
        """The points on the way of a loss; `learning` leaves out those where every output is positive and alike."""
        return [p for p in self.points if p["loss"] == loss and not (learning and _on_plateau(p))]


def _on_plateau(point: Mapping[str, Any]) -> bool:
    """Whether a network calls everything positive, as Jensen's gaps tell: the widest, that of the least β, is none."""
    return bool(point["alarmed"][0] < ALIKE and point["alarmed_bce"] > POSITIVE)


def save(
    folder: Path, dataset: str, epochs: int, machine: Mapping[str, Any], points: Sequence[Mapping[str, Any]]
) -> Path:
    """Write a data set's points, a line for each."""
    head = {"dataset": dataset, "epochs": epochs, "machine": machine}
    lines = ",\n".join(json.dumps(point) for point in points)
    path = folder / FOLDER / f"{dataset}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, f'{json.dumps(head)[:-1]}, "points": [\n{lines}\n]}}\n'.encode())
    return path


def read_gradients(folder: Path) -> tuple[GradientPaths, ...]:
    """Read every data set's file in a results folder.

    >>> read_gradients(Path("nowhere"))
    ()
    """
    found = []
    for path in sorted((folder / FOLDER).glob("*.json")):
        told = json.loads(path.read_bytes())
        found.append(GradientPaths(told["dataset"], told["epochs"], told["machine"], tuple(told["points"])))
    return tuple(found)

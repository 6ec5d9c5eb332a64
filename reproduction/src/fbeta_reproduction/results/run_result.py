"""What one run scored, epoch by epoch: scores from counts, the plateau, and what it reached in the end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fbeta.metrics import Accuracy, Confusion, FBeta
from fbeta_reproduction.protocol import Run

Array = NDArray[np.float64]
Split = Literal["train", "val", "test"]

#: On the plateau: more than this share of the training split is predicted positive at ½.
PLATEAU = 0.99
#: Left the plateau: this many epochs off it in a row, or all that are left.
STEADY = 3
#: A final score is the mean of this many last epochs.
LAST = 5


@dataclass(frozen=True)
class RunResult:
    """One run: what was trained, on how many rows, and a number for each epoch.

    Every score is derived from counts. A network whose outputs are NaN (`nan_from`) predicts nothing.

    Shape: arrays have one element for each finished epoch.

    >>> columns = {"epoch": [1, 2], "loss": [0.5, 0.1], "train_tp": [10, 8], "train_fp": [90, 2]}
    >>> r = RunResult(Run("digits", "bce"), {"train": (100, 10)}, {}, {k: np.array(v) for k, v in columns.items()})
    >>> r.share("train"), r.score("train", 1.0).round(4), r.left
    (array([1. , 0.1]), array([0.1818, 0.8   ]), 2)
    """

    run: Run
    counts: Mapping[str, tuple[int, int]]
    machine: Mapping[str, Any]
    columns: Mapping[str, Array]

    @property
    def epochs(self) -> Array:
        """Epochs finished, from 1."""
        return self.columns["epoch"]

    @property
    def loss(self) -> Array:
        """The run's own loss on the whole training split, not augmented."""
        return self.columns["loss"]

    @property
    def finished(self) -> bool:
        """Whether all planned epochs are there."""
        return len(self.epochs) >= self.run.epochs

    @property
    def seconds(self) -> float:
        """Device time of this run: its share of the runs trained together."""
        return float(np.nansum(self.columns["seconds"])) if "seconds" in self.columns else 0.0

    def until(self, epochs: int) -> RunResult:
        """The run as it stood after so many epochs, for a fair comparison with a shorter one.

        >>> r = RunResult(Run("digits", "bce"), {}, {}, {"epoch": np.array([1, 2, 3])})
        >>> r.until(2).epochs, r.until(2).finished
        (array([1, 2]), True)
        """
        run = replace(self.run, epochs=min(epochs, self.run.epochs))
        return replace(self, run=run, columns={name: x[:epochs] for name, x in self.columns.items()})

    def cells(self, split: Split, cut: float | None = None) -> Confusion:
        """The confusion matrix by epoch: at ½, or on test at the cut that validation rows chose for F of β = `cut`."""
        rows, positives = self.counts[split]
        name = split if cut is None else f"cut{cut:g}"
        if cut is not None and split != "test":
            raise ValueError(f"Counts at a tuned cut are kept for test, not {split}; leave `cut` out.")
        tp, fp = self.columns[f"{name}_tp"], self.columns[f"{name}_fp"]
        return Confusion(tp, fp, positives - tp, rows - positives - fp)

    def score(self, split: Split, beta: float, *, tuned: bool = False) -> Array:
        """F_β by epoch, at ½ or (`tuned`, on test) at the cut that is best for it on validation rows."""
        return np.asarray(FBeta(beta)(self.cells(split, beta if tuned else None)), dtype=float)

    def accuracy(self, split: Split = "test") -> Array:
        """Accuracy by epoch at ½."""
        return np.asarray(Accuracy()(self.cells(split)), dtype=float)

    def share(self, split: Split = "train") -> Array:
        """Share of rows predicted positive at ½, by epoch."""
        c = self.cells(split)
        return np.asarray((c.tp + c.fp) / c.total, dtype=float)

    def trivial(self, split: Split, beta: float = 1.0) -> float:
        """F_β of calling every row positive: what a run must beat to have learned something."""
        rows, positives = self.counts[split]
        return float(FBeta(beta)(Confusion(positives, rows - positives, 0, 0)))

    def base_rate(self, split: Split = "test") -> float:
        """Accuracy of calling every row negative."""
        rows, positives = self.counts[split]
        return 1 - positives / rows

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """Epochs after which the network's outputs are numbers.

        A loss can be NaN before that: the tangent loss has no value where nothing is predicted positive.
        """
        # No cut can be tuned on NaN.
        return ~np.isnan(self.columns.get("cut1", self.loss))

    @property
    def nan_from(self) -> int | None:
        """First epoch after which the network's outputs, and so its loss, are NaN, if any."""
        dead = np.flatnonzero(~self.alive)
        return int(self.epochs[dead[0]]) if len(dead) else None

    @cached_property
    def on_plateau(self) -> NDArray[np.bool_]:
        """Epochs after which more than 99 % of the training split is predicted positive."""
        on: NDArray[np.bool_] = self.share("train") > PLATEAU
        return on

    @cached_property
    def left(self) -> int | None:
        """First of three epochs in a row off the plateau (1: it was never on it); None if it has not left.

        At the end, or before a NaN, fewer are enough.
        """
        off = ~self.on_plateau[: self._lived]
        first = next((i for i in range(len(off)) if off[i : i + STEADY].all()), None)
        return None if first is None else int(self.epochs[first])

    @property
    def watched(self) -> tuple[float, bool]:
        """When it left the plateau and True; else how long it was watched, up to a NaN or the end, and False."""
        return (float(self._lived), False) if self.left is None else (float(self.left), True)

    @property
    def _lived(self) -> int:
        """Number of epochs before the first NaN."""
        return len(self.epochs) if self.nan_from is None else int(self.alive.argmin())

    def final(self, values: Array) -> float:
        """Mean over the last five epochs."""
        return float(np.mean(values[-LAST:]))

    @cached_property
    def learned(self) -> bool:
        """Whether it ends finite and with a training F₁ at least 0.05 above calling every row positive."""
        return bool(self.alive[-1]) and self.final(self.score("train", 1.0)) > self.trivial("train") + 0.05

    @cached_property
    def converged(self) -> float:
        """First epoch with 90 % of the final training F₁; inf for a run that learned nothing."""
        return self.reached(0.9 * self.final(self.score("train", 1.0))) if self.learned else math.inf

    def reached(self, level: float) -> float:
        """First epoch with a training F₁ of at least `level`; inf if there is none."""
        there = self.epochs[self.score("train", 1.0) >= level]
        return float(there[0]) if len(there) else math.inf

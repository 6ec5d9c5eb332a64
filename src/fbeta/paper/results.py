"""A folder of results as arrays: what each run scored, when it left the plateau, and its repeats together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fbeta.metrics import Accuracy, Confusion, FBeta
from fbeta.paper import measure
from fbeta.paper.protocol import BETAS, PROTOCOL, Q_REMEDY, SETTINGS, Run
from fbeta.train import ledger

Array = NDArray[np.float64]
Split = Literal["train", "val", "test"]
Kind = Literal["faithful", "beside", "reading", "remedy", "precision"]

#: On the plateau: more than this share of the training split is predicted positive at ½.
PLATEAU = 0.99
#: Left the plateau: this many epochs off it in a row, or all that are left.
STEADY = 3
#: A final score is the mean of this many last epochs.
LAST = 5

#: The data sets of the paper, in its order.
PAPER = ("fashion-mnist", "cifar10")
#: Losses in the order of tables; others are readings of the text.
LOSSES = ("surrogate", "soft", "balanced-bce", "balanced-mae", "bce", "tangent")


@dataclass(frozen=True)
class Result:
    """One run: what was trained, on how many rows, and a number for each epoch.

    Every score is derived from counts. A network whose outputs are NaN (`nan_from`) predicts nothing.

    Shape: arrays have one element for each finished epoch.

    >>> columns = {"epoch": [1, 2], "loss": [0.5, 0.1], "train_tp": [10, 8], "train_fp": [90, 2]}
    >>> r = Result(Run("digits", "bce"), {"train": (100, 10)}, {}, {k: np.array(v) for k, v in columns.items()})
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

    def until(self, epochs: int) -> Result:
        """The run as it stood after so many epochs, for a fair comparison with a shorter one.

        >>> r = Result(Run("digits", "bce"), {}, {}, {"epoch": np.array([1, 2, 3])})
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
        f = self.score("train", 1.0)
        return float(self.epochs[np.argmax(f >= 0.9 * self.final(f))]) if self.learned else math.inf


@dataclass(frozen=True)
class Group:
    """Runs that differ by their repeat only: `results` as long as the longest plan, `short` the others."""

    results: tuple[Result, ...]
    short: tuple[Result, ...] = ()

    @property
    def run(self) -> Run:
        """The first run, which stands for all."""
        return self.results[0].run

    @property
    def everyone(self) -> tuple[Result, ...]:
        """Short runs too: for what happens in the first epochs."""
        return self.results + self.short

    @property
    def first(self) -> Result:
        """The first repetition, which the paper draws."""
        return min(self.results, key=lambda r: r.run.repeat)

    @property
    def reached(self) -> int:
        """Epochs that all long runs have finished."""
        return min(len(r.epochs) for r in self.results)

    def until(self, epochs: int) -> Group:
        """The group as it stood after so many epochs."""
        return Group(tuple(r.until(epochs) for r in self.results), self.short)

    def finals(self, values: Callable[[Result], Array]) -> list[float]:
        """The mean over the last five epochs of each run."""
        return [r.final(values(r)) for r in self.results]

    def quantiles(self, values: Callable[[Result], Array]) -> tuple[Array, Array]:
        """Epochs, and lowest, median and highest over the runs that got that far.

        Shape: ``(e,)`` and ``(3, e)``.
        """
        longest = max(self.results, key=lambda r: len(r.epochs))
        table = np.full((len(self.results), len(longest.epochs)), np.nan)
        for row, r in zip(table, self.results, strict=True):
            row[: len(r.epochs)] = values(r)
        return longest.epochs, np.nanquantile(table, [0.0, 0.5, 1.0], axis=0)


@dataclass(frozen=True)
class Results:
    """Every group of a results folder."""

    groups: tuple[Group, ...]

    @property
    def datasets(self) -> tuple[str, ...]:
        """Data sets with at least one epoch of one run: the paper's first."""
        there = {g.run.dataset for g in self.groups}
        return tuple(d for d in SETTINGS if d in there) + tuple(sorted(there - set(SETTINGS)))

    def of(self, dataset: str, *kinds: Kind) -> tuple[Group, ...]:
        """The groups of a data set, of some kinds or of all, in the order of tables."""
        return tuple(
            g for g in self.groups if g.run.dataset == dataset and (not kinds or kind(g.run) in kinds)
        )

    def find(self, dataset: str, loss: str, beta: float | None = None, **fields: Any) -> Group | None:
        """The group with this loss and otherwise the paper's settings, or those given."""
        wanted = Run(dataset, loss, beta, **fields).label
        return next((g for g in self.of(dataset) if g.run.label == wanted), None)

    def family(self, dataset: str, loss: str) -> list[Group]:
        """The groups of a loss under the paper's settings: the four β, or the one without."""
        found = (self.find(dataset, loss, b) for b in (*BETAS, None))
        return [g for g in found if g is not None]

    def main(self, dataset: str) -> list[Group]:
        """The groups under the paper's settings, of every loss of tables and figures."""
        return [g for loss in LOSSES for g in self.family(dataset, loss)]

    def __iter__(self) -> Iterator[Result]:
        return (r for g in self.groups for r in g.everyone)


def kind(run: Run) -> Kind:
    """What a run is for: the paper's own setting, beside it, another reading of its text, a remedy, a precision.

    >>> kind(Run("cifar10", "soft", 1.0)), kind(Run("cifar10", "soft", 1.0, precision="fp32"))
    ('faithful', 'precision')
    >>> kind(Run("cifar10", "bce", learning_rate=0.03, precision="fp32"))
    'reading'
    """
    if run.remedy or run.q == Q_REMEDY:
        return "remedy"
    if run.loss not in LOSSES or run.learning_rate != 0.01 or run.stem != "imagenet":
        return "reading"
    if not run.usual:
        return "precision"
    return "beside" if run.q or run.loss in ("bce", "tangent") else "faithful"


def read(folder: Path) -> Results:
    """Read every run of a results folder that has at least one epoch.

    >>> read(Path("nowhere"))
    Traceback (most recent call last):
    FileNotFoundError: There is no results folder nowhere; train some runs first, or give another.
    """
    if not folder.is_dir():
        raise FileNotFoundError(
            f"There is no results folder {folder}; train some runs first, or give another."
        )
    ledger.check(folder, PROTOCOL)
    groups: dict[tuple[str, str], list[Result]] = {}
    for id in ledger.ids(folder):
        result = read_run(Path(folder, f"{id}.csv"))
        if len(result.epochs):
            groups.setdefault((result.run.dataset, result.run.label), []).append(result)
    made = (_group(found) for found in groups.values())
    return Results(tuple(sorted(made, key=lambda g: _order(g.run))))


def read_run(path: Path) -> Result:
    """Read one run's file; a ValueError says what is wrong with one that is no run of this protocol."""
    record = ledger.read(path)
    try:
        run = Run(**record.header["run"])
        counts = {split: (int(n), int(p)) for split, (n, p) in record.header["counts"].items()}
        missing = [name for name in measure.SPLITS if name not in counts]
        missing += [name for name in measure.columns() if name not in record.columns]
        if missing:
            raise ValueError(f"no {missing[0]}")
        if Path(*path.parts[-2:]) != Path(f"{run.id}.csv"):  # a copy would count twice
            raise ValueError(f"it is {run.id}")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} does not describe a run of this protocol ({error}); move it out of the results folder."
        ) from error
    return Result(run, counts, record.header.get("machine", {}), record.columns)


def _group(found: list[Result]) -> Group:
    longest = max(r.run.epochs for r in found)
    found.sort(key=lambda r: r.run.repeat)
    return Group(
        tuple(r for r in found if r.run.epochs == longest),
        tuple(r for r in found if r.run.epochs < longest),
    )


def _order(run: Run) -> tuple[Any, ...]:
    place = LOSSES.index(run.loss) if run.loss in LOSSES else len(LOSSES)
    # The noise-robust form of the surrogate stands beside the paper's losses, not among them.
    return (place + 100 * bool(run.q), run.loss, run.q, run.beta or 0.0, run.label)

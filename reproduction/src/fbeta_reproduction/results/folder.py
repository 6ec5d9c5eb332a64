"""A folder of result files, read: every run, and its repeats together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fbeta_reproduction.protocol import BETAS, LOSSES, PROTOCOL, SETTINGS, Kind, Run, kind
from fbeta_reproduction.records import ledger
from fbeta_reproduction.results import measurement
from fbeta_reproduction.results.gradients import GradientPaths, read_gradients
from fbeta_reproduction.results.run_result import Array, RunResult, Split


@dataclass(frozen=True)
class Repeats:
    """Runs that differ by their repeat only: `results` as long as the longest plan, `short` the others."""

    results: tuple[RunResult, ...]
    short: tuple[RunResult, ...] = ()

    @property
    def run(self) -> Run:
        """The first run, which stands for all."""
        return self.results[0].run

    @property
    def everyone(self) -> tuple[RunResult, ...]:
        """Short runs too: for what happens in the first epochs."""
        return self.results + self.short

    @property
    def first(self) -> RunResult:
        """The first repetition, which the paper draws."""
        return min(self.results, key=lambda r: r.run.repeat)

    @property
    def reached(self) -> int:
        """Epochs that all long runs have finished."""
        return min(len(r.epochs) for r in self.results)

    @property
    def left(self) -> int:
        """How many runs left the plateau, or never were on it."""
        return sum(r.left is not None for r in self.results)

    @property
    def learned(self) -> int:
        """How many runs learned something."""
        return sum(r.learned for r in self.results)

    @property
    def nan_epochs(self) -> list[int]:
        """The first epoch of each run that went NaN."""
        return [r.nan_from for r in self.results if r.nan_from is not None]

    def until(self, epochs: int) -> Repeats:
        """The group as it stood after so many epochs."""
        return Repeats(tuple(r.until(epochs) for r in self.results), self.short)

    def finals(self, values: Callable[[RunResult], Array]) -> list[float]:
        """The mean over the last five epochs of each run."""
        return [r.final(values(r)) for r in self.results]

    def scores(self, split: Split, beta: float = 1.0, *, tuned: bool = False) -> list[float]:
        """The final F_β of each run, at ½ or (`tuned`, on test) at the cut that is best for it on validation rows."""
        return self.finals(lambda r: r.score(split, beta, tuned=tuned))

    def quantiles(self, values: Callable[[RunResult], Array]) -> tuple[Array, Array]:
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
    """Every group of a results folder, and where gradients point along training."""

    groups: tuple[Repeats, ...]
    gradients: tuple[GradientPaths, ...] = ()

    @property
    def datasets(self) -> tuple[str, ...]:
        """Data sets with at least one epoch of one run: the paper's first."""
        there = {g.run.dataset for g in self.groups}
        return tuple(d for d in SETTINGS if d in there) + tuple(sorted(there - set(SETTINGS)))

    def of(self, dataset: str, *kinds: Kind) -> tuple[Repeats, ...]:
        """The groups of a data set, of some kinds or of all, in the order of tables."""
        return tuple(g for g in self.groups if g.run.dataset == dataset and (not kinds or kind(g.run) in kinds))

    def find(self, dataset: str, loss: str, beta: float | None = None, **fields: Any) -> Repeats | None:
        """The group with this loss and otherwise the paper's settings, or those given."""
        wanted = Run(dataset, loss, beta, **fields).label
        return next((g for g in self.of(dataset) if g.run.label == wanted), None)

    def family(self, dataset: str, loss: str) -> list[Repeats]:
        """The groups of a loss under the paper's settings: the four β, or the one without."""
        found = (self.find(dataset, loss, b) for b in (*BETAS, None))
        return [g for g in found if g is not None]

    def main(self, dataset: str) -> list[Repeats]:
        """The groups under the paper's settings, of every loss of tables and figures."""
        return [g for loss in LOSSES for g in self.family(dataset, loss)]

    def __iter__(self) -> Iterator[RunResult]:
        return (r for g in self.groups for r in g.everyone)


def read(folder: Path) -> Results:
    """Read every run of a results folder that has at least one epoch.

    >>> read(Path("nowhere"))
    Traceback (most recent call last):
    FileNotFoundError: There is no results folder nowhere; train some runs first, or give another.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no results folder {folder}; train some runs first, or give another.")
    ledger.check(folder, PROTOCOL)
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for id in ledger.ids(folder):
        result = read_run(Path(folder, f"{id}.csv"))
        if len(result.epochs):
            groups.setdefault((result.run.dataset, result.run.label), []).append(result)
    made = (_group(found) for found in groups.values())
    return Results(tuple(sorted(made, key=lambda g: _order(g.run))), read_gradients(folder))


def read_run(path: Path) -> RunResult:
    """Read one run's file; a ValueError says what is wrong with one that is not a run of this protocol."""
    record = ledger.read(path)
    try:
        run = Run(**record.header["run"])
        counts = {split: (int(n), int(p)) for split, (n, p) in record.header["counts"].items()}
        missing = [name for name in measurement.SPLITS if name not in counts]
        missing += [name for name in measurement.columns() if name not in record.columns]
        if missing:
            raise ValueError(f"no {missing[0]}")
        if Path(*path.parts[-2:]) != Path(f"{run.id}.csv"):  # a copy would count twice
            raise ValueError(f"it is {run.id}")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} does not describe a run of this protocol ({error}); move it out of the results folder."
        ) from error
    return RunResult(run, counts, record.header.get("machine", {}), record.columns)


def _group(found: list[RunResult]) -> Repeats:
    longest = max(r.run.epochs for r in found)
    found.sort(key=lambda r: r.run.repeat)
    return Repeats(
        tuple(r for r in found if r.run.epochs == longest), tuple(r for r in found if r.run.epochs < longest)
    )


def _order(run: Run) -> tuple[Any, ...]:
    place = LOSSES.index(run.loss) if run.loss in LOSSES else len(LOSSES)
    # The noise-robust form of the surrogate stands beside the paper's losses, not among them.
    return (place + 100 * bool(run.q), run.loss, run.q, run.beta or 0.0, run.label)

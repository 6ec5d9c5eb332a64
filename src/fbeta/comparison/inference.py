"""What decisions of test rows say of a score or of a difference: by rows, by blocks of time, or by splits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fbeta.comparison.influence import Counts, influence, pooled, spread
from fbeta.comparison.result import Difference, Estimate
from fbeta.comparison.statistics import (
    EVERYWHERE,
    corrected_t,
    drawn_difference,
    drawn_interval,
    interval,
    mean_interval,
    student,
)
from fbeta.decisions.abstention import ASK
from fbeta.metrics import Metric

#: What a method decides: for each split, which of its test rows it calls positive; those for a person are `ASK`.
Calls = Sequence[NDArray[np.bool_] | NDArray[np.int64]]
#: Ways to test a difference, by name.
TESTS = ("rows", "splits")


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """The rows that were decided: `tested` are the row numbers of each split, `deal` says which deal it belongs to.

    Shape: `y`, `unit` and `weight` (None: all count alike) ``(n,)``, of all rows of the table; rows of one unit are
    drawn together.
    """

    y: NDArray[np.int64]
    unit: NDArray[np.int64]
    tested: Sequence[NDArray[np.int64]]
    deal: Sequence[int]
    weight: NDArray[np.float64] | None = None

    @cached_property
    def _places(self) -> tuple[tuple[int, int], NDArray[np.int64], NDArray[np.bool_]]:
        """How many deals and units there are; the place of each tested row among them, and whether it is positive."""
        rows = np.concatenate(self.tested)
        names, unit = np.unique(self.unit[rows], return_inverse=True)
        deals, deal = np.unique(np.repeat(self.deal, [len(x) for x in self.tested]), return_inverse=True)
        return (len(deals), len(names)), deal * len(names) + unit, self.y[rows] == 1

    def counts(self, called: Calls) -> Counts:
        """The cells of every unit in every deal, ``(deals, units, 4)``: TP, FP, FN and TN of the rows decided."""
        (deals, units), place, positive = self._places
        calls = np.concatenate(called)
        cell = np.where(calls, np.where(positive, 0, 1), np.where(positive, 2, 3))
        sure = calls != ASK
        weight = None if self.weight is None else self.weight[np.concatenate(self.tested)][sure]
        found = np.bincount((4 * place + cell)[sure], weight, 4 * deals * units).astype(np.float64)
        return found.reshape(deals, units, 4)


class Inference(Protocol):
    """Turns decisions of rows into estimates."""

    @property
    def rows(self) -> JudgedRows:
        """The rows that are decided."""

    def score(self, called: Calls) -> Estimate:
        """A score and its interval."""

    def difference(self, one: Calls, other: Calls) -> Difference:
        """The score of one method minus that of another on the same rows, with its tests."""


@dataclass(frozen=True, eq=False)
class ByRows:
    """Every row that was tested is evidence: its influence on the pooled score.

    `held` is the share of the rows that a model is tested on, which the error allows for (see `spread`).
    """

    metric: Metric
    rows: JudgedRows
    margin: float = 0.0
    within: tuple[float, float] = EVERYWHERE
    held: float = 0.0

    def score(self, called: Calls) -> Estimate:
        """The pooled score and its interval."""
        counts = self.rows.counts(called)
        return interval(pooled(self.metric, counts), *spread(influence(self.metric, counts), self.held), self.within)

    def difference(self, one: Calls, other: Calls) -> Difference:
        """The difference of two pooled scores, by the difference of the influences of every unit."""
        first, second = self.rows.counts(one), self.rows.counts(other)
        apart = influence(self.metric, first) - influence(self.metric, second)
        mean = pooled(self.metric, first) - pooled(self.metric, second)
        return student(mean, *spread(apart, self.held), self.margin, "influence of rows", self.within)


@dataclass(frozen=True, eq=False)
class ByBlocks:
    """Blocks of rows that follow one another in time are drawn whole, because neighbours in time are alike."""

    metric: Metric
    rows: JudgedRows
    margin: float = 0.0

    def score(self, called: Calls) -> Estimate:
        """The pooled score and its interval."""
        return drawn_interval(self.metric, self.rows.counts(called).sum(0))

    def difference(self, one: Calls, other: Calls) -> Difference:
        """The difference of two pooled scores over draws of blocks."""
        first, second = (self.rows.counts(called).sum(0) for called in (one, other))
        return drawn_difference(self.metric, first, second, self.margin, "bootstrap of blocks of time")


@dataclass(frozen=True, eq=False)
class BySplits:
    """The mean over splits and the corrected resampled t-test; `share`: rows tested per row that is learned from."""

    metric: Metric
    rows: JudgedRows
    share: float
    margin: float = 0.0
    within: tuple[float, float] = EVERYWHERE

    def _scores(self, called: Calls) -> list[float]:
        alone = zip(self.rows.tested, called, strict=True)
        return [pooled(self.metric, replace(self.rows, tested=[t], deal=[0]).counts([c])) for t, c in alone]

    def score(self, called: Calls) -> Estimate:
        """The mean of the scores of splits and its interval."""
        return mean_interval(self._scores(called), self.share, self.within)

    def difference(self, one: Calls, other: Calls) -> Difference:
        """The mean difference over splits."""
        apart = np.subtract(self._scores(one), self._scores(other)).tolist()
        return corrected_t(apart, self.share, self.within, self.margin)


def blocks(
    time: NDArray[np.float64], group: NDArray[np.int64], tested: Sequence[NDArray[np.int64]]
) -> NDArray[np.int64]:
    """The block of each row: neighbours in time within a test window, n^⅓ of them [kunsch1989].

    All rows of a group are in the block of its first row. Rows of no window have block −1.
    """
    length = max(1, math.ceil(sum(map(len, tested)) ** (1 / 3)))
    block, first = np.full(len(time), -1, dtype=np.int64), 0
    for rows in tested:
        ordered = rows[np.argsort(time[rows], kind="stable")]
        block[ordered] = first + np.arange(len(rows)) // length
        first = int(block.max(initial=-1)) + 1
    kept = np.flatnonzero(block >= 0)
    lowest = np.full(int(group.max(initial=-1)) + 1, len(time), dtype=np.int64)
    np.minimum.at(lowest, group[kept], block[kept])
    block[kept] = lowest[group[kept]]
    return block

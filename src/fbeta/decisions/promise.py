"""Promises: the cuts at which constraints hold in the population, not just on the rows, with a given confidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.binomial import binomial_tail, least_successes
from fbeta.decisions.inputs import Vector
from fbeta.decisions.steps import Steps
from fbeta.metrics import Confusion, Metric
from fbeta.numerals import series

#: Cuts are tested one after another where they call so many times more rows than the one before.
APART = 1.02
#: The chance of an error is shared out among cuts that are so many times further on.
STARTS = 2.0
#: A promise that would need so many times the rows, or more rows than that, is out of reach.
TIMES, ROWS = 1e4, 1e9
#: Cells, by number, of rows of one class, and of those that are called positive.
POSITIVES, NEGATIVES, CALLED = (0, 2), (1, 3), (0, 1)


@dataclass(frozen=True)
class Share:
    r"""That a metric reaches a value, said as the share of some rows that are decided right.

    .. math:: \frac{a \cdot c}{b \cdot c} \ge v \iff (a - v b) \cdot c \ge 0

    If a − vb has one value above 0 and one below, these cells hold right and wrong rows, of which a share q must be
    right: recall, precision, specificity and accuracy are shares as they stand, F₁ ≥ v says that Jaccard ≥ v / (2 − v).
    `right` and `wrong` number the cells TP, FP, FN, TN.

    >>> from fbeta import FBeta
    >>> share = Share.of(FBeta(1), 0.8)
    >>> share.right, share.wrong, round(share.needed, 3)
    ((0,), (1, 2), 0.667)
    """

    metric: Metric
    value: float
    right: tuple[int, ...]
    wrong: tuple[int, ...]
    needed: float

    @classmethod
    def of(cls, metric: Metric, value: float) -> Self:
        """Read a constraint; a metric that is no ratio of counts, or no share, is refused."""
        top, bottom = _coefficients(metric)
        weights = top - value * bottom
        weights[np.abs(weights) < 1e-12 * np.abs(bottom).max()] = 0.0
        right, wrong = np.flatnonzero(weights > 0), np.flatnonzero(weights < 0)
        if any(np.ptp(weights[kind]) > 1e-9 * np.abs(weights).max() for kind in (right, wrong) if kind.size):
            reached = top[bottom > 0] / bottom[bottom > 0]
            low, high = float(reached.min(initial=np.inf)), float(reached.max(initial=-np.inf))
            if low < high and not low <= value <= high:
                cls.of(metric, (low + high) / 2)  # says so if it is none for any value
                raise ValueError(f"What can be promised of {metric} lies from {low:g} to {high:g}; got {value:g}.")
            raise ValueError(_no_share(metric))
        good, bad = (float(np.abs(weights[kind]).max(initial=0.0)) for kind in (right, wrong))
        needed = bad / (good + bad) if good + bad else 0.0
        return cls(metric, value, tuple(right.tolist()), tuple(wrong.tolist()), needed)

    @property
    def cells(self) -> tuple[int, ...]:
        """The cells of the rows that count."""
        return tuple(sorted(self.right + self.wrong))

    @property
    def of_one_class(self) -> bool:
        """Whether rows of one class count alone: then the share of positives does not matter."""
        return self.cells in (POSITIVES, NEGATIVES)

    def __str__(self) -> str:
        return f"{self.metric} ≥ {self.value:g}"

    def holds(self, rows: Steps, chance: float) -> NDArray[np.bool_]:
        r"""The cuts at which it holds in the population, all of them but with at most this chance.

        At a fixed cut the right ones among the rows that count are binomial, given how many count, and a cut passes if
        as many as that have at most the chance p = P(X ≥ right) of occurring where the share is what is needed
        [clopper1934]. Cuts are tested in an order that does not look at targets, and the first that fails ends it
        (fixed sequence [angelopoulos2025]): no chance is lost on how many are tried, and all that pass hold at once.

        Rows of one class: from the cut that is right for all of them on; p falls with the counts, so all cuts on the
        safe side of one pass. Else from the highest cut down, at cuts that call 1, 2, 3 … rows, each about 1.02 times
        those of the one before. The top few say little, so the sequence starts afresh at every doubling, each with its
        part of the chance, and what has passed carries its part on (fallback [wiens2003]); for precision, whose low
        cuts are the least safe, at the first half of the doublings. It is exact where the share crosses what is needed
        once.

        Shape: ``(m + 1,)`` for m distinct scores.
        """
        size = rows.tp.size
        if not self.wrong:
            return np.ones(size, dtype=bool)
        if not self.right:
            return np.zeros(size, dtype=bool)
        if self.of_one_class:
            found = _cell(rows, self.right[0])
            total = (rows.positives, rows.negatives)[self.cells == NEGATIVES]
            passed: NDArray[np.bool_] = found >= least_successes(total, self.needed, chance)
            return passed
        total, precise = float(rows.called[-1]), self.cells == CALLED
        first = math.ceil(math.log(chance) / math.log(self.needed)) if precise else 1
        if first > total:
            return np.zeros(size, dtype=bool)
        at = np.unique(np.searchsorted(rows.called, _ranks(first, total, APART)))
        starts = np.unique(np.searchsorted(rows.called[at], _ranks(first, total, STARTS)))
        starts = starts[: (starts.size + 1) // 2 + 1] if precise else starts
        right, wrong = (sum(_cell(rows, k, at) for k in kind) for kind in (self.right, self.wrong))
        chances = binomial_tail(right, right + wrong, self.needed)
        part, passed, level = np.zeros(at.size), np.zeros(size, dtype=bool), 0.0
        part[starts] = chance / starts.size
        for k, place in enumerate(at):
            level += part[k]
            passed[place] = chances[k] <= level
            level = level if passed[place] else 0.0
        return passed


@dataclass(frozen=True)
class Promise:
    """What holds in the population that the rows come from, with a confidence: metrics and the least that they are.

    >>> print(Promise((("recall", 0.9),), 0.95).explain())
    Promise: with 95 % confidence recall ≥ 0.9 among rows of the same population.
    """

    asked: tuple[tuple[str, float], ...]
    confidence: float
    #: Whether rows that a person decides count as right.
    abstains: bool = False

    def explain(self) -> str:
        """The promise in words."""
        what = series([f"{metric} ≥ {least:g}" for metric, least in self.asked])
        said = f"Promise: with {100 * self.confidence:g} % confidence {what} among rows of the same population"
        return f"{said}; what a person decides is not counted as wrong." if self.abstains else f"{said}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"asked": [list(x) for x in self.asked], "confidence": self.confidence, "abstains": self.abstains}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read `to_dict` back; ValueError for anything else."""
        asked = tuple((str(metric), float(least)) for metric, least in data["asked"])
        confidence = check_confidence(data["confidence"])
        return cls(asked, confidence, bool(data["abstains"]))


@dataclass(frozen=True)
class Trial:
    """What is asked of all constraints together; each has its part of the chance of an error."""

    shares: tuple[Share, ...]
    confidence: float

    @classmethod
    def of(
        cls, at_least: Sequence[tuple[Metric, float]], confidence: float, prevalence: float | None, steps: Steps
    ) -> Self:
        """Read constraints; what the share of positives or weights would change is refused."""
        shares = tuple(Share.of(metric, value) for metric, value in at_least)
        moved = prevalence is not None or not math.isclose(*steps.rows_per_weight)
        for share in shares:
            if moved and not share.of_one_class:
                raise ValueError(
                    f"{share.metric} depends on the share of positives, and that is another than in these rows: "
                    "promise recall or specificity, which do not, or leave out what moves it (prevalence, class "
                    "weights, adapt)."
                )
        return cls(shares, confidence)

    @property
    def chance(self) -> float:
        """The chance of an error that each constraint has."""
        return (1 - self.confidence) / len(self.shares)

    def passes(self, rows: Steps) -> list[NDArray[np.bool_]]:
        """For each constraint the cuts at which it holds."""
        return [share.holds(rows, self.chance) for share in self.shares]

    def check(self, rows: Steps, meet: Callable[[list[NDArray[np.bool_]]], bool]) -> list[NDArray[np.bool_]]:
        """The cuts for each constraint, if they `meet`; else a sentence says what can be promised."""
        found = self.passes(rows)
        if not meet(found):
            raise ValueError(self._instead(rows, meet))
        return found

    def _instead(self, rows: Steps, meet: Callable[[list[NDArray[np.bool_]]], bool]) -> str:
        asked, n1 = series([str(share) for share in self.shares]), rows.positives
        if min(n1, rows.negatives) == 0:
            lacking = "positives" if n1 == 0 else "negatives"
            return f"No cut can promise {asked}: there are no {lacking} among the rows; bring rows of both classes."
        there = f"{n1:,.0f} positive{'s' * (n1 != 1)} among {rows.called[-1]:,} rows"
        said = [f"No cut can promise {asked} with {100 * self.confidence:g} % confidence on {there}."]
        for k, share in enumerate(self.shares):
            best = self._most(rows, k, meet)
            rest = " while the rest is promised" if len(self.shares) > 1 else ""
            if best is not None:
                said.append(f"{share.metric} ≥ {best:g} can be promised{rest}.")
        if needed := self._needed(rows, meet):
            said.append(f"It would take about {needed:,} positives.")
        else:
            said.append("More rows like these would not do: ask for less.")
        return " ".join(said)

    def _most(self, rows: Steps, k: int, meet: Callable[[list[NDArray[np.bool_]]], bool]) -> float | None:
        """The most that can be promised of one constraint while the others are, rounded down."""
        others, share = self.passes(rows), self.shares[k]
        low, high = 0.0, share.value
        for _ in range(14):
            middle = (low + high) / 2
            mine = Share.of(share.metric, middle).holds(rows, self.chance)
            low, high = (middle, high) if meet([*others[:k], mine, *others[k + 1 :]]) else (low, middle)
        rounded = math.floor(low * 1000) / 1000
        return rounded if rounded > 0 else None

    def _needed(self, rows: Steps, meet: Callable[[list[NDArray[np.bool_]]], bool]) -> int | None:
        """About how many positives it would take, if more rows were like these."""
        if rows.positives == 0:
            return None
        low, high = 1.0, 2.0
        while not meet(self.passes(_times(rows, high))):
            low, high = high, 2 * high
            if high > min(TIMES, max(4.0, ROWS / rows.called[-1])):
                return None
        while (high - low) * rows.positives > max(1.0, 0.01 * high * rows.positives):
            middle = (low + high) / 2
            low, high = (low, middle) if meet(self.passes(_times(rows, middle))) else (middle, high)
        return math.ceil(high * rows.positives)


def counted(steps: Steps) -> Steps:
    """The rows behind counts; a weight must be the same for all rows of a class, or no promise can be made."""
    hits, misses = steps.rows_per_weight
    tp, fp = (x if per == 1 else np.rint(x * per) for x, per in ((steps.tp, hits), (steps.fp, misses)))
    close = all(np.allclose(x * per, y) for x, per, y in ((steps.tp, hits, tp), (steps.fp, misses, fp)) if per != 1)
    # Whole where all targets are 0 or 1; as many as there are rows where all weights of a class are one number.
    if not (close and np.array_equal(tp + fp, steps.called) and np.array_equal(np.floor(tp), tp)):
        raise ValueError(
            "A promise counts rows: it takes no weights that differ within a class, and no targets between 0 and 1; "
            "leave out the weights, or confidence."
        )
    return Steps(steps.scores, tp, fp, steps.called, dtype=steps.dtype, kind=steps.kind)


def check_confidence(value: Any) -> float:
    """Refuse what is no confidence."""
    if isinstance(value, bool | str) or not np.isscalar(value) or not 0 < float(value) < 1:  # type: ignore[arg-type]
        raise ValueError(f"confidence must lie between 0 and 1, such as 0.95; got {value!r:.60}.")
    return float(value)  # type: ignore[arg-type]


def _coefficients(metric: Metric) -> tuple[Vector, Vector]:
    """What each cell counts for in the numerator and in the denominator."""
    try:
        each = [np.array([float(x) for x in metric.ratio(Confusion(*unit))]) for unit in np.eye(4).tolist()]
        probe = np.array([3.0, 5.0, 7.0, 11.0])
        whole = np.array([float(x) for x in metric.ratio(Confusion(*probe.tolist()))])
    except (TypeError, ValueError, ArithmeticError):
        raise ValueError(_no_share(metric)) from None
    top, bottom = np.transpose(each)
    if not np.allclose([top @ probe, bottom @ probe], whole) or not (np.isfinite(each).all() and (bottom >= 0).all()):
        raise ValueError(_no_share(metric))
    return top, bottom


def _no_share(metric: Metric) -> str:
    return (
        f"No exact promise can be made of {metric}, which is no share of counted rows. Promise recall, precision, "
        "specificity, accuracy, jaccard or f1."
    )


def _cell(rows: Steps, number: int, at: Any = slice(None)) -> Vector:
    """One of the four cells at some cuts."""
    cells = tuple(rows.confusion(at))
    found: Vector = cells[number]
    return found


def _ranks(first: float, last: float, ratio: float) -> Vector:
    """Whole numbers from the first to the last, each about `ratio` times the one before."""
    steps = np.arange(math.ceil(math.log(max(last / first, 1.0)) / math.log(ratio)) + 1)
    return np.unique(np.minimum(np.ceil(first * ratio**steps), last))


def _times(rows: Steps, factor: float) -> Steps:
    """So many times the rows."""
    tp, fp = np.floor(rows.tp * factor), np.floor(rows.fp * factor)
    return Steps(rows.scores, tp, fp, (tp + fp).astype(np.int64), dtype=rows.dtype, kind=rows.kind)

"""Rows that a person decides: those between two cuts that cost the metric most, or as few as a promise needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta.decisions.inputs import Vector
from fbeta.decisions.promise import Trial
from fbeta.decisions.steps import BLOCK, Steps, score_cells
from fbeta.metrics import Confusion
from fbeta.numerals import count, cut, fixed, percent

if TYPE_CHECKING:
    from fbeta.decisions.problem import Problem

#: As few rows as the promise needs.
AS_PROMISED = "promise"
#: What `outcome` says of a row that a person decides, beside 1 (positive) and 0 (negative).
ASK = -1
#: How often the two ends are moved in turn.
ROUNDS = 20


@dataclass(frozen=True)
class Ends:
    """The cuts from which on rows may be called positive (`high`), and below which negative (`low`), as promised.

    Shape: ``(m + 1,)`` each, for m distinct scores.
    """

    high: NDArray[np.bool_]
    low: NDArray[np.bool_]


@dataclass(frozen=True)
class Asking:
    """The rows that a person decides: from the score `start` on, up to the cut from which rows are called positive.

    `rows` says how many they are of those that chose the cuts, `positives` and `negatives` their weights.
    """

    start: float
    rows: int
    positives: float
    negatives: float

    @classmethod
    def of(cls, steps: Steps, high: int, low: int) -> Self:
        """The rows between two cuts."""
        positives, negatives = (float(x[low] - x[high]) for x in (steps.tp, steps.fp))
        return cls(steps.cut(low), int(steps.called[low] - steps.called[high]), positives, negatives)

    def helped(self, counts: Confusion) -> Confusion:
        """The cells with a person who is right, from those of the other rows."""
        return counts + Confusion(self.positives, 0.0, 0.0, self.negatives)

    def explain(self, scored: tuple[str, float] | None = None) -> str:
        """Which rows a person decides, in words; and the score of all rows if that person is right.

        >>> Asking(0.4, 20, 8.0, 12.0).explain()
        'A person decides from 0.4 up to the cut: 20 of these rows, of which 8 are positive; scores are of the others.'
        """
        if self.rows == 0:
            return "A person decides none of these rows."
        weight = self.positives + self.negatives
        positive = f"{count(self.positives)} are"
        if weight != self.rows:  # rows have weights, or another share of positives
            positive = f"{percent(self.positives / weight if weight else math.nan)} by weight are"
        what = f"{self.rows:,} of these rows, of which {positive} positive"
        said = f"A person decides from {cut(self.start, 3)} up to the cut: {what}; scores are of the others"
        return (
            f"{said}."
            if scored is None
            else f"{said}. Is the person right, all rows have {scored[0]} {fixed(scored[1])}."
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_plain` wrote; ValueError for anything else."""
        made = cls(float(data["start"]), int(data["rows"]), float(data["positives"]), float(data["negatives"]))
        if math.isnan(made.start) or not all(0 <= x < math.inf for x in (made.rows, made.positives, made.negatives)):
            raise ValueError("its rows for a person are none")
        return made


def check_abstain(abstain: Any, confidence: float | None, budget: float | None) -> None:
    """Refuse what is no share of rows, nor what a promise needs."""
    if isinstance(abstain, str):
        if abstain != AS_PROMISED:
            raise ValueError(f"abstain is a share of rows such as 0.05, or {AS_PROMISED!r}; got {abstain!r:.60}.")
        if confidence is None:
            raise ValueError("abstain='promise' hands over what a promise needs: give subject_to and confidence, too.")
    elif isinstance(abstain, bool) or not np.isscalar(abstain) or not 0 <= float(abstain) < 1:  # type: ignore[arg-type]
        raise ValueError(f"abstain is a share of rows from 0, below 1; got {abstain!r:.60}.")
    if budget is not None:
        raise ValueError("budget limits alerts of one cut; with abstain leave it out.")


def promised_ends(trial: Trial, rows: Steps, abstain: float | str | None) -> Ends:
    """Where cuts may lie so that everything holds; ValueError, with what can be promised, if there are none.

    Where a person decides some rows, what is handed over is not wrong: recall counts the positives below the lower
    end for missed, precision and specificity the negatives above the upper one for wrongly called. So each constraint
    is about one end.
    """
    if abstain is None:
        both = np.logical_and.reduce(trial.check(rows, lambda found: bool(np.logical_and.reduce(found).any())))
        return Ends(both, both)
    for share in trial.shares:
        if share.wrong not in ((), (1,), (2,)):
            raise ValueError(
                f"Where a person decides some rows, {share.metric} counts errors on both sides, and no exact promise "
                "can be made of it: promise recall, precision or specificity."
            )

    def ends(found: list[NDArray[np.bool_]]) -> Ends:
        open_ended = np.ones(rows.tp.size, dtype=bool)
        parts = [
            [mask for mask, share in zip(found, trial.shares, strict=True) if share.wrong == wrong]
            for wrong in ((1,), (2,))
        ]
        high, low = (np.logical_and.reduce([open_ended, *part]) for part in parts)
        return Ends(high, low)

    found = ends(trial.check(rows, lambda masks: fewest(rows, ends(masks)) is not None))
    pair = fewest(rows, found)
    total = int(rows.called[-1])
    if pair is not None and not isinstance(abstain, str) and _asked(rows, *pair) > _most(abstain, total):
        least = _asked(rows, *pair) / total
        raise ValueError(
            f"The promise needs a person for {percent(least)} of the rows: allow that many, as "
            f"abstain={np.ceil(least * 1000) / 1000:g}, or abstain='promise', which hands over as few as it takes."
        )
    return found


def fewest(rows: Steps, ends: Ends) -> tuple[int, int] | None:
    """The upper and the lower end with the fewest rows between them; None if there are none."""
    places = np.arange(rows.tp.size)
    upper = np.maximum.accumulate(np.where(ends.high, places, -1))
    sound = ends.low & (upper >= 0)
    if not sound.any():
        return None
    width = np.where(sound, rows.called - rows.called[np.maximum(upper, 0)], rows.called[-1] + 1)
    low = int(np.argmin(width))
    return int(upper[low]), low


def best_ends(problem: Problem, steps: Steps) -> tuple[int, int]:
    """The two cuts, by number, between which a person decides: if rightly, all rows score highest by `steps`.

    So these are the rows that cost the metric most. For each upper end as many rows below it are handed over as
    allowed, and none; from the best of these on the ends are moved in turn. That is exact for metrics that only rise
    when wrong decisions become right, such as F_β and costs; others gain by each move. With ``abstain="promise"`` the
    rows between are the fewest that a promise needs; where one cut can keep it, the metric chooses among those.
    """
    abstain, ends = problem.constraints.abstain, problem.ends
    called, places = steps.called, np.arange(steps.tp.size)
    most = 0 if isinstance(abstain, str) or abstain is None else _most(abstain, int(called[-1]))
    if isinstance(abstain, str) and ends is not None and not (ends.high & ends.low).any():
        pair = fewest(steps, ends)
        if pair is not None:
            return pair

    def values(high: NDArray[np.intp], low: NDArray[np.intp]) -> Vector:
        found = np.empty(high.size)
        for k in range(0, high.size, BLOCK):
            at = high[k : k + BLOCK], low[k : k + BLOCK]
            part = score_cells(problem.metric, righted(steps, *at))
            sound = ~np.isnan(part)
            if problem.constraints.at_least:
                sound &= problem.constraints.kept(decided(problem.steps, *at))
            if ends is not None:
                sound &= ends.high[at[0]] & ends.low[at[1]]
            found[k : k + BLOCK] = np.where(sound, part, -np.inf)
        return found

    # With no ties a cut calls as many rows as its number says.
    last = np.minimum(places + most, places[-1])
    if called[-1] != places[-1]:
        last = np.searchsorted(called, called + most, side="right") - 1
    none, wide = values(places, places), values(places, last)
    chosen: tuple[float, int, int] = (-np.inf, 0, 0)
    for start, found in ((places, none), (last, wide)):
        high = int(np.argmax(found))
        low, score = int(start[high]), float(found[high])
        for _ in range(ROUNDS if most and np.isfinite(score) else 0):
            lows = np.arange(high, last[high] + 1)
            by_low = values(np.full(lows.size, high), lows)
            low = int(lows[np.argmax(by_low)])
            highs = np.arange(low, np.searchsorted(called, called[low] - most) - 1, -1)
            by_high = values(highs, np.full(highs.size, low))
            high = int(highs[np.argmax(by_high)])
            if by_high.max() <= score:
                break
            score = float(by_high.max())
        chosen = max(chosen, (score, high, low), key=lambda x: x[0])
    if not np.isfinite(chosen[0]):
        raise ValueError(
            "No two cuts meet the constraints on the rows between them: ask for less, or abstain from more."
        )
    return chosen[1:]


def decided(steps: Steps, high: Any, low: Any) -> Confusion:
    """The cells of the rows that are decided: called from the upper end on, spared below the lower one."""
    n1, n0 = steps.positives, steps.negatives
    return Confusion(steps.tp[high], steps.fp[high], n1 - steps.tp[low], n0 - steps.fp[low])


def righted(steps: Steps, high: Any, low: Any) -> Confusion:
    """The cells of all rows, where a person is right about those between the two cuts."""
    tp, fp = steps.tp[low], steps.fp[high]
    return Confusion(tp, fp, steps.positives - tp, steps.negatives - fp)


def _asked(rows: Steps, high: int, low: int) -> int:
    return int(rows.called[low] - rows.called[high])


def _most(abstain: float, rows: int) -> int:
    """At most so many rows may be handed over."""
    return int(np.floor(float(abstain) * rows + 1e-9))

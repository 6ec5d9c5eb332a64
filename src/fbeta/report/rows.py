"""The table of methods, line by line: what the page and the terminal both show."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fbeta.comparison.result import Candidate, Comparison, Interval
from fbeta.report import words

Pair = tuple[float, float]

UNKNOWN = Interval(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Row:
    """One method: numbers to sort and draw by, words for the rest; `index` is its place in the comparison."""

    index: int
    name: str
    detail: str
    winner: bool
    baseline: bool
    score: Interval
    at_half: Interval
    difference: Interval
    p: float
    inner: float
    brier: float
    cut: float
    cuts: str
    seconds: float
    remark: str

    @property
    def role(self) -> str:
        """What it is in the comparison, in a word or two."""
        roles = ["chosen"] * self.winner + ["baseline"] * self.baseline
        return " · ".join(roles)


def rows(comparison: Comparison) -> list[Row]:
    """One row for each method, the best on out-of-fold rows first: so they were chosen, and test rows rank nobody.

    >>> from fbeta.comparison.result import Table
    >>> rows(Comparison(Table("t", "y", "1", 9, 2, 1), "mcc", "MCC", (), "", "", ""))
    []
    """
    made = [_row(comparison, i, c) for i, c in enumerate(comparison.candidates)]
    return sorted(made, key=lambda row: math.inf if math.isnan(row.inner) else -row.inner)


def _row(comparison: Comparison, index: int, c: Candidate) -> Row:
    d = c.difference
    said = c.name.lower()  # most names are made of model and loss already
    detail = [part for part in (c.model, c.loss) if part.lower() not in said] + [f"{c.rule} cut"] * bool(
        c.rule
    )
    return Row(
        index=index,
        name=c.name,
        detail=" · ".join(detail),
        winner=c.name == comparison.winner,
        baseline=c.name == comparison.baseline,
        score=c.score,
        at_half=c.at_half,
        difference=UNKNOWN if d is None else Interval(d.mean, d.low, d.high),
        p=math.nan if d is None else d.p,
        inner=c.inner if c.outcomes else math.nan,
        brier=c.brier if c.outcomes else math.nan,
        cut=middle_cut(c),
        cuts=_cuts(c),
        seconds=c.seconds,
        remark=_remark(c),
    )


def scale(lines: Sequence[Row], pick: Callable[[Row], Sequence[Interval]], *others: float) -> Pair:
    """One scale for the bars of some columns: where those methods lie that nothing went wrong with."""
    sound = [row for row in lines if not row.remark] or lines
    return window(
        [v for row in sound for i in pick(row) for v in (i.low, i.mean, i.high)] + list(others), 0.1
    )


def window(values: Sequence[float], pad: float = 0.05) -> Pair:
    """The range that finite values fill, a little wider.

    >>> window([1.0, 2.0], 0.5)
    (0.5, 2.5)
    """
    kept = [v for v in values if math.isfinite(v)]
    low, high = (min(kept), max(kept)) if kept else (0.0, 1.0)
    room = (high - low) * pad if high > low else abs(high) * 0.05 or 1.0
    return low - room, high + room


def middle_cut(c: Candidate) -> float:
    """The median of a method's cuts over the splits: one of them may be infinite."""
    return statistics.median(o.cut for o in c.outcomes) if c.outcomes else math.nan


def _cuts(c: Candidate) -> str:
    values = [o.cut for o in c.outcomes]
    ends = [words.cut(x, 3) for x in (min(values), max(values))] if values else ["", ""]
    return "" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _remark(c: Candidate) -> str:
    """What went wrong and in how many splits; nothing if nothing did."""
    bad = [o for o in c.outcomes if o.collapse]
    if not bad:
        return ""
    return (
        bad[0].collapse
        if len(c.outcomes) == 1
        else f"{bad[0].collapse} (in {len(bad)} of {len(c.outcomes)} splits)"
    )


def tests(comparison: Comparison) -> str:
    """The names of the tests behind the p values, and what so many of them show by chance.

    >>> from fbeta.comparison.result import Table
    >>> tests(Comparison(Table("t", "y", "1", 9, 2, 1), "mcc", "MCC", (), "", "", ""))
    ''
    """
    found = [c.difference.test for c in comparison.candidates if c.difference]
    named = ", ".join(dict.fromkeys(found))
    if len(found) < 2:
        return named
    return (
        f"{named}, every method by itself: where nothing differs, {0.05 * len(found):.2g} of {len(found)} such tests "
        "fall below 0.05 by chance"
    )


def beforehand(comparison: Comparison) -> str:
    """What was fixed before anything was trained, and what the winner was chosen by."""
    parts = [f"the metric ({comparison.title})"]
    if comparison.baseline:
        parts.append(f"the baseline ({comparison.baseline})")
    if comparison.seeds:
        parts.append(f"{comparison.seeds} outer split{'s' * (comparison.seeds != 1)}")
    if comparison.folds:
        parts.append(f"{comparison.folds} inner folds, the same for every method")
    listed = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
    chosen = " Cuts and the method were chosen on out-of-fold rows; the test rows of a split had no say in its scores"
    chosen += ", nor in the choice that the recommendation goes by." if comparison.choice else "."
    chosen = chosen if comparison.candidates else ""
    return f"Fixed before training: {listed}.{chosen}"


def about(comparison: Comparison) -> str:
    """The data in a sentence."""
    t = comparison.table
    share = words.percent(t.positives / t.rows) if t.rows else words.NONE
    positives = f"{words.count(t.positives)} of them ({share})"
    columns = f"{words.count(t.columns)} column{'s' * (t.columns != 1)}"
    return f"{words.count(t.rows)} rows, {columns}; {t.target} = {t.positive} in {positives}"

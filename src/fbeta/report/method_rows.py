"""The methods of a comparison as rows of its table and entries of its pictures, and what is said about them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fbeta.comparison.result import Candidate, Comparison, Difference, Interval
from fbeta.metrics import Confusion
from fbeta.report import numerals
from fbeta.report.chart import Pair, window

UNKNOWN = Difference(math.nan, math.nan, math.nan, math.nan, "")
#: Colours of the page; the first belongs to the baseline's loss. Further ones repeat with another dash.
COLOURS = 7


@dataclass(frozen=True)
class MethodRow:
    """One method; in pictures it has a colour for its loss and rule, a dash and a shape for its model.

    `index` is its place in the comparison. Numbers are NaN where they are unknown.
    """

    index: int
    candidate: Candidate
    winner: bool
    baseline: bool
    colour: int
    dash: int

    @property
    def name(self) -> str:
        """The method's name."""
        return self.candidate.name

    @property
    def detail(self) -> str:
        """What its name does not say."""
        c = self.candidate  # most names are made of model and loss already
        parts = [part for part in (c.model, c.loss) if part.lower() not in c.name.lower()]
        return " · ".join(parts + [f"{c.rule} cut"] * bool(c.rule))

    @property
    def role(self) -> str:
        """What it is in the comparison, in a word or two."""
        return " · ".join(["chosen"] * self.winner + ["baseline"] * self.baseline)

    @property
    def difference(self) -> Difference:
        """Its score minus the baseline's."""
        return self.candidate.difference or UNKNOWN

    @property
    def inner(self) -> float:
        """Its score on out-of-fold rows, by which methods are chosen."""
        return self.candidate.inner if self.candidate.outcomes else math.nan

    @property
    def brier(self) -> float:
        """Its Brier score."""
        return self.candidate.brier if self.candidate.outcomes else math.nan

    @property
    def cut(self) -> float:
        """The median of its cuts over the splits: one of them may be infinite."""
        cuts = [o.cut for o in self.candidate.outcomes]
        return statistics.median(cuts) if cuts else math.nan

    @property
    def cuts(self) -> str:
        """The range of its cuts, where they differ."""
        cuts = [o.cut for o in self.candidate.outcomes] or [math.nan]
        low, high = numerals.cut(min(cuts), 3), numerals.cut(max(cuts), 3)
        return "" if low == high else f"{low} to {high}"

    @property
    def remark(self) -> str:
        """What went wrong and in how many splits; empty if nothing did."""
        outcomes = self.candidate.outcomes
        bad = [o.collapse for o in outcomes if o.collapse]
        if not bad or len(outcomes) == 1:
            return "".join(bad)
        return f"{bad[0]} (in {len(bad)} of {len(outcomes)} splits)"

    @property
    def held(self) -> tuple[float, ...]:
        """Its score after each epoch, on held-out rows where there are some."""
        return self.candidate.epochs.held or self.candidate.epochs.score

    @property
    def pooled(self) -> Confusion:
        """The decisions of all splits together, each with its own cut."""
        o = self.candidate.outcomes
        return Confusion(*(sum(getattr(x, cell) for x in o) for cell in ("tp", "fp", "fn", "tn")))

    @property
    def operates(self) -> Pair | None:
        """Its place in ROC space with its own cuts."""
        c = self.pooled
        return (c.fpr, c.tpr) if self.candidate.outcomes and c.positives and c.negatives else None


def method_rows(comparison: Comparison) -> list[MethodRow]:
    """One row per method, in the order of the comparison.

    >>> from fbeta.comparison.result import Table
    >>> method_rows(Comparison(Table("t", "y", "1", 9, 2, 1), "mcc", "MCC", (), "", "", ""))
    []
    """
    first = sorted(comparison.candidates, key=lambda c: c.name != comparison.baseline)
    looks = list(dict.fromkeys((c.loss, c.rule) for c in first))
    models = list(dict.fromkeys(c.model for c in first))
    rows = []
    for i, c in enumerate(comparison.candidates):
        rounds, colour = divmod(looks.index((c.loss, c.rule)), COLOURS)
        dash = (models.index(c.model) + rounds) % 4
        rows.append(MethodRow(i, c, c.name == comparison.winner, c.name == comparison.baseline, colour, dash))
    return rows


def ranked(rows: Sequence[MethodRow]) -> list[MethodRow]:
    """The best on out-of-fold rows first: methods are chosen by these, and test rows rank nobody."""
    return sorted(rows, key=lambda row: math.inf if math.isnan(row.inner) else -row.inner)


def digits(rows: Sequence[MethodRow]) -> int:
    """How many decimals the scores of a table need."""
    return numerals.digits_for(x.mean for row in rows for x in (row.candidate.score, row.candidate.at_half))


def scale(
    rows: Sequence[MethodRow], pick: Callable[[MethodRow], Sequence[Interval | Difference]], *others: float
) -> Pair:
    """One scale for the bars of some columns: where those methods lie that had no problem."""
    sound = [row for row in rows if not row.remark] or rows
    ends = [v for row in sound for i in pick(row) for v in (i.low, i.mean, i.high)]
    return window([*ends, *others], 0.1)


def p_value_note(comparison: Comparison) -> str:
    """The names of the tests behind the p values, and what to expect of so many.

    >>> from fbeta.comparison.result import Table
    >>> p_value_note(Comparison(Table("t", "y", "1", 9, 2, 1), "mcc", "MCC", (), "", "", ""))
    ''
    """
    found = [c.difference.test for c in comparison.candidates if c.difference]
    named = ", ".join(dict.fromkeys(found))
    if len(found) < 2:
        return named
    return (
        f"{named}, one per method and not adjusted: if no method differed, {0.05 * len(found):.2g} of {len(found)} "
        "tests would fall below 0.05 by chance"
    )


def protocol(comparison: Comparison) -> str:
    """What was fixed before anything was trained, and what the winner was chosen by."""
    parts = [f"the metric ({comparison.title})"]
    if comparison.baseline:
        parts.append(f"the baseline ({comparison.baseline})")
    if comparison.seeds:
        parts.append(f"{comparison.seeds} outer split{'s' * (comparison.seeds != 1)}")
    if comparison.folds:
        parts.append(f"{comparison.folds} inner folds, the same for every method")
    listed = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
    fixed = f"Fixed before training: {listed}."
    if not comparison.candidates:
        return fixed
    also = " or the choice behind the recommendation" if comparison.choice else ""
    return (
        f"{fixed} Cuts and the method were chosen on out-of-fold rows; the test rows of a split did not influence its "
        f"scores{also}."
    )


def about(comparison: Comparison) -> str:
    """The data in a sentence."""
    t = comparison.table
    share = numerals.percent(t.positives / t.rows) if t.rows else numerals.NONE
    columns = f"{numerals.count(t.columns)} column{'s' * (t.columns != 1)}"
    positives = f"{t.target} = {t.positive} in {numerals.count(t.positives)} of them ({share})"
    return f"{numerals.count(t.rows)} rows, {columns}; {positives}"

"""The methods of a comparison as rows of its table and entries of its pictures, and what is said about them."""

import math
import statistics
from collections.abc import Sequence

from fbeta import numerals
from fbeta.comparison.result import Comparison, Difference, Step
from fbeta.metrics import Confusion
from fbeta.report.chart import Key, Pair, window

UNKNOWN = Difference(math.nan, math.nan, math.nan, math.nan, "")
#: How many colours the page has; the first belongs to the baseline's loss. Further ones repeat with another dash.
COLOUR_COUNT = 7


class MethodRow:
    """One method: its place in the comparison, what its row says, and its entry in the pictures' legend.

    Unknown numbers are NaN. `detail` is what the name does not say, `remark` what went wrong, `inner` the score on
    out-of-fold rows, `cut` the median over splits (one may be infinite), `held` the score after each epoch, and
    `pooled` the decisions of all splits, each with its own cut, unless a class is missing. The colour stands for loss
    and rule, the dash and the shape of points for the model.
    """

    def __init__(self, comparison: Comparison, index: int, colour: int, shape: int) -> None:
        c = comparison.candidates[index]
        self.index, self.candidate, self.name = index, c, c.name
        self.advised, self.baseline = c.name == comparison.advised, c.name == comparison.baseline
        unsaid = [part for part in (c.model, c.loss) if part.lower() not in c.name.lower()]
        self.detail = " · ".join(unsaid + [f"{c.rule} cut"] * bool(c.rule))
        bad = [o.collapse for o in c.outcomes if o.collapse]
        splits = f" (in {len(bad)} of {len(c.outcomes)} splits)" if bad and len(c.outcomes) > 1 else ""
        self.remark = f"{bad[0]}{splits}" if bad else ""
        self.difference = c.difference or UNKNOWN
        self.inner, self.brier = (c.inner, c.brier) if c.outcomes else (math.nan, math.nan)
        self.cuts = [o.cut for o in c.outcomes] or [math.nan]
        self.cut = statistics.median(self.cuts)
        self.held = c.epochs.held or c.epochs.score
        pooled = Confusion(*(sum(getattr(o, cell) for o in c.outcomes) for cell in ("tp", "fp", "fn", "tn")))
        self.pooled = pooled if pooled.positives and pooled.negatives else None
        self.colour, look = f"c{colour}", f"c{colour}{' best' * self.advised}"
        self.key = Key(c.name, f"s d{shape} {look}", f"p {look}", shape)


def method_rows(comparison: Comparison) -> list[MethodRow]:
    """One row per method, in the order of the comparison."""
    first = sorted(comparison.candidates, key=lambda c: c.name != comparison.baseline)
    looks = list(dict.fromkeys((c.loss, c.rule) for c in first))
    models = list(dict.fromkeys(c.model for c in first))
    rows = []
    for index, c in enumerate(comparison.candidates):
        rounds, colour = divmod(looks.index((c.loss, c.rule)), COLOUR_COUNT)
        rows.append(MethodRow(comparison, index, colour, (models.index(c.model) + rounds) % 4))
    return rows


def ranked(rows: Sequence[MethodRow]) -> list[MethodRow]:
    """The best on out-of-fold rows first: methods are chosen by these, and never ranked by test rows."""
    return sorted(rows, key=lambda row: math.inf if math.isnan(row.inner) else -row.inner)


def digits(rows: Sequence[MethodRow]) -> int:
    """How many decimals the scores of a table need: three, unless all are tiny or large."""
    scores = [x.mean for row in rows for x in (row.candidate.score, row.candidate.at_half)]
    largest = max((abs(x) for x in scores if math.isfinite(x)), default=1.0)
    if largest >= 100:
        return 1
    return 3 if largest == 0 or largest >= 0.1 else min(9, 2 - math.floor(math.log10(largest)))


def scale(rows: Sequence[MethodRow], *columns: str, also: float = math.nan) -> Pair:
    """One scale for the bars of some columns: where those methods lie that had no problem, and a number besides."""
    sound = [row for row in rows if not row.remark] or rows
    bars = [getattr(row.candidate, column) or UNKNOWN for row in sound for column in columns]
    return window([also, *(end for bar in bars for end in (bar.low, bar.mean, bar.high))], 0.1)


def gain_scale(steps: Sequence[Step]) -> Pair:
    """One scale for the bars of gains."""
    return window([0.0, *(end for step in steps if (g := step.gain) for end in (g.low, g.mean, g.high))], 0.1)


def matrix(rows: Sequence[MethodRow]) -> tuple[list[str], list[str], dict[tuple[str, str], MethodRow]]:
    """Losses, models, and the method of each model and loss: losses are compared within a model."""
    first = sorted(rows, key=lambda row: row.index)
    losses = list(dict.fromkeys(row.candidate.loss for row in first))
    models = list(dict.fromkeys(row.candidate.model for row in first))
    return losses, models, {(row.candidate.model, row.candidate.loss): row for row in first}


def tests(comparison: Comparison) -> str:
    """How differences were tested, what their words mean, and what this table could show."""
    found = [c.difference for c in comparison.candidates if c.difference]
    if not found:
        return ""
    named = numerals.series(list(dict.fromkeys(d.test for d in found)))
    adjusted = f", adjusted for {len(found)} of them (Holm)" if len(found) > 1 else ""
    sentences = [f"Differences are tested by the {named}{adjusted}; equivalent: surely within ±{comparison.margin:g}."]
    if math.isfinite(comparison.detectable):
        shown = numerals.short(comparison.detectable, 2)
        sentences.append(f"The smallest difference that this table would show four times in five is about {shown}.")
    return " ".join(sentences)


def windows(comparison: Comparison) -> list[str]:
    """By time, what each test window says by itself: the advised method, and the baseline."""
    if comparison.table.time is None:
        return []
    shown = dict.fromkeys(name for name in (comparison.advised, comparison.baseline) if name)
    scores = {name: [numerals.fixed(o.score) for o in comparison.candidate(name).outcomes] for name in shown}
    return [f"Test windows, oldest first, {name}: {', '.join(each)}." for name, each in scores.items()]


def protocol(comparison: Comparison) -> str:
    """What was fixed before anything was trained, and what the winner was chosen by."""
    parts = [f"the metric ({comparison.title})"]
    if comparison.baseline:
        parts.append(f"the baseline ({comparison.baseline})")
    if comparison.seeds:
        parts.append(f"{comparison.seeds} outer split{'s' * (comparison.seeds != 1)}")
    if comparison.folds:
        parts.append(f"{comparison.folds} inner folds, the same for every method")
    fixed = f"Fixed before training: {numerals.series(parts)}."
    if not comparison.candidates:
        return fixed
    if comparison.trials > 1:
        fixed += (
            f" Every model with settings to draw was tried with {comparison.trials} of them in each split, of which "
            "out-of-fold rows chose."
        )
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

"""What to do, what it gains and how sure that is: what comes first in the terminal and on the page."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from fbeta import numerals
from fbeta.comparison.result import Comparison, Difference, Step
from fbeta.comparison.verdict import BETTER, EQUIVALENT, NO_SIGNAL, UNDECIDED, WORSE
from fbeta.metrics import Confusion
from fbeta.report.method_rows import MethodRow, method_rows

CHANGES = {"cut": "its best cut", "loss": "its best loss", "model": "best of all models"}


class Advice(NamedTuple):
    """Three sentences: what is found at which price, what to take, and how sure the gain is."""

    found: str
    take: str
    sure: str


def advice(comparison: Comparison) -> Advice:
    """What a comparison comes to, for somebody who has a minute."""
    row = advised(comparison)
    if comparison.verdict == NO_SIGNAL and comparison.constant is not None:
        found = f"No signal: nothing here is reliably better than calling {comparison.constant.name}."
        return Advice(found, "Take none of these methods: bring more rows or better columns.", "")
    if row is None:
        return Advice("", "", "")
    return Advice(_found(comparison, row), _take(comparison, row), _sure(comparison))


def advised(comparison: Comparison) -> MethodRow | None:
    """The method to take, if there is one."""
    return next((row for row in method_rows(comparison) if row.advised), None)


def rates(c: Confusion, *others: Confusion) -> tuple[str, str, str]:
    """Of so many positives, rows and flags: how many are caught, flagged and right; `others` stand beside them."""
    flags = [x.tp + x.fp for x in (c, *others)]
    caught = _of([x.tpr for x in (c, *others)])
    flagged = _of([n / x.total for n, x in zip(flags, (c, *others), strict=True)])
    right = _of([x.tp / n if n else math.nan for n, x in zip(flags, (c, *others), strict=True)])
    return caught, flagged, right


def counted(step: Step) -> Confusion:
    """The test rows of a step."""
    return Confusion(step.tp, step.fp, step.fn, step.tn)


def stays(steps: Sequence[Step], at: int) -> bool:
    """Whether a step took what was there before it."""
    return at > 0 and steps[at].change != "cut" and steps[at].picks == steps[at - 1].picks


def step_rates(steps: Sequence[Step]) -> list[tuple[str, str]]:
    """How many are caught and flagged at each step, out of as many."""
    cells = [counted(step) for step in steps]
    return [rates(c, *cells)[:2] for c in cells]


def changed(steps: Sequence[Step], at: int) -> str:
    """What a step is, in words."""
    step = steps[at]
    if step.change == "default":
        return f"today, at ½: {step.method}"
    what = f"+ {CHANGES[step.change]}"
    if step.change == "cut":
        return what
    return f"{what}: none better" if stays(steps, at) else f"{what}: {step.method}"


def end(comparison: Comparison) -> str:
    """Why the advice is not the last step, where it is another or none."""
    if comparison.steps and comparison.verdict == NO_SIGNAL and comparison.constant is not None:
        return f"No line is reliably better than calling {comparison.constant.name}, so none is advised."
    last = comparison.steps[-1].method if comparison.steps else ""
    if comparison.advised != comparison.baseline or last in ("", comparison.baseline):
        return ""
    return (
        "The last line is what choosing in each split would take. It is not reliably better than "
        f"{comparison.baseline}, which was fixed beforehand, so that is advised."
    )


def apart(found: Difference, digits: int = 3) -> str:
    """A difference with its interval."""
    return f"{numerals.signed(found.mean, digits)} ({numerals.between(found.low, found.high, digits, sign=True)})"


def share(part: float, whole: float) -> str:
    """A share in whole percent."""
    return f"{100 * part / whole:.0f} %" if whole else numerals.NONE


def _found(comparison: Comparison, row: MethodRow) -> str:
    if row.pooled is None:
        return ""
    table, now = comparison.table, [counted(step) for step in comparison.steps[:1]]
    caught, flagged, _ = rates(row.pooled, *now)
    said = f"Catches {caught} rows with {table.target} = {table.positive} and flags {flagged} rows"
    asked = statistics.fmean(o.asked for o in row.candidate.outcomes)
    person = f" Of 100 rows, {100 * asked:.0f} are left to a person and not counted here." if asked else ""
    if not now:
        return f"{said}.{person}"
    was, took, _ = (text.split(" of ")[0] for text in rates(now[0], row.pooled))
    return f"{said} (at the usual probability ½: {was} and {took}).{person}"


def _take(comparison: Comparison, row: MethodRow) -> str:
    cut = numerals.cut(row.cut, 2)
    said = f"Take “{row.name}”"
    if math.isfinite(row.cut):
        said += f", and call a row positive from a probability of about {cut} on"
    if not row.baseline:
        better = comparison.choice is not None and comparison.choice.difference.word == BETTER
        return f"{said}: it is reliably better than {comparison.baseline}." if better else f"{said}."
    others = len(comparison.candidates) - 1
    if not others:
        return f"{said}."
    if any(c.difference is not None and c.difference.word == BETTER for c in comparison.candidates):
        return f"{said}. To choose among {others} others by rows held out is not reliably better."
    none = f"None of {others} other methods is" if others > 1 else "The other method is not"
    margin = numerals.short(comparison.margin)
    if comparison.verdict == EQUIVALENT and (comparison.choice is None or comparison.winner == row.name):
        return f"{said}. {none} better by {margin} or more."
    return f"{said}. {none} reliably better."


def _sure(comparison: Comparison) -> str:
    gain, title = comparison.gain, comparison.title
    if gain is None or not gain.word or math.isnan(gain.mean):
        return ""
    said = f"Against deciding at probability ½, as libraries do, the score {title} changes by {apart(gain)}"
    words = {
        BETTER: "a reliable gain.",
        WORSE: "reliably a loss.",
        EQUIVALENT: f"surely less than {numerals.short(comparison.margin)} either way: no gain that matters.",
        UNDECIDED: "which could be chance.",
    }
    return f"{said}: {words[gain.word]}" if gain.word == BETTER else f"{said}, {words[gain.word]}"


def _of(shares: Sequence[float]) -> str:
    """The first of some shares, out of 100, or of as many as are needed to see the smallest: "76 of 100".

    >>> _of([0.764, 0.451]), _of([0.0021, 0.0013])
    ('76 of 100', '21 of 10,000')
    """
    known = [x for x in shares if x > 0]
    if not known or math.isnan(shares[0]):
        return f"{0 if shares[0] == 0 else numerals.NONE} of 100"
    whole = 100
    while min(known) * whole < 3 and whole < 1_000_000:
        whole *= 10
    return f"{numerals.count(round(shares[0] * whole))} of {numerals.count(whole)}"

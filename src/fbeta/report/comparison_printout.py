"""A comparison in the terminal."""

import math
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from fbeta import numerals
from fbeta.comparison.result import Comparison, Difference, Estimate, NoSkill
from fbeta.comparison.verdict import BETTER, EQUIVALENT, WORSE
from fbeta.report import method_rows
from fbeta.report.advice import advice, changed, end, stays
from fbeta.report.chart import Pair
from fbeta.report.console import indented, plain, table
from fbeta.report.method_rows import MethodRow

#: The sign of what a difference is.
SIGNS = {BETTER: "▲", WORSE: "▼", EQUIVALENT: "="}
#: Letters of a bar.
PLACES = 11


def terminal(comparison: Comparison, *, methods: bool = False) -> RenderableType:
    """Lay out a comparison for a terminal of 80 columns or more, with a line for each of its `methods` if asked for.

    Print it with rich's `Console`. What was noted about the table is said when it is read, and not here.

    >>> from fbeta.comparison.result import TableFacts
    >>> table = TableFacts("fraud", "is_fraud", "1", 1000, 20, 5)
    >>> comparison = Comparison(table, "fbeta:beta=2", "F₂", (), "", "", "Nothing was run.")
    >>> Console(width=80).print(terminal(comparison))
    fraud by F₂
    1,000 rows, 5 columns; is_fraud = 1 in 20 of them (2.00 %)
    <BLANKLINE>
    Nothing was run.
    """
    rows = method_rows.ranked(method_rows.method_rows(comparison))
    name, title = plain(comparison.table.name, "bold"), plain(comparison.title, "bold")
    parts: list[RenderableType] = [Text.assemble(name, " by ", title), plain(method_rows.about(comparison), "dim"), ""]
    if not rows:
        return Group(*parts, plain(comparison.recommendation))
    digits, short = method_rows.digits(rows), advice(comparison)
    if any(short):
        parts += [plain(" ".join(filter(None, short)), "bold"), ""]
    if comparison.steps:
        parts += [_steps(comparison, digits), *filter(None, [end(comparison)]), ""]
    parts += [_matrix(comparison.title, rows, digits), ""]
    if methods:
        parts += [_Methods(comparison.title, rows, comparison.constant), ""]
    remarks = [Text.assemble(plain(r.name, "yellow"), plain(f": {r.remark}")) for r in rows if r.remark]
    if remarks:
        parts += [*map(indented, remarks), ""]
    note = f"{method_rows.protocol(comparison)} {method_rows.tests(comparison)}".rstrip()
    said = plain(comparison.recommendation, "" if any(short) else "bold")
    promise = [comparison.promise] if comparison.promise else []
    return Group(*parts, said, *map(plain, [*promise, *method_rows.windows(comparison)]), plain(note, "dim"))


def _steps(comparison: Comparison, digits: int) -> RenderableType:
    """The steps from today's default to what was chosen, each with what it adds."""
    steps = comparison.steps
    scale = method_rows.gain_scale(steps)
    made = table()
    made.add_column("", overflow="fold", min_width=18)
    made.add_column(plain(comparison.title), justify="right", overflow="fold", max_width=12)
    for head in ("gain", axis(scale), "95 % interval", ""):
        made.add_column(head, no_wrap=True, justify="right" if head == "gain" else "left")
    if comparison.constant is not None:
        made.add_row(plain(comparison.constant.name, "dim"), numerals.fixed(comparison.constant.score.mean, digits))
    for at, step in enumerate(steps):
        cells: list[RenderableType] = [plain(changed(steps, at)), numerals.fixed(step.score.mean, digits)]
        if step.gain is not None and not stays(steps, at):
            cells += [*_gain(step.gain, scale, digits), step.gain.word]
        made.add_row(*cells)
    return made


def _gain(found: Difference, scale: Pair, digits: int) -> tuple[RenderableType, ...]:
    sure = "green" if found.low > 0 else "red" if found.high < 0 else ""
    ends = numerals.between(found.low, found.high, digits, sign=True)
    return Text(numerals.signed(found.mean, digits), sure), bar(found, scale, PLACES), ends


def _matrix(title: str, rows: list[MethodRow], digits: int) -> RenderableType:
    """The score of each loss with each model."""
    losses, models, found = method_rows.matrix(rows)
    made = table()
    made.add_column(plain(f"{title} on test rows"), overflow="fold", min_width=8)
    for model in models:
        made.add_column(plain(model), justify="right", overflow="fold", min_width=7)
    for loss in losses:
        cells = []
        for model in models:
            row = found.get((model, loss))
            said = row.candidate.beside.word if row and row.candidate.beside else ""
            score = numerals.fixed(row.candidate.score.mean, digits) if row else numerals.NONE
            sign = "★" if row and row.advised else " "
            cells.append(Text(f"{score} {SIGNS.get(said, ' ')}{sign}", "bold green" if row and row.advised else ""))
        made.add_row(plain(loss), *cells)
    key = "★ advised" * any(row.advised for row in rows)
    signs = {row.candidate.beside.word for row in rows if row.candidate.beside} & SIGNS.keys()
    meant = ", ".join(f"{SIGNS[said]} {said}" for said in SIGNS if said in signs)
    against = f"{meant}, against {losses[0]} with the same model" if meant else ""
    return Group(made, plain("; ".join(filter(None, (key, against))), "dim"))


@dataclass(frozen=True)
class _Methods:
    """The table of methods; a terminal narrower than 96 columns gets fewer of their numbers."""

    title: str
    rows: list[MethodRow]
    constant: NoSkill | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= 96
        heads = ("Δ baseline", "which is") + ("at ½", "Brier", "cut") * wide
        digits, scale = method_rows.digits(self.rows), method_rows.scale(self.rows, "score")
        made = table()
        made.add_column("", overflow="fold", min_width=12)
        made.add_column(plain(self.title), justify="right", overflow="fold", max_width=12)
        made.add_column(axis(scale), no_wrap=True)
        made.add_column("95 % interval", no_wrap=True)
        for head in heads:
            made.add_column(head, justify="right", no_wrap=True)
        for row in self.rows:
            style, score = "bold green" if row.advised else "", row.candidate.score
            cells = (
                _difference(row, digits),
                row.difference.word or numerals.NONE,
                numerals.fixed(row.candidate.at_half.mean, digits),
                numerals.short(row.brier, 2, zeros=True),
                numerals.cut(row.cut, 2),
            )
            made.add_row(
                plain(row.name + " ★" * row.advised, style),
                Text(numerals.fixed(score.mean, digits), style),
                bar(score, scale, PLACES),
                numerals.between(score.low, score.high, digits),
                *cells[: len(heads)],
            )
        if self.constant is not None:
            score = self.constant.score
            ends = numerals.between(score.low, score.high, digits)
            score_cells = numerals.fixed(score.mean, digits), bar(score, scale, PLACES), ends
            made.add_row(plain(self.constant.name, "dim"), *score_cells, *[Text(numerals.NONE, "dim") for _ in heads])
        yield made


def axis(scale: Pair) -> str:
    """The ends of a scale, over its bars."""
    low, high = (numerals.short(end, 2) for end in scale)
    return f"{low}{high:>{max(len(high) + 1, PLACES - len(low))}}"


def bar(value: Estimate, scale: Pair, places: int) -> Text:
    """An interval as a bar of so many letters, its mean as a point."""
    if not all(map(math.isfinite, (value.mean, value.low, value.high))):
        return Text(numerals.NONE, "dim")
    if not scale[0] <= value.mean <= scale[1]:
        return Text("◂" if value.mean < scale[0] else "▸".rjust(places), "dim")
    start, end = scale[0] / 2, scale[1] / 2  # halves, since the whole may be more than any number
    low, mean, high = (
        round((places - 1) * ((min(max(x / 2, start), end) - start) / (end - start)))
        for x in (value.low, value.mean, value.high)
    )
    letters = [" "] * places
    letters[low : high + 1] = "─" * (high + 1 - low)
    letters[low], letters[high] = "├", "┤"
    letters[mean] = "●"
    return Text("".join(letters))


def _difference(row: MethodRow, digits: int) -> Text:
    if row.baseline:
        return Text("baseline", "dim")
    sure = "green" if row.difference.low > 0 else "red" if row.difference.high < 0 else ""
    return Text(numerals.signed(row.difference.mean, digits), sure)

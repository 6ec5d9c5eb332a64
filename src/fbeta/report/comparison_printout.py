"""A comparison in the terminal."""

import math
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from fbeta import numerals
from fbeta.comparison.result import Comparison, Estimate, NoSkill
from fbeta.report import method_rows
from fbeta.report.chart import Pair
from fbeta.report.console import indented, plain, table
from fbeta.report.method_rows import MethodRow

#: Columns of numbers after the score and its interval.
HEADS = ("at ½", "Δ baseline", "which is", "Brier", "cut", "time")


def terminal(comparison: Comparison) -> RenderableType:
    """Lay out a comparison for a terminal of 100 columns; print it with rich's `Console`.

    >>> from fbeta.comparison.result import TableFacts
    >>> table = TableFacts("fraud", "is_fraud", "1", 1000, 20, 5)
    >>> comparison = Comparison(table, "fbeta:beta=2", "F₂", (), "", "", "Nothing was run.")
    >>> Console(width=100).print(terminal(comparison))
    fraud by F₂
    1,000 rows, 5 columns; is_fraud = 1 in 20 of them (2.00 %)
    <BLANKLINE>
    Nothing was run.
    """
    rows = method_rows.ranked(method_rows.method_rows(comparison))
    name, title = plain(comparison.table.name, "bold"), plain(comparison.title, "bold")
    parts: list[RenderableType] = [
        Text.assemble(name, " by ", title),
        plain(method_rows.about(comparison), "dim"),
        *(plain(f"! {note}", "dim") for note in comparison.table.notes),
        "",
    ]
    if not rows:
        return Group(*parts, plain(comparison.recommendation))
    parts.append(_Methods(comparison.title, rows, comparison.constant))
    remarks = [Text.assemble(plain(r.name, "yellow"), plain(f": {r.remark}")) for r in rows if r.remark]
    if remarks:
        parts += ["", *map(indented, remarks)]
    windows = method_rows.windows(comparison)
    note = f"{method_rows.protocol(comparison)} {method_rows.tests(comparison)}".rstrip()
    promise = [comparison.promise] if comparison.promise else []
    said = [plain(comparison.recommendation, "bold"), *map(plain, [*promise, *windows]), plain(note, "dim")]
    return Group(*parts, "", *said)


@dataclass(frozen=True)
class _Methods:
    """The table of methods; a terminal narrower than 96 columns gets fewer of their numbers."""

    title: str
    rows: list[MethodRow]
    constant: NoSkill | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        narrow = options.max_width < 96
        heads = [head for head in HEADS if not (narrow and head in ("Brier", "time"))]
        digits, scale = method_rows.digits(self.rows), method_rows.scale(self.rows, "score")
        made = table()
        made.add_column("", overflow="fold", min_width=12)
        made.add_column(plain(self.title), justify="right", overflow="fold", max_width=12)
        made.add_column("95 % interval", no_wrap=True)
        for head in heads:
            made.add_column(head, justify="right", no_wrap=True)
        for row in self.rows:
            style = "bold green" if row.advised else ""
            cells: tuple[RenderableType, ...] = (
                numerals.fixed(row.candidate.at_half.mean, digits),
                _difference(row, digits),
                row.difference.word or numerals.NONE,
                numerals.short(row.brier, 2, zeros=True),
                numerals.cut(row.cut, 2),
                numerals.duration(row.candidate.seconds),
            )
            made.add_row(
                plain(row.name + " ★" * row.advised, style),
                Text(numerals.fixed(row.candidate.score.mean, digits), style),
                bar(row.candidate.score, scale, 11 if narrow else 17),
                *(cell for head, cell in zip(HEADS, cells, strict=True) if head in heads),
            )
        if self.constant is not None:
            score = self.constant.score
            made.add_row(
                plain(self.constant.name, "dim"),
                numerals.fixed(score.mean, digits),
                bar(score, scale, 11 if narrow else 17),
                *[Text(numerals.NONE, "dim") for _ in heads],
            )
        yield made


def bar(value: Estimate, scale: Pair, places: int) -> Text:
    """An interval as a bar of so many letters, its mean as a point."""
    if not all(map(math.isfinite, (value.mean, value.low, value.high))):
        return Text(numerals.NONE, "dim")
    if not scale[0] <= value.mean <= scale[1]:
        return Text("◂" if value.mean < scale[0] else "▸".rjust(places), "dim")
    low, mean, high = (
        round((places - 1) * (min(max(x, scale[0]), scale[1]) - scale[0]) / (scale[1] - scale[0]))
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

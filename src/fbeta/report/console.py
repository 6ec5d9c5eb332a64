"""A comparison in the terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass

try:
    from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text
except ImportError as error:
    raise ImportError("A table in the terminal needs rich: pip install 'fbeta[report]'") from error

from fbeta.comparison.result import Comparison, Interval
from fbeta.report import words
from fbeta.report.rows import Pair, Row, about, beforehand, rows, scale, tests

#: Places of an interval's bar.
BAR = 17


def layout(comparison: Comparison) -> RenderableType:
    """Lay out a comparison for 100 columns, or somewhat fewer. Every name is a `Text`, so that markup in it stays text.

    >>> from fbeta.comparison.result import Table as Data
    >>> type(layout(Comparison(Data("t", "y", "1", 9, 2, 1), "mcc", "MCC", (), "", "", "Nothing."))).__name__
    'Group'
    """
    lines = rows(comparison)
    parts: list[RenderableType] = [
        Text.assemble(
            (words.clean(comparison.table.name), "bold"), " by ", (words.clean(comparison.title), "bold")
        ),
        Text(words.clean(about(comparison)), "dim"),
        *(Text(words.clean(f"! {note}"), "dim") for note in comparison.table.notes),
        "",
    ]
    if lines:
        parts += [_Methods(comparison.title, lines), *_remarks(lines), ""]
    parts.append(Text(words.clean(comparison.recommendation), "bold" if lines else ""))
    if lines:
        known = f" p: {tests(comparison)}." if tests(comparison) else ""
        parts.append(Text(words.clean(f"{beforehand(comparison)}{known}"), "dim"))
    return Group(*parts)


@dataclass(frozen=True)
class _Methods:
    """The table of methods; a terminal narrower than 100 columns gets fewer of them."""

    title: str
    lines: list[Row]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._table(narrow=options.max_width < 96)

    def _table(self, *, narrow: bool) -> Table:
        digits = words.digits_for(x for row in self.lines for x in (row.score.mean, row.at_half.mean))
        across = scale(self.lines, lambda row: (row.score,))
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        table.add_column("", overflow="fold", min_width=12)
        table.add_column(words.clean(self.title), justify="right", overflow="fold", max_width=12)
        table.add_column("95 % interval", no_wrap=True)
        for head in ("at ½", "Δ baseline", "p", "Brier", "cut", "time"):
            if not (narrow and head in ("Brier", "time")):
                table.add_column(head, justify="right", no_wrap=True)
        for row in self.lines:
            style = "bold green" if row.winner else ""
            cells: tuple[RenderableType, ...] = (
                Text.assemble((words.clean(row.name), style), (" ★" if row.winner else "", style)),
                Text(words.fixed(row.score.mean, digits), style),
                bar(row.score, across, 11 if narrow else BAR),
                words.fixed(row.at_half.mean, digits),
                _difference(row, digits),
                words.p_value(row.p),
                words.significant(row.brier, 2),
                words.cut(row.cut, 2),
                words.duration(row.seconds),
            )
            table.add_row(*(cell for i, cell in enumerate(cells) if not (narrow and i in (6, 8))))
        return table


def bar(value: Interval, scale: Pair, places: int = BAR) -> Text:
    """An interval as a bar of letters, its mean as a point.

    >>> bar(Interval(0.5, 0.0, 1.0), (0.0, 1.0), 9).plain
    '├───●───┤'
    """
    if not all(map(math.isfinite, (value.mean, value.low, value.high))):
        return Text(words.NONE, "dim")
    spread = scale[1] - scale[0]
    if not scale[0] <= value.mean <= scale[1]:
        return Text("◂" if value.mean < scale[0] else "▸".rjust(places), "dim")
    low, mean, high = (
        min(places - 1, max(0, round((places - 1) * (x - scale[0]) / spread)))
        for x in (value.low, value.mean, value.high)
    )
    letters = [" "] * places
    letters[low : high + 1] = "─" * (high + 1 - low)
    letters[low], letters[high] = "├", "┤"
    letters[mean] = "●"
    return Text("".join(letters))


def _difference(row: Row, digits: int) -> Text:
    if row.baseline:
        return Text("baseline", "dim")
    sure = "green" if row.difference.low > 0 else "red" if row.difference.high < 0 else ""
    return Text(words.signed(row.difference.mean, digits), sure)


def _remarks(lines: list[Row]) -> list[RenderableType]:
    """What went wrong, a line for each method it went wrong with."""
    said = [
        Text.assemble((words.clean(r.name), "yellow"), f": {words.clean(r.remark)}")
        for r in lines
        if r.remark
    ]
    return ["", *(Padding(text, (0, 0, 0, 2)) for text in said)] if said else []

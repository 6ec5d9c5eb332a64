"""The style of everything printed with rich: headings, notes, tables, bars for long work."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from fbeta.numerals import clean

#: Columns of letters below which nothing can be shown.
NARROWEST = 20


def show(layout: RenderableType, console: Console | None = None) -> None:
    """Print a layout; plain text where the output is no terminal."""
    console = console or Console(highlight=False)
    if console.width < NARROWEST:  # of COLUMNS=0, which some terminals of servers say, nothing would be left
        console.width = 80
    if console.file is sys.stdout and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without δ shows ? rather than a traceback
    console.print(layout)


def plain(text: str, style: str = "") -> Text:
    """A string that may come from the data: markup in it stays text."""
    return Text(clean(text), style)


def heading(title: str, note: str = "") -> Text:
    """A title, and a note beside it."""
    return Text.assemble((clean(title), "bold"), (f"  {clean(note)}" if note else "", "dim"))


def indented(inside: RenderableType) -> RenderableType:
    """Something that belongs to the heading above it."""
    return Padding(inside, (0, 0, 0, 2), expand=False)


def table(*, header: bool = True) -> Table:
    """A table without lines."""
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_header=header)


def bar(unit: str, console: Console) -> Progress:
    """A bar that counts `unit`s, such as epochs."""
    columns = BarColumn(), MofNCompleteColumn(), unit, TimeElapsedColumn(), "left:", TimeRemainingColumn()
    return Progress("{task.description}", *columns, console=console)


@contextmanager
def progress(what: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on the terminal, not in files: what the `with` yields is told how much of how much is done (0: unknown)."""
    console = Console(stderr=True)
    shown = bar(unit, console)
    shown.disable = not console.is_terminal  # before it starts: what is off is not stopped either
    with shown:
        at = shown.add_task(what)
        yield lambda done, of: shown.update(at, completed=done, total=of or None)

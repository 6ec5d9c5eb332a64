"""A bar for long work: how much is done, how long it took, how long it will."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn


def bar(unit: str, console: Console) -> Progress:
    """A bar that counts `unit`s, such as epochs."""
    columns = BarColumn(), MofNCompleteColumn(), unit, TimeElapsedColumn(), "left:", TimeRemainingColumn()
    return Progress("{task.description}", *columns, console=console)


@contextmanager
def progress(what: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on the terminal for the time of a `with`; what it yields is told how much of how much is done (0: unknown).

    A file or a pipe gets no bar.
    """
    console = Console(stderr=True)
    with bar(unit, console) as shown:
        shown.disable = not console.is_terminal
        at = shown.add_task(what)
        yield lambda done, of: shown.update(at, completed=done, total=of or None)

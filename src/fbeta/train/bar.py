"""A bar for long work: how much is done, how long it took, how long it will."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def bar(unit: str, console: Console) -> Progress:
    """A bar that counts `unit`s, such as epochs.

    >>> len(bar("epochs", Console(quiet=True)).columns)
    7
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=console,
    )

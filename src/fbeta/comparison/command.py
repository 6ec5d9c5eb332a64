"""What `fbeta compare` does: read, say aloud, compare with a bar, show, write."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from rich.console import Console as Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from fbeta import data
from fbeta.comparison.run import compare, fingerprint
from fbeta.data.tables import Table
from fbeta.metrics import metric as read_metric
from fbeta.results import Comparison

#: The bundled set that a comparison without data is about: is a digit a zero?
BUNDLED, ZERO = "digits", "0"


def read(source: str | None, target: str | None, positive: str | None, **options: Any) -> Table:
    """Read the table, or the bundled one."""
    if source is None:
        return data.load_table(BUNDLED, target, ZERO if positive is None else positive, **options)
    return data.load_table(source, target, positive, **options)


def folder(table: Table, metric: str, folds: int) -> Path:
    """Where finished parts are kept: the same for the same rows, metric and folds."""
    wanted = json.dumps(fingerprint(table, read_metric(metric), folds), sort_keys=True)
    return data.root() / "compare" / hashlib.sha256(wanted.encode()).hexdigest()[:16]


def run(table: Table, metric: str, console: Console, results: Path | None, **options: Any) -> Comparison:
    """Compare, with a bar on the console."""
    for note in table.notes:
        console.print(note, style="dim", highlight=False)
    results = folder(table, metric, options.get("folds", 5)) if results is None else results
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("parts")
    with Progress(
        *columns, TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn(), console=console
    ) as bar:
        at = bar.add_task("training")

        def tick(done: int, of: int) -> None:
            bar.update(at, completed=done, total=of)

        return compare(table, metric=metric, folder=results, tick=tick, **options)

"""What `fbeta compare` does: read, say aloud, compare with a bar, show, write."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from rich.console import Console as Console

from fbeta import data
from fbeta.comparison.run import compare, fingerprint
from fbeta.data.tables import Table
from fbeta.metrics import metric as read_metric
from fbeta.results import Comparison
from fbeta.train.bar import bar


def folder(table: Table, metric: str, folds: int) -> Path:
    """Where finished parts are kept: the same for the same rows, metric and folds."""
    wanted = json.dumps(fingerprint(table, read_metric(metric), folds), sort_keys=True)
    return data.root() / "compare" / hashlib.sha256(wanted.encode()).hexdigest()[:16]


def run(table: Table, metric: str, console: Console, results: Path | None, **options: Any) -> Comparison:
    """Compare, with a bar on the console."""
    for note in table.notes:
        console.print(note, style="dim", highlight=False)
    results = folder(table, metric, options.get("folds", 5)) if results is None else results
    with bar("parts", console) as shown:
        at = shown.add_task("training")

        def tick(done: int, of: int) -> None:
            shown.update(at, completed=done, total=of)

        return compare(table, metric=metric, folder=results, tick=tick, **options)

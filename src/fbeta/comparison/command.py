"""What `fbeta compare` and `fbeta fit` do: say aloud, work with a bar, and say what came of it without overselling."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from rich.console import Console as Console
from rich.progress import Progress

from fbeta import data
from fbeta.artifact import Model, save
from fbeta.comparison import fitting
from fbeta.comparison.methods import plan
from fbeta.comparison.result import Comparison
from fbeta.comparison.run import compare, fingerprint
from fbeta.decisions import rule as read_rule
from fbeta.learners.devices import device_of
from fbeta.metrics import metric as read_metric
from fbeta.tables import Table
from fbeta.train.bar import bar


def folder(table: Table, metric: str, folds: int) -> Path:
    """Where finished parts are kept: the same for the same rows, metric and folds."""
    wanted = json.dumps(fingerprint(table, read_metric(metric), folds), sort_keys=True)
    return data.root() / "compare" / hashlib.sha256(wanted.encode()).hexdigest()[:16]


def run(table: Table, metric: str, console: Console, results: Path | None, **options: Any) -> Comparison:
    """Compare, with notes on the console and a bar."""
    for note in table.notes:
        console.print(note, style="dim", highlight=False)
    results = folder(table, metric, options.get("folds", 5)) if results is None else results
    with _bar("epochs") as shown:
        at = shown.add_task("training")

        def tick(done: int, of: int) -> None:
            shown.update(at, completed=done, total=of)

        return compare(table, metric=metric, folder=results, tick=tick, **options)


def check(
    metric: str,
    models: list[str] | None,
    losses: list[str] | None,
    rule: str,
    device: str,
    alone: bool = True,
) -> None:
    """Refuse what is misspelt before a large table is read; `alone`: bce is not added to the losses.

    >>> check("mcc", ["linear"], None, "exakt", "cpu")
    Traceback (most recent call last):
    ValueError: Unknown rule 'exakt'. Did you mean 'exact'? Choices: constant, exact, plugin, shrunk.
    """
    goal = read_metric(metric)
    read_rule(rule)
    device_of(device)
    (fitting.chosen if alone else plan)(models, losses, goal)


def read(path: Path) -> Comparison:
    """A comparison from the file of `fbeta compare --json`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no comparison: give what `fbeta compare --json` printed.") from error
    try:
        return Comparison.from_json(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def notes(table: Table, comparison: Comparison | None) -> list[str]:
    """What is to be said about a table before a fit, also where a comparison was of another one."""
    if comparison is None:
        return list(table.notes)
    was = comparison.table
    now = (len(table), int(table.y.sum()), len(table.columns))
    changed = now != (was.rows, was.positives, was.columns)
    seen = f"the comparison saw {was.rows:,} rows, {was.positives:,} positives and {was.columns} columns, not these."
    return [*table.notes, comparison.recommendation, *([seen] if changed else [])]


def fit(table: Table, out: Path, source: str | None = None, **options: Any) -> Model:
    """Fit with a bar, and write the model; its file's sum is kept, where the rows come from one."""
    given = Path(source).expanduser() if source is not None and data.is_path(source) else None
    with _bar("steps") as shown:
        at = shown.add_task("fitting")

        def tick(done: int, of: int) -> None:
            shown.update(at, completed=done, total=of)

        model = fitting.fit(
            table, tick=tick, sha256="" if given is None else fitting.digest(given), **options
        )
    save(model, out)
    return model


def _bar(unit: str) -> Progress:
    """A bar for whoever looks on; a file or a pipe gets none."""
    console = Console(stderr=True)
    shown = bar(unit, console)
    shown.disable = not console.is_terminal
    return shown


def facts(model: Model) -> dict[str, Any]:
    """A model as plain data, for machines."""
    return {
        **model.facts(),
        "columns": [column.name for column in model.columns],
        "provenance": dict(model.provenance),
    }


def said(model: Model, out: Path) -> str:
    """What was trained, how good it looked on which rows, and what to do next."""
    about, cut, interval = model.provenance, model.cut, model.cut.interval
    tried, name = about["tried"], about["title"]
    best = f", the best of {len(tried)} methods on out-of-fold rows" if len(tried) > 1 else ""
    sure = "" if interval is None else f" (95 % interval {interval.score[0]:.3f} to {interval.score[1]:.3f})"
    chose = "the cut and the method" if len(tried) > 1 else "the cut"
    lines = [
        f"Trained {model.name}{best}, on all {about['rows']:,} rows of {about['data']}.",
        f"Out-of-fold {name} {cut.score:.3f}{sure}, cut at the probability {cut.value:.4g}.",
        f"The rows of that score also chose {chose} and when to stop, so it is a little too good; what "
        "`fbeta compare` says comes from rows without a say.",
        *(
            text
            for text in (cut.warning, about["collapse"] and f"Without that cut it {about['collapse']}.")
            if text
        ),
        f"Written: {out}. Next: fbeta predict {out} NEW.csv -o predictions.csv",
    ]
    return "\n".join(lines)

"""The state of the runs: what is finished, who trains what now, and what is still to do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType

from fbeta.numerals import fixed, series
from fbeta.report.console import heading, indented, plain, table
from fbeta.report.console import show as printed
from fbeta_reproduction.naming import dataset_name, median, score_name
from fbeta_reproduction.protocol import BETAS, PAPER, PROTOCOL, SETTINGS, Run
from fbeta_reproduction.records import ledger
from fbeta_reproduction.results.folder import read_run
from fbeta_reproduction.results.run_result import LAST, RunResult

#: The scores of a run as `status` names them: at ½, and at the cut tuned on validation rows.
AT_HALF = [f"f{beta:g}" for beta in BETAS]
TUNED = [f"tuned_f{beta:g}" for beta in BETAS]

#: Terminals narrower than this do not show the scores at tuned cuts.
_WIDE = 100


def status(folder: Path | str, runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Every planned run, then every other one that the folder holds, as plain data.

    A score is the mean over the last five epochs, on test rows: `f1` at ½, `tuned_f1` at the cut that is best for
    it on validation rows; `positive` is the share predicted positive at ½. A run without an epoch has None there,
    and a damaged file an `error`. The epochs `wanted` are those of its file, or of the plan if it has none.

    >>> first = status("a folder that is not there", [Run("digits", "soft", beta=2.0)])[0]
    >>> first["id"], first["state"], first["epochs"], first["wanted"], first["f2"]
    ('digits/soft-b2-r0', 'waiting', 0, 120, None)
    """
    ledger.check(folder, PROTOCOL)
    planned = {run.id: run for run in runs}
    there = set(ledger.ids(folder))
    every = [*planned, *sorted(there - planned.keys())]
    owners = ledger.owners(folder, every)
    return [
        _row(id, planned.get(id), Path(folder, f"{id}.csv") if id in there else None, owners.get(id)) for id in every
    ]


def _row(id: str, run: Run | None, path: Path | None, owner: object) -> dict[str, Any]:
    result, error = None, None
    try:
        result = read_run(path) if path is not None else None
    except (OSError, ValueError) as caught:
        error = str(caught)
    wanted = min((r.epochs for r in (run, result and result.run) if r), default=None)
    run = result.run if result else run
    epochs = len(result.epochs) if result else 0
    done = wanted is not None and epochs >= wanted
    state = "damaged" if error else "done" if done else "training" if owner else "stopped" if path else "waiting"
    named = {name: getattr(run, name, None) for name in ("loss", "beta", "q", "repeat", "precision", "label")}
    return {
        "id": id,
        "dataset": id.partition("/")[0],
        **named,
        "state": state,
        "epochs": epochs,
        "wanted": wanted,
        **_scores(result),
        "seconds": result.seconds if result else 0.0,
        "claimed_by": str(owner) if owner else None,
        "error": error,
    }


def _scores(result: RunResult | None) -> dict[str, float | None]:
    names = [*AT_HALF, *TUNED, "accuracy", "positive"]
    if result is None or not len(result.epochs):
        return dict.fromkeys(names)
    arrays = [result.score("test", beta) for beta in BETAS]
    arrays += [result.score("test", beta, tuned=True) for beta in BETAS]
    arrays += [result.accuracy(), result.share("test")]
    return {name: result.final(values) for name, values in zip(names, arrays, strict=True)}


def datasets(folder: Path | str) -> list[str]:
    """The data sets whose plans are shown: the paper's, and others once they have begun.

    >>> datasets("a folder that is not there")
    ['fashion-mnist', 'cifar10']
    """
    return [name for name in SETTINGS if name in PAPER or Path(folder, name).is_dir()]


def show(rows: list[dict[str, Any]], console: Console | None = None) -> None:
    """Print the runs by data set and loss: how many, how far, and the medians of their scores.

    >>> show(status("a folder that is not there", [Run("digits", "soft", beta=2.0)]), Console(width=100))
    digits  0 of 1 runs finished, 0.0 min of device time
      waiting: soft-b2
    """
    console = console or Console(highlight=False)
    if not console.is_terminal and console.width < _WIDE:
        console.width = 120  # a file or a pipe is as wide as needed
    parts = [
        _dataset(dataset, [row for row in rows if row["dataset"] == dataset], console.width)
        for dataset in dict.fromkeys(row["dataset"] for row in rows)
    ]
    if any(row["epochs"] for row in rows):
        star = ", with * at the cut tuned on validation rows" if console.width >= _WIDE else ""
        words = (
            f"Test rows, mean of the last {LAST} epochs: F at ½{star}, accuracy and share predicted positive. "
            "Medians of the finished runs, or of those begun where none is finished."
        )
        parts.append(plain(words, "dim"))
    parts += [plain(row["error"], "red") for row in rows if row["error"]]
    printed(Group(*parts), console)


def _dataset(dataset: str, rows: list[dict[str, Any]], width: int) -> RenderableType:
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        if row["wanted"] is not None:
            # Runs that were told to stop early are another experiment, not worse repeats.
            groups.setdefault((row["label"], row["wanted"]), []).append(row)
    begun = {key: found for key, found in groups.items() if any(row["epochs"] for row in found)}
    waiting = dict.fromkeys(label for label, wanted in groups if (label, wanted) not in begun)
    done = sum(row["state"] == "done" for row in rows)
    seconds = sum(row["seconds"] for row in rows)
    parts: list[RenderableType] = []
    if begun:
        parts.append(_table(begun, width))
    if waiting:
        parts.append(plain(f"waiting: {', '.join(waiting)}", "dim"))
    workers = sorted({row["claimed_by"] for row in rows if row["state"] == "training"})
    if workers:
        count = sum(row["state"] == "training" for row in rows)
        parts.append(plain(f"{count} in training by {series(workers)}"))
    counts = f"{done} of {len(rows)} runs finished, {seconds / 60:.1f} min of device time"
    return Group(heading(dataset_name(dataset), counts), *map(indented, parts))


def _table(groups: dict[tuple[str, int], list[dict[str, Any]]], width: int) -> RenderableType:
    grid = table()
    grid.padding = (0, 1, 0, 0)  # many columns
    shown = [*AT_HALF, *(TUNED if width >= _WIDE else []), "accuracy", "positive"]
    heads = {name: score_name(beta) for name, beta in zip(AT_HALF, BETAS, strict=True)}
    heads |= {name: f"{score_name(beta)}*" for name, beta in zip(TUNED, BETAS, strict=True)}
    heads |= {"accuracy": "acc.", "positive": "pos."}
    grid.add_column("loss", overflow="fold")
    for head in ("runs", "epochs", *(heads[name] for name in shown), "sec."):
        grid.add_column(head, justify="right", no_wrap=True)
    for (label, wanted), rows in groups.items():
        done = [row for row in rows if row["state"] == "done"]
        some = done or [row for row in rows if row["epochs"]]
        grid.add_row(
            plain(label),
            f"{len(done)}/{len(rows)}",
            f"{median([row['epochs'] for row in some]):g}/{wanted}",
            *(fixed(median([row[name] for row in some])).removeprefix("0") for name in shown),
            f"{sum(row['seconds'] for row in rows):.0f}",
        )
    return grid

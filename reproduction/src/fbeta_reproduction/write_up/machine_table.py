"""What the runs took, from the headers of their files and the seconds of each epoch."""

from __future__ import annotations

from collections import defaultdict

from fbeta.numerals import count, fixed
from fbeta_reproduction.naming import dataset_name
from fbeta_reproduction.protocol import PAPER, faithful
from fbeta_reproduction.results.folder import Results
from fbeta_reproduction.results.run_result import RunResult
from fbeta_reproduction.write_up.blocks import Block, DataTable, Text
from fbeta_reproduction.write_up.cells import NOT_YET


def machines(results: Results) -> list[Block]:
    """What the runs took, from the headers and the seconds of each epoch."""
    found: dict[tuple[str, ...], list[RunResult]] = defaultdict(list)
    for r in sorted(results, key=lambda r: (*_place(r), r.run.precision)):
        facts = [str(r.machine.get(k, "?")) for k in ("device", "torch", "fbeta")]
        found[(dataset_name(r.run.dataset), r.run.precision, *facts)].append(r)
    rows = []
    for key, some in found.items():
        epochs, seconds = sum(len(r.epochs) for r in some), sum(r.seconds for r in some)
        at_once = sorted({int(r.machine["runs at once"]) for r in some if "runs at once" in r.machine})
        span = "–" if not at_once else f"{at_once[0]}" if len(at_once) == 1 else f"{at_once[0]} to {at_once[-1]}"
        each = fixed(seconds / epochs, 2) if epochs else "–"
        rows.append((*key, span, count(len(some)), count(epochs), each, fixed(seconds / 3600, 2)))
    total = sum(r.seconds for r in results)
    heading = (
        "data set",
        "precision",
        "device",
        "torch",
        "fbeta",
        "runs at once",
        "runs",
        "epochs",
        "seconds per run and epoch",
        "hours",
    )
    words = Text(
        f"In all {fixed(total, 0)} seconds ({fixed(total / 3600, 1)} hours) of device time, evaluation of "
        "all three splits after every epoch included."
    )
    return [DataTable(heading, tuple(rows), left=5), words, *_faithful(results)] if rows else [NOT_YET]


def _faithful(results: Results) -> list[Block]:
    """What the paper's own runs took, once all of them are there."""
    own = [r for d in PAPER for g in results.of(d, "faithful") for r in g.results if r.finished]
    if len(own) < sum(len(list(faithful(d))) for d in PAPER):
        return []
    epochs, minutes = sum(len(r.epochs) for r in own), sum(r.seconds for r in own) / 60
    return [
        Text(
            f"The paper’s own {len(own)} runs, {count(epochs)} epochs with their evaluation, took "
            f"{fixed(minutes, 1)} minutes of that."
        )
    ]


def _place(r: RunResult) -> tuple[int, str]:
    """The paper's data sets first."""
    return PAPER.index(r.run.dataset) if r.run.dataset in PAPER else len(PAPER), r.run.dataset

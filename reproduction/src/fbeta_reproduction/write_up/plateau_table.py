"""The plateau in numbers, as tables."""

from __future__ import annotations

import math

import numpy as np

from fbeta.numerals import fixed
from fbeta_reproduction.naming import dataset_name, loss_name
from fbeta_reproduction.results.folder import Repeats, Results
from fbeta_reproduction.results.run_result import LAST, PLATEAU, STEADY
from fbeta_reproduction.results.survival import EARLY, Survival, early, staying, wilson
from fbeta_reproduction.write_up.blocks import Block, DataTable, Text

#: An epoch on the way, a quarter of the paper's.
MIDDLE = 30


def plateau_tables(results: Results) -> list[Block]:
    """A table for each data set: how likely a run is on the plateau after some epochs, and when it leaves."""
    blocks: list[Block] = []
    for dataset in results.datasets:
        rows = [row for g in results.main(dataset) if (row := _row(g))]
        if rows:
            last = max(g.run.epochs for g in results.main(dataset))
            heading = (
                dataset_name(dataset), "runs", f"after epoch {EARLY}", f"after {min(MIDDLE, last)}", f"after {last}",
                "left at (median)", "came back",
            )  # fmt: skip
            blocks.append(DataTable(heading, tuple(rows)))
    return [*blocks, Text(_WORDS)] if blocks else [Text("Not run yet.")]


_WORDS = (
    f"On the plateau: more than {100 * PLATEAU:.0f} % of the training split predicted positive at ½. After "
    f"epoch {EARLY}: runs on it of all that got so far, short runs with other seeds too, with Wilson’s 95 % "
    "interval. Later: Kaplan and Meier’s estimate of the share that has not left; a run leaves with the "
    f"first of {STEADY} epochs in a row off the plateau (or all that remain), one that went NaN is watched up "
    f"to there. Left at: median epoch of leaving among runs on it after epoch {EARLY}; > 5 says that the last "
    "of them ended after epoch 5 with more than half still on it. Came back: runs on it again in one of their "
    f"last {LAST} epochs."
)


def _row(g: Repeats) -> tuple[str, ...] | None:
    seen = [r for r in g.everyone if len(r.epochs) >= EARLY]
    if not seen:
        return None
    on = early(g)
    s = staying(g.everyone)
    back = sum(r.left is not None and bool(r.on_plateau[-LAST:][r.epochs[-LAST:] > r.left].any()) for r in g.results)
    return (
        loss_name(g.run),
        f"{len(seen)}",
        f"{len(on)} of {len(seen)}: {_interval(len(on) / len(seen), *wilson(len(on), len(seen)))}",
        _at(s, min(MIDDLE, g.run.epochs)),
        _at(s, g.run.epochs),
        _median(staying(on)) if on else "–",
        f"{back}" if back else "–",
    )


def _median(s: Survival) -> str:
    seen = math.isfinite(s.median) or not len(s.epochs)
    return fixed(s.median, 0) if seen else f"> {fixed(s.epochs[-1], 0)}"


def _at(s: Survival, epoch: int) -> str:
    here = np.flatnonzero(s.epochs == epoch)
    return _interval(*(float(x[here[0]]) for x in (s.share, s.low, s.high))) if len(here) else "–"


def _interval(share: float, low: float, high: float) -> str:
    return f"{fixed(share, 2)} [{fixed(low, 2)}, {fixed(high, 2)}]"

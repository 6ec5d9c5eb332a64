"""`fbeta.compare` on credit-card fraud: wall time, peak memory and what it finds.

    python benchmarks/compare_creditcard.py                        # the set of `fbeta data fetch creditcard`
    python benchmarks/compare_creditcard.py --data creditcard.parquet
    python benchmarks/compare_creditcard.py --rows 20000 --seeds 1 # a smoke test; writes no result

284,807 rows × 29 columns, 492 frauds, split by time; six losses × five splits × (linear, mlp, xgboost). Stopped and
started again it goes on; seconds of all calls are added up, lost work included, and the highest peak counts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import time
from pathlib import Path
from typing import Any

import doc_block
import numpy as np
import torch
from rich.console import Console

import fbeta
from fbeta import data, report
from fbeta.comparison.result import Candidate, Comparison
from fbeta.data import load_table
from fbeta.report.console import bar
from fbeta.tables import Table

RESULT = Path(__file__).parent / "results" / "compare_creditcard.json"
METRIC = "fbeta:beta=2"


class Spent:
    """Seconds and memory of this call and those before, kept in a file so that a kill loses five seconds at most."""

    def __init__(self, path: Path) -> None:
        self.path, self.began, self.written = path, time.perf_counter(), -math.inf
        self.before: list[dict[str, float]] = json.loads(path.read_text()) if path.exists() else []

    @property
    def calls(self) -> list[dict[str, float]]:
        """This call is the last."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return [*self.before, {"seconds": time.perf_counter() - self.began, "peak_MB": peak}]

    def note(self) -> None:
        """Write it down, if it is time."""
        if time.perf_counter() - self.written > 5:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.calls))
            self.written = time.perf_counter()


def read(source: str, rows: int | None) -> Table:
    """The payments by time, or every so many of them."""
    table = load_table(source) if source == "creditcard" else load_table(source, "Class", "1", time="Time")
    return table if rows is None else table.take(np.linspace(0, len(table) - 1, rows).astype(np.int64))


def line(c: Candidate) -> dict[str, Any]:
    """One method as plain numbers."""
    d = c.difference
    return {
        "method": c.name,
        "score": [c.score.mean, c.score.low, c.score.high],
        "at_half": [c.at_half.mean, c.at_half.low, c.at_half.high],
        "inner": c.inner,
        "difference": None if d is None else [d.mean, d.low, d.high],
        "p": None if d is None else d.p,
        "brier": c.brier,
        "seconds": round(c.seconds, 1),
        "remark": c.collapse,
    }


def result(found: Comparison, calls: list[dict[str, float]]) -> dict[str, Any]:
    """What is stored."""
    return {
        "rows": found.table.rows,
        "columns": found.table.columns,
        "positives": found.table.positives,
        "metric": found.metric,
        "seeds": found.seeds,
        "folds": found.folds,
        "machine": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__.partition("+")[0],
        "fbeta": fbeta.__version__,
        "wall_seconds": round(sum(call["seconds"] for call in calls), 1),
        "calls": len(calls),
        "peak_MB": round(max(call["peak_MB"] for call in calls)),
        "baseline": found.baseline,
        "winner": found.winner,
        "recommendation": found.recommendation,
        "methods": [line(c) for c in found.candidates],
    }


def summary(made: dict[str, Any]) -> str:
    """The result as a table of docs/tables.md, the best on inner rows first."""

    def signed(x: float) -> str:
        return f"{x:+.3f}".replace("-", "−")

    lines = ["| method | F₂ | at ½ | against the baseline | p | Brier |", "|---|---:|---:|---:|---:|---:|"]
    for m in sorted(made["methods"], key=lambda m: -m["inner"]):
        mean, low, high = m["score"]
        apart = m["difference"]
        words = "baseline" if apart is None else f"{signed(apart[0])} [{signed(apart[1])}, {signed(apart[2])}]"
        p = "–" if m["p"] is None else f"{m['p']:.2g}"
        cells = f"{mean:.3f} [{low:.3f}, {high:.3f}] | {m['at_half'][0]:.3f} | {words} | {p} | {m['brier']:.5f}"
        lines.append(f"| {m['method']} | {cells} |")
    spent = f"{made['wall_seconds'] / 60:.0f} minutes and {made['peak_MB']} MB at most on {made['cpus']} cores"
    lines += ["", f"{made['rows']:,} payments, {made['positives']} frauds, {made['seeds']} splits by time, "]
    lines[-1] += f"{made['folds']} inner folds; {spent}. {made['recommendation']}"
    return "\n".join(lines)


def main() -> None:
    """Compare, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="creditcard", help="the set's name, or a file with Time and Class")
    parser.add_argument("--models", default="linear,mlp,xgboost")
    parser.add_argument("--losses", help="names; the default six if not given")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, help="only so many rows, for a smoke test")
    parser.add_argument("--folder", type=Path, default=data.root() / "compare-creditcard")
    given = parser.parse_args()
    folder = given.folder if given.rows is None else given.folder.with_name(f"{given.folder.name}-{given.rows}")
    spent = Spent(folder.with_name(f"{folder.name}.json"))
    console = Console(stderr=True)
    with bar("epochs", console) as shown:
        at = shown.add_task("training")

        def tick(done: int, of: int) -> None:
            shown.update(at, completed=done, total=of)
            spent.note()

        found = fbeta.compare(
            read(given.data, given.rows),
            metric=METRIC,
            models=given.models.split(","),
            losses=given.losses.split(",") if given.losses else None,
            seeds=given.seeds,
            folder=folder,
            tick=tick,
        )
    made = result(found, spent.calls)
    Console(width=110).print(report.terminal(found))
    print({k: made[k] for k in ("wall_seconds", "calls", "peak_MB", "cpus")})
    if given.rows is None:
        RESULT.write_text(json.dumps(made, indent=1) + "\n")
        doc_block.write("tables.md", "creditcard", summary(made))


if __name__ == "__main__":
    main()

"""Threads of boosters: from which size a second one pays, and what a busy machine makes of several.

    python benchmarks/boosting_threads.py            # keeps what it finds in results/boosting-threads.{json,md}
    python benchmarks/boosting_threads.py --dry      # print only

*Sizes*: one booster on made-up rows, with one thread and with as many as there are cores, at several rows × columns ×
rounds. *Estimators*: cross-fitting, cut and all with 1,875 rows, as the machine is and beside as many busy processes as
there are cores. Candidates take turns within a repeat, and ratios are taken inside it, so that whoever else
is at work slows all of them; wall time and processor time, median and range.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import doc_block
import lightgbm
import numpy as np
import xgboost
from sklearn.model_selection import TunedThresholdClassifierCV

from fbeta.boosting import LGBMMetricClassifier, XGBMetricClassifier

RESULTS = Path(__file__).parent / "results"
CORES = os.cpu_count() or 1
#: Rows, columns, rounds.
SIZES = (
    *((rows, 30, 10) for rows in (2_000, 10_000, 30_000, 60_000, 120_000)),
    (10_000, 180, 10),
    (180_000, 10, 10),
    (10_000, 30, 50),
)
ROWS, COLUMNS, ROUNDS = 1_875, 20, 10

Run = Callable[[], Any]


def made(rows: int, columns: int) -> tuple[Any, Any]:
    """A table with 8 % positives."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    return X, (X[:, :5].sum(1) + rng.logistic(size=rows) > 4).astype(int)


def trainers(rows: int, columns: int, rounds: int) -> dict[str, Run]:
    """Both libraries on binned rows, with one thread and with all; one tree is grown first, to be fair to the first."""
    X, y = made(rows, columns)
    found: dict[str, Run] = {}
    for threads in (1, CORES):
        plain = {"objective": "binary:logistic", "nthread": threads}
        light = {"objective": "binary", "num_threads": threads, "verbosity": -1, "force_row_wise": True}
        binned = xgboost.QuantileDMatrix(X, y, nthread=threads)
        dataset = lightgbm.Dataset(X, y, params=light).construct()

        def grow(count: int, plain: Any = plain, binned: Any = binned) -> Any:
            return xgboost.train(plain, binned, count)

        def grow_light(count: int, light: Any = light, dataset: Any = dataset) -> Any:
            return lightgbm.train(light, dataset, count)

        both: dict[str, Callable[[int], Any]] = {"xgboost": grow, "lightgbm": grow_light}
        for name, each in both.items():
            each(1)
            found[f"{name}, {threads}"] = partial(each, rounds)
    return found


def estimators() -> dict[str, Run]:
    """Ours: as it comes, folds one by one, several threads in each fold; and scikit-learn's."""
    X, y = made(ROWS, COLUMNS)
    found: dict[str, Run] = {}
    ours: dict[str, Any] = {
        "xgboost": (XGBMetricClassifier, "nthread"),
        "lightgbm": (LGBMMetricClassifier, "num_threads"),
    }
    theirs: dict[str, Any] = {"xgboost": xgboost.XGBClassifier, "lightgbm": lightgbm.LGBMClassifier}
    for name, (cls, threads) in ours.items():
        options: dict[str, Any] = {"loss": "bce", "n_estimators": ROUNDS, "random_state": 0, "ensemble": False}
        candidates: dict[str, Any] = {
            "ours": cls("f1", **options),
            "ours, folds one by one": cls("f1", n_jobs=1, **options),
            "ours, threads in a fold": cls("f1", n_jobs=1, params={threads: CORES}, **options),
        }
        quiet: dict[str, Any] = {} if name == "xgboost" else {"verbosity": -1}
        for said, jobs in (("theirs", None), ("theirs, one thread", 1)):
            plain = theirs[name](n_estimators=ROUNDS, n_jobs=jobs, **quiet)
            candidates[said] = TunedThresholdClassifierCV(plain, scoring="f1")
        found |= {f"{name}, {said}": partial(model.fit, X, y) for said, model in candidates.items()}
    return found


def timed(runs: dict[str, Run], repeats: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of every candidate, by the clock and of the processor, repeat by repeat."""
    found: dict[str, dict[str, list[float]]] = {name: {"wall": [], "cpu": []} for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            found[name]["wall"].append(time.perf_counter() - wall)
            found[name]["cpu"].append(time.process_time() - cpu)
    return found


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """So many processes that only count."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def measure(repeats: int) -> dict[str, Any]:
    """Sizes, then estimators, quiet and busy."""
    load = os.getloadavg()[0]
    sizes = []
    for rows, columns, rounds in SIZES:
        sizes.append({"size": [rows, columns, rounds], "seconds": timed(trainers(rows, columns, rounds), repeats)})
        print(rows, columns, rounds, flush=True)
    alone = timed(estimators(), repeats)
    print("estimators", flush=True)
    with neighbours(CORES):
        beside = timed(estimators(), repeats)
    return {
        "cores": CORES,
        "repeats": repeats,
        "load": load,
        "versions": {"xgboost": xgboost.__version__, "lightgbm": lightgbm.__version__},
        "sizes": sizes,
        "as it is": alone,
        "busy": beside,
    }


def ratio(seconds: dict[str, Any], one: str, other: str, clock: str = "wall") -> str:
    """Median and range of a ratio within repeats."""
    ratios = [a / b for a, b in zip(seconds[one][clock], seconds[other][clock], strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def render(found: dict[str, Any]) -> str:
    """Both tables."""
    cores = found["cores"]
    lines = [
        "# Threads of boosters",
        "",
        f"{cores} cores, load {found['load']:.1f} before (others were at work), {found['repeats']} repeats; xgboost "
        f"{found['versions']['xgboost']}, lightgbm {found['versions']['lightgbm']}. "
        "`python benchmarks/boosting_threads.py`",
        "",
        f"## Sizes: {cores} threads over one, time of the clock and of the processor, median and range",
        "",
        "| rows × columns, rounds | numbers | xgboost, clock | processor | lightgbm, clock | processor |",
        "|---|---|---|---|---|---|",
    ]
    for each in found["sizes"]:
        rows, columns, rounds = each["size"]
        shown = [
            ratio(each["seconds"], f"{name}, {cores}", f"{name}, 1", clock)
            for name in ("xgboost", "lightgbm")
            for clock in ("wall", "cpu")
        ]
        lines.append(f"| {rows:,} × {columns}, {rounds} | {rows * columns:,} | {' | '.join(shown)} |")
    lines += [
        "",
        f"## Estimators: {ROWS:,} rows × {COLUMNS} columns, {ROUNDS} rounds, five folds, plain cross entropy",
        "",
        "`theirs` is scikit-learn's TunedThresholdClassifierCV around the library's own classifier. Seconds, medians: "
        "of the clock, of the processor, and the ratio of the clock's to theirs; as the machine is, and beside as many "
        "busy processes as there are cores.",
        "",
        "| | as it is: clock | processor | over theirs | busy: clock | processor | over theirs |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in found["busy"]:
        theirs, shown = f"{name.partition(', ')[0]}, theirs", []
        for state in ("as it is", "busy"):
            seconds = found[state]
            shown += [f"{statistics.median(seconds[name][clock]):.2f}" for clock in ("wall", "cpu")]
            shown.append(ratio(seconds, name, theirs))
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join([*lines, ""])


def summary(found: dict[str, Any]) -> str:
    """What docs/boosting.md says."""

    def said(state: str, name: str, clock: str = "wall") -> str:
        return f"{statistics.median(found[state][name][clock]):.2f}"

    small, large = found["sizes"][0], max(found["sizes"], key=lambda each: each["size"][0] * each["size"][1])
    shown = []
    for name in ("xgboost", "lightgbm"):
        busy, work = (
            f"{said(state, f'{name}, ours', clock)} s, {said(state, f'{name}, ours, threads in a fold', clock)} s with "
            f"several threads in each fold, and {said(state, f'{name}, theirs', clock)} s of scikit-learn's"
            for state, clock in (("busy", "wall"), ("as it is", "cpu"))
        )
        alone = ratio(found["as it is"], f"{name}, ours", f"{name}, theirs, one thread", "cpu")
        gains = [ratio(each["seconds"], f"{name}, {found['cores']}", f"{name}, 1") for each in (small, large)]
        shown.append(
            f"{name}: {busy}; processor time without busy neighbours of ours {work}, and {alone} of theirs with one "
            f"thread; {found['cores']} threads take {gains[0]} of the time of one at {small['size'][0]:,} × "
            f"{small['size'][1]} and {gains[1]} at {large['size'][0]:,} × {large['size'][1]}"
        )
    return (
        f'`loss="bce"` and `TunedThresholdClassifierCV`, {ROWS:,} rows, {found["cores"]} cores and as many busy '
        f"neighbours, median seconds of {found['repeats']} repeats, ratios with their range. {'. '.join(shown)}. "
        f"Others were at work on the machine, too (load {found['load']:.0f}): read ratios, not seconds "
        "([boosting-threads.md](../benchmarks/results/boosting-threads.md))."
    )


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--dry", action="store_true", help="print, keep nothing")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", "X does not have valid feature names")
    found = measure(given.repeats)
    print(render(found))
    if not given.dry:
        (RESULTS / "boosting-threads.json").write_text(json.dumps(found, indent=1) + "\n")
        (RESULTS / "boosting-threads.md").write_text(render(found))
        doc_block.write("boosting.md", "threads", summary(found) + "\n")


if __name__ == "__main__":
    main()

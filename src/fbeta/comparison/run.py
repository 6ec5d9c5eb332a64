"""Compare: a plan, the scores that come of it, and what follows from them."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fbeta.comparison import tasks
from fbeta.comparison.folder import Folder
from fbeta.comparison.judging import Judged, compared, judge
from fbeta.comparison.plan import Method, Names, Plan, check
from fbeta.comparison.result import Comparison
from fbeta.comparison.tasks import Progress
from fbeta.data import load_table, root
from fbeta.metrics import Metric
from fbeta.tables import Table
from fbeta.tables.table import digest


def _aloud(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def compare(
    data: Any,
    target: str | None = None,
    *,
    metric: Metric | str | Any = "fbeta:beta=1",
    models: Names = None,
    losses: Names = None,
    seeds: int = 5,
    folds: int = 5,
    rule: str = "shrunk",
    seed: int = 0,
    device: str = "cpu",
    folder: Path | str | None = None,
    jobs: int | None = 1,
    train: bool = True,
    tick: Progress = lambda done, of: None,
    say: Callable[[str], None] = _aloud,
    **options: Any,
) -> Comparison:
    """Compare losses and cuts on a table: which is best, by how much, and is that more than noise?

    - `data`: a `Table`, a path, or the name of a set; `options` are those of `fbeta.data.load_table`.
    - `models`, `losses`: names; those installed and a sensible six unless given.
    - `seeds`: outer splits. `folds`: inner folds, shared by all methods. `rule`: how the cut is chosen.
    - `folder`: keeps finished parts, so that a killed comparison goes on and ends with the same numbers; processes
      that share one divide the work.
    - `jobs`: processes to train in; None is as many as there are cores where the table is small. Other backends of
      joblib take over inside ``joblib.parallel_config(…)``.
    - `train`: False takes the splits that the folder holds whole, and trains nothing.
    - `tick`: is told how many of how many epochs are done (a booster counts as ten). `say`: of what goes wrong.

    >>> from fbeta.data import load_table
    >>> found = compare(load_table("breast-cancer"), models=["linear"], losses=["tangent"], seeds=2, folds=2)
    >>> [candidate.name for candidate in found.candidates], found.baseline
    (['linear, bce', 'linear, tangent'], 'linear, bce')

    Reference: [nadeau2003]
    """
    began = time.perf_counter()
    goal, methods = check(metric, models, losses, rule=rule, device=device)
    table = data if isinstance(data, Table) else load_table(data, target, **options)
    plan = Plan.make(table, goal, methods, seeds, folds, seed)
    kept = None if folder is None else Folder(folder, say)
    if train:
        scores = tasks.train(plan, table, goal, device=device, folder=kept, jobs=jobs, tick=tick)
    else:
        there = ((part, kept.read(part)) for part in plan.parts) if kept is not None else ()
        scores = ((part, found) for part, found in there if found is not None)
    y = table.y.astype(np.int64)
    judged: dict[int, dict[Method, Judged]] = {k: {} for k in range(seeds)}
    for part, found in scores:
        for loss, x in found.items():
            method = Method(part.model, loss)
            judged[part.split][method] = judge(x, y, plan.splits[part.split], goal, rule)
    whole = {k: found for k, found in judged.items() if len(found) == len(methods)}
    if not whole:
        raise ValueError("no split is finished by all methods yet; train first, or ask for fewer methods.")
    done = compared(table, goal, methods, list(whole.values()), [plan.splits[k] for k in whole], rule)
    version = torch.__version__.partition("+")[0]
    machine = f"{platform.machine()}, {torch.get_num_threads()} threads, torch {version}"
    return replace(done, folds=folds, seconds=time.perf_counter() - began, machine=machine)


def usual_folder(table: Table) -> Path:
    """Where the finished parts of a table are kept if nobody says where."""
    return root() / "compare" / digest(table)[:16]

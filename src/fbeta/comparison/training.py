"""From a plan to scores: the parts are trained by joblib, here or in other processes, and kept in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from fbeta.comparison.plan import Part, Plan, Split
from fbeta.comparison.scores import Folder, Scores
from fbeta.learners import Goal, Learner, Rows, models
from fbeta.learners.threads import threads_for
from fbeta.metrics import Custom, Metric
from fbeta.tables import Encoder, Table

#: Is told how many of how many steps are done.
Progress = Callable[[int, int], None]
#: Rows times parts for which more processes are worth the seconds that they take to start.
WORTH = 20_000


def train(
    plan: Plan,
    table: Table,
    metric: Metric,
    *,
    device: str = "cpu",
    folder: Folder | None = None,
    jobs: int | None = 1,
    tick: Progress = lambda done, of: None,
) -> Iterator[tuple[Part, dict[str, Scores]]]:
    """The scores of every part, as they come: read from the folder, or trained and kept there.

    `jobs`: processes; None is as many as there are cores where the table is small, or what joblib's own context says.
    """
    left, done, total = [], 0, sum(_steps(part) for part in plan.parts)
    tick(0, total)
    for part in plan.parts:
        found = None if folder is None else folder.read(part)
        if found is None:
            left.append(part)
            continue
        done += _steps(part)
        tick(done, total)
        yield part, found
    processes = _processes(jobs, table, metric, device, len(left))
    ahead = (lambda epoch: tick(done + epoch, total)) if processes == 1 else None
    work = joblib.Parallel(n_jobs=processes, return_as="generator_unordered", pre_dispatch="n_jobs")
    # Other processes have nobody to talk to; damage is said where the folder is read here.
    kept = None if folder is None else Folder(folder.path, _silent)
    for wait in (False, True):  # first what nobody is at, then what others have in hand
        tasks = (
            joblib.delayed(_train_part)(*given, metric, device, kept, wait, ahead)
            for given in _inputs(left, plan, table)
        )
        left = []
        for part, found in work(tasks):
            if found is None:
                left.append(part)
                continue
            done += _steps(part)
            tick(done, total)
            yield part, found
        if not left:
            return
        assert folder is not None
        folder.say("Another process trains the rest; its results are waited for.")


def _train_part(
    part: Part,
    X: NDArray[np.float32],
    y: NDArray[np.int64],
    split: Split,
    metric: Metric,
    device: str,
    folder: Folder | None,
    wait: bool,
    tick: Callable[[int], None] | None,
) -> tuple[Part, dict[str, Scores] | None]:
    """Train a part and keep it, or read it if another process finished it; None if one is at it and nobody waits."""
    if folder is None:
        return part, _scores(part, X, y, split, metric, device, tick)
    with folder.lock(part, wait) as held:
        if not held:
            return part, None
        found = folder.read(part)
        if found is None:
            found = _scores(part, X, y, split, metric, device, tick)
            folder.write(part, found)
    return part, found


def _scores(
    part: Part,
    X: NDArray[np.float32],
    y: NDArray[np.int64],
    split: Split,
    metric: Metric,
    device: str,
    tick: Callable[[int], None] | None,
) -> dict[str, Scores]:
    rows = Rows(X[split.train], y[split.train, None], split.fold)
    learner = learner_on(part.model, device)
    found = learner.fit_folds(
        rows, Goal(metric), part.losses, seed=split.seed, tick=tick or (lambda epoch: None)
    )
    return {
        loss: Scores(
            x.scores[:, 0],
            np.zeros(len(split.test)) if x.model is None else x.model(X[split.test])[:, 0],
            x.seconds,
            x.rounds,
            x.course,
            x.remark,
        )
        for loss, x in found.items()
    }


def learner_on(model: str, device: str) -> Learner:
    """A model, on a device where it can choose one.

    >>> learner_on("xgboost", "cpu").steps
    10
    """
    learner = models.get(model)
    return models.get(model, device=device) if hasattr(learner, "device") else learner


def _inputs(parts: list[Part], plan: Plan, table: Table) -> Iterator[tuple[Part, Any, Any, Split]]:
    """Parts with their rows, encoded as the learning rows of their split say; one split at a time."""
    y, ready = table.y.astype(np.int64), -1
    X: NDArray[np.float32] = np.empty((0, 0), np.float32)
    for part in parts:
        where = plan.splits[part.split]
        if part.split != ready:
            X = Encoder.fit(table.features[where.train], table.columns).transform(table.features)
            ready = part.split
        yield part, X, y, where


def _silent(sentence: str) -> None:
    pass


def _steps(part: Part) -> int:
    return models.get(part.model).steps


def _processes(jobs: int | None, table: Table, metric: Metric, device: str, parts: int) -> int:
    """How many processes to train in: no more than there are parts, and one for what other processes cannot get."""
    _, offered = get_active_backend()
    wanted = jobs
    if jobs is None:
        small = threads_for(len(table) * len(table.columns)) == 1
        worth = small and len(table) * parts > WORTH and device == "cpu"
        wanted = offered if offered not in (None, 1) else joblib.cpu_count() if worth else 1
    assert wanted is not None
    if isinstance(metric, Custom) and wanted > 1:
        if jobs is not None:
            raise ValueError(
                f"{metric} is a plain function, which other processes cannot get: leave jobs out."
            )
        return 1
    return max(1, min(wanted, parts)) if wanted > 0 else wanted

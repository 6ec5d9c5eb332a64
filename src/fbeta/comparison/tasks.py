"""From a plan to scores: its parts are trained by joblib, here or in other processes, and kept in a folder."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from fbeta.comparison.folder import Folder, SplitScores
from fbeta.comparison.plan import Part, Plan, Split
from fbeta.learners import Goal, Learner, Rows, models
from fbeta.learners.learner import Tick
from fbeta.learners.machine import threads_for
from fbeta.metrics import Custom, Metric
from fbeta.tables import Encoder, Table

#: Is told how many of how many steps are done.
Progress = Callable[[int, int], None]
#: Rows times parts for which more processes are worth the seconds that they take to start.
WORTH = 20_000


def _silent(_: Any) -> None:
    """Other processes have nobody to talk to."""


@dataclass(frozen=True, eq=False)
class Task:
    """A part to train, with all rows of the table, encoded by the learning rows of its split."""

    part: Part
    X: NDArray[np.float32]
    y: NDArray[np.int64]
    split: Split
    metric: Metric
    device: str = "cpu"

    def train(self, tick: Tick = _silent) -> dict[str, SplitScores]:
        """Train the part; its scores by loss."""
        train, test = self.split.train, self.X[self.split.test]
        rows = Rows(self.X[train], self.y[train, None], self.split.fold)
        learner = learner_on(self.part.model, self.device)
        fitted = learner.fit_folds(rows, Goal(self.metric), self.part.losses, seed=self.split.seed, tick=tick)
        found = {}
        for loss, x in fitted.items():
            outer = np.zeros(len(test)) if x.model is None else x.model(test)[:, 0]
            found[loss] = SplitScores(x.scores[:, 0], outer, x.seconds, x.rounds, x.course, x.remark)
        return found

    def finish(self, folder: Folder | None, wait: bool, tick: Tick) -> tuple[Part, dict[str, SplitScores] | None]:
        """Train and keep, or read what another process finished; None if one is training it and `wait` is False."""
        if folder is None:
            return self.part, self.train(tick)
        with folder.lock(self.part, wait) as held:
            found = folder.read(self.part) if held else None
            if held and found is None:
                found = self.train(tick)
                folder.write(self.part, found)
        return self.part, found


def train(
    plan: Plan,
    table: Table,
    metric: Metric,
    *,
    device: str = "cpu",
    folder: Folder | None = None,
    jobs: int | None = 1,
    tick: Progress = lambda done, of: None,
) -> Iterator[tuple[Part, dict[str, SplitScores]]]:
    """The scores of every part, as they come: read from the folder, or trained in so many processes and kept there."""
    left, done, total = [], 0, sum(map(_steps, plan.parts))
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
    ahead = (lambda epoch: tick(done + epoch, total)) if processes == 1 else _silent
    work = joblib.Parallel(n_jobs=processes, return_as="generator_unordered", pre_dispatch="n_jobs")
    kept = None if folder is None else Folder(folder.path, _silent)  # damage is reported above
    for wait in (False, True):  # first what is free, then what other processes are training
        tasks = tasks_of(left, plan, table, metric, device)
        left = []
        for part, found in work(joblib.delayed(Task.finish)(task, kept, wait, ahead) for task in tasks):
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


def tasks_of(parts: list[Part], plan: Plan, table: Table, metric: Metric, device: str) -> Iterator[Task]:
    """Parts with their rows; the rows of one split are encoded at a time."""
    y, ready = table.y.astype(np.int64), -1
    for part in parts:
        split = plan.splits[part.split]
        if part.split != ready:
            X = Encoder.fit(table.features[split.train], table.columns).transform(table.features)
            ready = part.split
        yield Task(part, X, y, split, metric, device)


def learner_on(model: str, device: str) -> Learner:
    """A model, on a device where it can choose one."""
    learner = models.get(model)
    return models.get(model, device=device) if hasattr(learner, "device") else learner


def _steps(part: Part) -> int:
    return models.get(part.model).steps


def _processes(jobs: int | None, table: Table, metric: Metric, device: str, parts: int) -> int:
    """How many processes to train in: at most one per part, and one for a metric that cannot be sent to others."""
    if isinstance(metric, Custom):
        if jobs is not None and jobs > 1:
            raise ValueError(f"{metric} is a plain function, which other processes cannot get: leave jobs out.")
        return 1
    if jobs is None:
        _, offered = get_active_backend()
        small = threads_for(len(table) * len(table.columns)) == 1
        worth = small and len(table) * parts > WORTH and device == "cpu"
        jobs = offered if offered not in (None, 1) else joblib.cpu_count() if worth else 1
    return max(1, min(jobs, parts)) if jobs > 0 else jobs

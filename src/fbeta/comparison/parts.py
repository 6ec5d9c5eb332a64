"""From a plan to scores: its parts are trained by joblib, here or in other processes, and kept in a folder."""

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from joblib.externals.loky.backend.reduction import dumps
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from fbeta.comparison.folder import Folder, SplitScores
from fbeta.comparison.plan import Part, Plan, Split
from fbeta.learners import Goal, Rows
from fbeta.learners.crossfit import Array
from fbeta.learners.learner import Tick
from fbeta.learners.machine import threads_for
from fbeta.metrics import Custom, Metric
from fbeta.tables import Encoder, Table

#: Is told how many of how many steps are done.
Progress = Callable[[int, int], None]
#: Rows times parts for which more processes are worth the seconds that they take to start.
WORTH = 20_000


def _silent(_: Any) -> None:
    """Show no progress: other processes have no bar."""


@dataclass(frozen=True, eq=False)
class LoadedPart:
    """A part to train, with all rows of the table, encoded by the learning rows of its split."""

    part: Part
    X: NDArray[np.float32]
    y: NDArray[np.int64]
    split: Split
    metric: Metric
    device: str = "cpu"
    encoder: Encoder | None = None
    weight: Array | None = None

    def train(self, tick: Tick = _silent) -> dict[str, SplitScores]:
        """Train the part; its scores by loss."""
        train, test, found = self.split.train, self.X[self.split.test], {}
        X = self.X if len(train) == len(self.X) else self.X[train]
        learner: Any = self.part.learner
        if hasattr(learner, "device"):
            learner = replace(learner, device=self.device)
        weight = None if self.weight is None else self.weight[train]
        rows = Rows(X, self.y[train, None], self.split.fold, weight, ordered=self.split.ordered)
        fitted = learner.fit_folds(rows, Goal(self.metric), self.part.losses, seed=self.split.seed, tick=tick)
        for loss, x in fitted.items():
            outer, kept = np.zeros(len(test)), None
            model = x.answering(self.part.ensemble)
            if model is not None and len(test):
                outer = model(test)[:, 0]
            elif model is not None and self.encoder is not None:  # no rows to judge by: the model itself is wanted
                kept = self.encoder, model
            how = x.seconds, x.rounds, x.course, x.remark, x.calibration
            found[loss] = SplitScores(x.scores[:, 0], outer, *how, kept)
        return found

    def finish(self, folder: Folder | None, wait: bool, tick: Tick) -> tuple[Part, dict[str, SplitScores] | None]:
        """Train and keep, or read what another process finished; None if one is training it and `wait` is False."""
        if folder is None or not self.part.learner.cached:
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
    *,
    device: str = "cpu",
    folder: Folder | None = None,
    jobs: int | None = 1,
    tick: Progress = lambda done, of: None,
    say: Callable[[str], None] = _silent,
    minutes: float = math.inf,
) -> Iterator[tuple[Part, dict[str, SplitScores]]]:
    """The scores of every part, as they come: read from the folder, or trained in so many processes and kept there.

    No part is begun after so many `minutes`; what was begun is finished.
    """
    end = time.monotonic() + 60 * minutes
    left, done, total = [], 0, steps_of(plan.parts)
    tick(0, total)
    for part in plan.parts:
        found = None if folder is None else folder.read(part)
        if found is None:
            left.append(part)
            continue
        done += steps_of([part])
        tick(done, total)
        yield part, found
    processes = _processes(jobs, table, plan.metric, device, len(left))
    if processes != 1 and (alone := [part.model for part in left if not _travels(part)]):
        say(f"{alone[0]} cannot be sent to other processes, so all is trained in this one.")
        processes = 1
    ahead = (lambda epoch: tick(done + epoch, total)) if processes == 1 else _silent
    work = joblib.Parallel(n_jobs=processes, return_as="generator_unordered", pre_dispatch="n_jobs")
    kept = None if folder is None else Folder(folder.path, _silent)  # damage is reported above
    for wait in (False, True):  # first what is free, then what other processes are training
        loaded = load_parts(itertools.takewhile(lambda _: time.monotonic() < end, left), plan, table, device)
        left = []
        for part, found in work(joblib.delayed(LoadedPart.finish)(each, kept, wait, ahead) for each in loaded):
            if found is None:
                left.append(part)
                continue
            done += steps_of([part])
            tick(done, total)
            yield part, found
        if not left:
            return
        assert folder is not None
        folder.say("Another process trains the rest; its results are waited for.")


def _travels(part: Part) -> bool:
    """Whether another process can get what learns."""
    try:
        dumps(part.given)
    except Exception:  # what an object of the reader's does when it is pickled is up to it
        return False
    return True


def load_parts(parts: Iterable[Part], plan: Plan, table: Table, device: str = "cpu") -> Iterator[LoadedPart]:
    """Parts with their rows; the rows of one split are encoded at a time."""
    y, ready = table.y.astype(np.int64), -1
    for part in parts:
        split = plan.splits[part.split]
        if part.split != ready:
            learned = table.features if len(split.train) == len(table) else table.features[split.train]
            encoder = Encoder.fit(learned, table.columns)
            X, ready = encoder.transform(table.features), part.split
        yield LoadedPart(part, X, y, split, plan.metric, device, encoder, table.weight)


def steps_of(parts: Iterable[Part]) -> int:
    """How many steps a progress bar shows for parts."""
    return sum(part.learner.steps for part in parts)


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

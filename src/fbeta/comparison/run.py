"""Compare: outer splits, inner folds shared by all methods; the work is done part by part."""

from __future__ import annotations

import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fbeta.comparison import judging
from fbeta.comparison.crew import cores, crew, reap
from fbeta.comparison.kept import Kept, machine
from fbeta.comparison.kept import fingerprint as fingerprint
from fbeta.comparison.learned import Learned, Task
from fbeta.comparison.methods import Method, baseline, plan
from fbeta.comparison.parts import Part, Tick, parts
from fbeta.comparison.result import Comparison
from fbeta.comparison.verdict import Split, compared
from fbeta.data import load_table
from fbeta.decisions import rule as read_rule
from fbeta.learners.devices import device_of, threads, threads_for
from fbeta.metrics import Custom, Metric
from fbeta.metrics import metric as read_metric
from fbeta.tables import Encoder, Table, TableError, split
from fbeta.train.ledger import Ledger, NotHeldError

#: Outer splits are folds of one deal, then of the next: so each row is judged about as often as any other.
OUTER = 5
#: Rows times parts for which more processes are worth the seconds that they take to start.
WORTH = 20_000
#: Seconds between two looks at what another process trains.
PAUSE = 1.0


def _silent(*what: Any) -> None:
    pass


def _aloud(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def compare(
    data: Any,
    target: str | None = None,
    *,
    metric: Metric | str | Any = "fbeta:beta=1",
    models: str | Sequence[str] | None = None,
    losses: str | Sequence[str] | None = None,
    seeds: int = 5,
    folds: int = 5,
    rule: str = "shrunk",
    seed: int = 0,
    device: str = "cpu",
    folder: Path | str | None = None,
    jobs: int | None = 1,
    train: bool = True,
    tick: Tick = lambda done, of: None,
    say: Callable[[str], None] = _aloud,
    **options: Any,
) -> Comparison:
    """Compare losses and cuts on a table: which is best, by how much, and is that more than noise?

    - `data`: a `Table`, a path, or the name of a set; `options` are those of `fbeta.data.load_table`.
    - `models`, `losses`: names; those installed and a sensible six unless given.
    - `seeds`: outer splits. `folds`: inner folds, shared by all methods. `rule`: how the cut is chosen.
    - `folder`: keeps finished parts, so that a killed comparison goes on and ends with the same numbers; processes
      that share one divide the work.
    - `jobs`: processes to train in, one thread each; None is as many as there are cores where the table is small.
    - `train`: False takes what the folder holds, the splits that all methods have finished, and trains nothing.
    - `tick`: is told how many of how many epochs are done (a booster counts as ten). `say`: of what goes wrong.

    >>> from fbeta.data import load_table
    >>> found = compare(load_table("breast-cancer"), models=["linear"], losses=["tangent"], seeds=2, folds=2)
    >>> [candidate.name for candidate in found.candidates], found.baseline
    (['linear, bce', 'linear, tangent'], 'linear, bce')

    Reference: [nadeau2003]
    """
    began = time.perf_counter()
    goal, on = read_metric(metric), device_of(device)
    read_rule(rule)  # a wrong one must not be found after hours of training
    table = data if isinstance(data, Table) else load_table(data, target, **options)
    if table.time is not None and seeds > OUTER:
        raise ValueError(
            f"By time there are {OUTER} outer splits, and chance makes no more; ask for {OUTER} seeds at most."
        )
    methods = plan(models, losses, goal)
    work = _Work(table, goal, methods, seeds, folds, seed, on, tick, say)
    todo, _ = work.parts, work.tasks  # rows that cannot be split leave no folder behind
    processes = work.deserves if jobs is None else jobs
    if isinstance(goal, Custom) and processes > 1:
        if jobs is not None:
            raise ValueError(f"{goal} is a plain function, which other processes cannot get: leave jobs out.")
        processes = 1
    judged: dict[int, dict[str, Split]] = {k: {} for k in range(seeds)}
    with ExitStack() as open_until_done:
        kept = None
        if folder is None and processes > 1:
            folder = open_until_done.enter_context(tempfile.TemporaryDirectory())
        if folder is not None:
            kept = open_until_done.enter_context(work.opened(folder))
            processes = min(processes, sum(not kept.has(part) for part in todo))
            if train and processes > 1:
                open_until_done.enter_context(threads(1))
                job = partial(_assist, work.alone, folder)
                open_until_done.enter_context(crew(processes - 1, job))
        for part, found in work.learned(todo, kept, processes) if train else work.finished(todo, kept):
            for method in part.methods:
                learned = found[method.loss]
                outcome = judging.judge(work.tasks[part.split], learned, rule)
                judged[part.split][method.name] = Split(learned.course, outcome)
    whole = {k: found for k, found in judged.items() if len(found) == len(methods)}
    if not whole:
        raise ValueError("no split is finished by all methods yet; train first, or ask for fewer methods.")
    results = {m.name: [found[m.name] for found in whole.values()] for m in methods}
    done = compared(table, goal, methods, baseline(methods), results, [work.tasks[k] for k in whole], rule)
    return replace(done, folds=folds, seconds=time.perf_counter() - began, machine=_machine())


def tasks(table: Table, metric: Metric, seeds: int, folds: int, seed: int) -> Iterator[Task]:
    """The outer splits and their inner folds; the features of a split come when it is trained, see `encoded`."""
    y = table.y.astype(np.int64)
    if table.time is None and table.fewest < OUTER:
        raise TableError(
            f"{table.name} has a class of only {table.fewest} rows or groups of rows: a comparison needs {OUTER}, one "
            "in the test rows of each outer split, so bring more of them."
        )
    for k in range(seeds):
        outer = split(table, OUTER, seed + k // OUTER)
        train, test = outer.train(k % OUTER), outer.test(k % OUTER)
        # By time only outside: all of these rows are the past, and each must be held once.
        learnt = replace(table.take(train), time=None, name=f"what split {k + 1} of {table.name} learns from")
        inner = split(learnt, folds, seed + 1000 + k)
        yield Task(np.empty((0, 0), np.float32), y, train, test, inner.ids, metric, seed + k)


def encoded(table: Table, task: Task) -> Task:
    """A split with its features, which its learning rows alone say how to encode.

    Shape: how many there are may differ from split to split: a level may be missing among the rows of one.
    """
    X = Encoder.fit(table.features[task.train], table.columns).transform(table.features)
    return replace(task, X=X)


@dataclass
class _Work:
    """The splits of a table, and the training of parts on them."""

    table: Table
    metric: Metric
    methods: Sequence[Method]
    seeds: int
    folds: int
    seed: int
    device: torch.device
    tick: Tick
    say: Callable[[str], None]
    _ready: tuple[int, Task] | None = None

    @cached_property
    def tasks(self) -> list[Task]:
        """The splits, without their features."""
        return list(tasks(self.table, self.metric, self.seeds, self.folds, self.seed))

    @property
    def parts(self) -> list[Part]:
        """All that is to be trained."""
        return parts(self.methods, self.seeds, self.seed)

    @property
    def alone(self) -> _Work:
        """The same for another process, which has no bar and nobody to talk to."""
        plan = self.methods, self.seeds, self.folds, self.seed, self.device
        return _Work(self.table, self.metric, *plan, _silent, _silent)

    @property
    def deserves(self) -> int:
        """How many processes are worth their start: one for a large table, which has work for all threads of a step."""
        small = threads_for(len(self.table) * len(self.table.columns)) == 1
        long = len(self.table) * len(self.parts) > WORTH
        return cores() if small and long and self.device.type == "cpu" else 1

    @contextmanager
    def opened(self, folder: Path | str) -> Iterator[Kept]:
        """The folder of finished parts."""
        wanted = fingerprint(self.table, self.metric, self.folds)
        with Ledger(folder, wanted, may_differ=("machine", "end")) as ledger:
            yield Kept(ledger, self.say)

    def finished(self, todo: Sequence[Part], kept: Kept | None) -> Iterator[tuple[Part, dict[str, Learned]]]:
        """The parts that are there."""
        for part in todo:
            found = None if kept is None else kept.finished(part)
            if found is not None:
                yield part, found

    def learned(
        self, todo: Sequence[Part], kept: Kept | None, processes: int
    ) -> Iterator[tuple[Part, dict[str, Learned]]]:
        """Every part, read or trained; what others train comes when they have, said aloud if none are our own."""
        total, done, said = sum(part.steps for part in todo), 0, processes > 1
        self.tick(done, total)
        left = list(todo)
        while left:
            found = list(self.finished(left, kept)) or self._next(
                left, kept, partial(self._ahead, done, total)
            )
            for part, learned in found:
                left.remove(part)
                done += part.steps
                self.tick(done, total)
                yield part, learned
            if not found:
                if not said:
                    self.say("Another process trains the rest; its results are waited for.")
                    said = True
                reap()
                time.sleep(PAUSE)

    def _next(
        self, left: Sequence[Part], kept: Kept | None, tick: Callable[[int], None]
    ) -> list[tuple[Part, dict[str, Learned]]]:
        """The first part that no other process is at, trained; none if they are at all of them."""
        for part in left:
            if (found := self.learn(part, kept, tick)) is not None:
                return [(part, found)]
        return []

    def _ahead(self, before: int, total: int, epoch: int) -> None:
        self.tick(before + epoch, total)

    def learn(self, part: Part, kept: Kept | None, tick: Callable[[int], None]) -> dict[str, Learned] | None:
        """Read a part, or train it; None if another process is at it."""
        if kept is None:
            return self._train(part, None, tick)
        found = kept.finished(part)
        if found is None and kept.take(part):
            try:
                found = kept.resumed(part)  # somebody may have finished it since we looked
                if found is None:
                    found = self._train(part, kept.checkpoint(part), tick)
                    kept.write(part, found, machine(self.device))
            except NotHeldError:  # this process slept, and another one took the part over
                return None
            finally:
                kept.release(part)
        return found

    def _train(self, part: Part, checkpoint: Path | None, tick: Callable[[int], None]) -> dict[str, Learned]:
        if self._ready is None or self._ready[0] != part.split:
            self._ready = None  # there need not be room for two
            self._ready = part.split, encoded(self.table, self.tasks[part.split])
        return part.train(self._ready[1], self.device, checkpoint, tick)


def _assist(work: _Work, folder: Path | str, alive: Callable[[], None]) -> None:
    """Train parts from the end of the list, while the process that leads goes on from its beginning."""
    with work.opened(folder) as kept:
        for part in reversed(work.parts):
            alive()
            work.learn(part, kept, lambda epoch: alive())


def _machine() -> str:
    version = torch.__version__.partition("+")[0]
    return f"{platform.machine()}, {torch.get_num_threads()} threads, torch {version}"

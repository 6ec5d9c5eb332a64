"""Linear models and MLPs of a comparison: all losses and inner folds of a split as one stacked program."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fbeta import losses
from fbeta.artifact import Network
from fbeta.comparison.learned import Floats, Learned, Task
from fbeta.comparison.result import Epochs
from fbeta.comparison.words import collapse
from fbeta.decisions import tune
from fbeta.learners.devices import threads, threads_for
from fbeta.learners.tables import TableMember, TableStack
from fbeta.metrics import Confusion
from fbeta.train.checkpoint import load, save

#: What a random stream is for: the first words of its key.
START, ORDER = 10, 11


@dataclass(frozen=True)
class Recipe:
    """What is the same for every loss: the search budget is the number of epochs, of which each takes its best."""

    hidden: tuple[int, ...] = ()
    epochs: int = 30
    patience: int = 6
    batch: int | None = None
    rate: float = 3e-3
    decay: float = 1e-4
    averaged: bool = False

    def batch_of(self, rows: int) -> int:
        """A hundred steps an epoch or so, of 32 to 1,024 rows."""
        return self.batch or int(np.clip(rows // 100, 32, 1024))

    def rate_of(self, steps: int) -> float:
        """With fewer steps longer ones, ten times at most: an epoch of a small table goes as far as of a large one."""
        return self.rate * float(np.clip(100 / steps, 1, 10))


RECIPES = {"linear": Recipe(rate=1e-2), "mlp": Recipe(hidden=(64, 64), averaged=True)}


class NetworkRuns:
    """All losses on one split; epoch by epoch, so that it can be stopped, saved and taken up again."""

    def __init__(self, task: Task, names: Sequence[str], recipe: Recipe, device: torch.device) -> None:
        self.task, self.names, self.recipe = task, list(names), recipe
        rows = [task.train, *(task.train[task.fold != f] for f in range(task.folds))]
        members = [
            TableMember(part, name, task.metric, (START, task.seed, i), (ORDER, task.seed, i))
            for name in self.names
            for i, part in enumerate(rows)
        ]
        batch = recipe.batch_of(len(task.train))
        steps = max(1, len(task.train) // batch)
        self.stack = TableStack(
            task.X,
            task.y,
            members,
            hidden=recipe.hidden,
            batch=batch,
            steps=steps,
            rate=recipe.rate_of(steps),
            decay=recipe.decay,
            averaged=recipe.averaged,
            device=device,
        )
        self.runs = [_Run(task, name, recipe.patience) for name in self.names]
        self.seconds = 0.0

    @property
    def done(self) -> bool:
        """Whether every loss has had its epochs, or has been without progress for long enough."""
        epoch = self.stack.epoch
        return epoch >= self.recipe.epochs or (epoch > 0 and all(run.ended(epoch + 1) for run in self.runs))

    def epoch(self) -> None:
        """Train all models for an epoch, and look at their rows."""
        began = time.perf_counter()
        self.stack.train_epoch()
        margins = self.stack.margins().double().cpu().numpy()
        each = self.task.folds + 1
        for i, run in enumerate(self.runs):
            if run.look(self.stack.epoch, margins[i * each : (i + 1) * each]):
                run.weights = self._network(i * each)
        self.seconds += time.perf_counter() - began

    def _network(self, member: int) -> list[NDArray[np.float32]]:
        """Weights and biases of a member, layer by layer."""
        # Members of one loss stand together already, so each lies in the stack where it was handed in.
        parts = itertools.chain(*zip(*self.stack.models, strict=True))
        return [p[member].detach().cpu().numpy().copy() for p in parts]

    def learned(self) -> dict[str, Learned]:
        """What every loss learned, at its best epoch; the time is shared evenly."""
        share = self.seconds / len(self.runs)
        return {run.name: run.learned(share) for run in self.runs}

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        tensors = dict(self.stack.state())
        for i, run in enumerate(self.runs):
            tensors |= {f"run.{i}.{name}": torch.as_tensor(x) for name, x in run.state().items()}
        save(path, tensors, {"epoch": self.stack.epoch, "seconds": self.seconds})

    def restore(self, path: Path) -> None:
        """Go on from a checkpoint."""
        tensors, meta = load(path)
        self.stack.restore({k: v for k, v in tensors.items() if not k.startswith("run.")})
        self.stack.epoch, self.seconds = int(meta["epoch"]), float(meta["seconds"])
        for i, run in enumerate(self.runs):
            prefix = f"run.{i}."
            run.restore(
                {k.removeprefix(prefix): v.numpy() for k, v in tensors.items() if k.startswith(prefix)}
            )


class _Run:
    """One loss: its course, and its scores at the best epoch so far."""

    def __init__(self, task: Task, name: str, patience: int) -> None:
        self.task, self.name, self.patience = task, name, patience
        self.best, self.score = 0, -np.inf
        self.inner: Floats = np.zeros(len(task.train))
        self.outer: Floats = np.zeros(len(task.test))
        self.weights: list[NDArray[np.float32]] = []  # of the model of all rows
        self.course: list[
            tuple[float, float, float, float]
        ] = []  # loss, score at ½, held score, share called positive
        y = task.y[task.train]
        self.loss = losses.get(
            name,
            metric=task.metric,
            class_counts=(int((y == 0).sum()), int(y.sum())),
            check=False,
            sync=False,
        ).eval()

    def ended(self, epoch: int) -> bool:
        """Whether it was without progress for long enough before this epoch, whatever is trained beside it."""
        return epoch > self.best + self.patience

    def look(self, epoch: int, margins: Floats) -> bool:
        """Look at the scores of an epoch; whether it is the best so far."""
        task = self.task
        y = task.y[task.train]
        inner = np.empty(len(task.train))
        for f in range(task.folds):
            inner[task.fold == f] = margins[f + 1, task.train[task.fold == f]]
        mine = margins[0, task.train]
        sound = bool(np.isfinite(inner).all() and np.isfinite(margins[0]).all())
        held = tune(inner, y, task.metric).score if sound else -np.inf
        with torch.no_grad():
            loss = float(self.loss(torch.from_numpy(mine), torch.from_numpy(y).double()))
        called = mine >= 0
        at_half = float(task.metric(Confusion.from_predictions(called * 1.0, y)))
        self.course.append((loss, at_half, held, float(called.mean())))
        better = held > self.score + 1e-9 and not self.ended(epoch)
        if better:
            self.best, self.score = epoch, held
            self.inner, self.outer = inner, margins[0, task.test]
        return bool(better)

    def learned(self, seconds: float) -> Learned:
        loss, score, held, share = zip(*self.course, strict=True)
        course = Epochs(loss=tuple(loss), score=tuple(score), held=tuple(held))
        words = collapse(share, self.best)
        model = None
        if self.weights:
            model = Network(tuple(self.weights[::2]), tuple(bias[0] for bias in self.weights[1::2]))
        return Learned(self.inner, self.outer, seconds, self.best, course, words, model)

    def state(self) -> dict[str, Any]:
        return {
            "course": np.array(self.course),
            "inner": self.inner,
            "outer": self.outer,
            "best": np.array([self.best, self.score]),
            **{f"weight.{i}": w for i, w in enumerate(self.weights)},
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.course = [tuple(row) for row in state["course"].tolist()]
        self.inner, self.outer = state["inner"], state["outer"]
        self.best, self.score = int(state["best"][0]), float(state["best"][1])
        self.weights = [
            state[f"weight.{i}"] for i in range(sum(name.startswith("weight.") for name in state))
        ]


def train(
    task: Task,
    names: Sequence[str],
    recipe: Recipe,
    *,
    device: torch.device,
    checkpoint: Path | None = None,
    every: float = 20.0,
    tick: Callable[[int], None] = lambda epoch: None,
) -> dict[str, Learned]:
    """Train every loss on a split; killed at any moment it goes on from the last checkpoint."""
    runs = NetworkRuns(task, names, recipe, device)
    if checkpoint is not None and checkpoint.exists():
        runs.restore(checkpoint)
        tick(runs.stack.epoch)
    saved = time.monotonic()
    while not runs.done:
        with threads(threads_for(runs.stack.numbers)):
            runs.epoch()
        tick(runs.stack.epoch)
        if checkpoint is not None and time.monotonic() - saved > every and not runs.done:
            runs.save(checkpoint)
            saved = time.monotonic()
    return runs.learned()

"""What will be trained for a comparison, as plain data: the same plan gives the same numbers."""

import hashlib
import importlib.metadata
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from fbeta import __version__, losses
from fbeta.comparison.methods import Method, baseline_of, trained_together
from fbeta.decisions.steps import score_cells
from fbeta.learners import Learner, models
from fbeta.learners.models import INSTALLED_AS
from fbeta.metrics import Confusion, Metric
from fbeta.tables import Table, TableError, split
from fbeta.tables.table import digest

#: Outer splits are the folds of one random deal, then of the next: each row is judged about equally often. Where there
#: are times, each split is a window of later rows.
OUTER = 5
#: Goes up when the same rows and settings come to lead to other scores.
PROTOCOL = 6


@dataclass(frozen=True)
class Part:
    """A model with one loss, or with several that are trained together; `context` is what else its scores depend on.

    `ensemble`: the models of the folds answer, not that of all rows. `given` is what learns, if it is not the model
    that is known by the name.
    """

    model: str
    losses: tuple[str, ...]
    split: int
    seed: int
    context: tuple[tuple[str, Any], ...] = ()
    ensemble: bool = False
    given: Learner | None = field(default=None, compare=False, repr=False)

    @property
    def learner(self) -> Learner:
        """The model, with its settings."""
        return self.given or models.get(self.model)

    @property
    def key(self) -> str:
        """The name of its file: another one for anything that its scores depend on."""
        losses = self.losses[0] if len(self.losses) == 1 else f"{len(self.losses)}-losses"
        about = {part.name: getattr(self, part.name) for part in fields(self) if part.compare}
        digits = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()[:16]
        model = re.sub(r"[^\w+.-]", "_", self.model)[:60]
        return f"{model}-{losses}-split{self.split}-{digits}"


@dataclass(frozen=True, eq=False)
class Split:
    """One outer split, by row numbers: rows to learn from with their inner folds, and rows to be judged by.

    Splits of one `deal` test each row once at most. By time the inner folds are a chain: a model learns from the folds
    before its own, and the oldest rows, of fold −1, are never held out.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    fold: NDArray[np.int64]
    seed: int
    deal: int = 0

    @property
    def ordered(self) -> bool:
        """Whether inner folds are a chain."""
        return bool((self.fold < 0).any())

    @property
    def held(self) -> NDArray[np.int64]:
        """The rows to learn from that are held out in some inner fold."""
        return self.train[self.fold >= 0]


@dataclass(frozen=True)
class Plan:
    """What is trained for which metric and cut by which rule: outer splits of `folds` inner folds, and their parts."""

    metric: Metric
    methods: tuple[Method, ...]
    rule: str
    folds: int
    splits: tuple[Split, ...]
    parts: tuple[Part, ...]

    @classmethod
    def make(
        cls,
        table: Table,
        metric: Metric,
        methods: Sequence[Method],
        splits: int,
        folds: int,
        seed: int,
        rule: str = "shrunk",
        ensemble: bool = False,
    ) -> Self:
        """Plan a comparison on a table; a table that cannot be split so is refused."""
        # A metric's scores of some cells tell functions with the same name apart.
        cells = np.random.default_rng(0).integers(1, 1000, (4, 64)).astype(np.float64)
        about_metric = {"metric": str(metric), "probe": _digits(score_cells(metric, Confusion(*cells)))}
        shared = {"protocol": PROTOCOL, "data": digest(table), **about_metric, "folds": folds}
        shared |= {} if table.time is None else {"windows": splits}
        probes = {method.loss: _probe_loss(method.loss, metric) for method in methods}
        parts, baseline = [], baseline_of(methods)
        for k in range(splits):  # if the time is short, all methods have one split before any has two
            for group in sorted(trained_together(methods), key=lambda group: baseline not in group):
                learner, kinds = group[0].learner, tuple(m.loss for m in group)
                own = {"settings": learner.settings, "losses": [probes[loss] for loss in kinds]}
                own |= {"versions": versions("numpy", "polars", learner.package)}
                context = tuple((shared | own).items())
                parts.append(Part(group[0].model, kinds, k, seed, context, ensemble, group[0].given))
        return cls(metric, tuple(methods), rule, folds, tuple(_splits(table, splits, folds, seed)), tuple(parts))

    @classmethod
    def whole(
        cls,
        table: Table,
        metric: Metric,
        methods: Sequence[Method],
        folds: int,
        seed: int,
        rule: str = "shrunk",
        ensemble: bool = False,
    ) -> Self:
        """Plan a fit: all rows are learned from, none is judged by, and no part is kept."""
        fold = _inner(table, folds, seed + 1000)
        only = Split(np.arange(len(table)), np.arange(0), fold, seed)
        parts = (
            Part(group[0].model, tuple(m.loss for m in group), 0, seed, (), ensemble, group[0].given)
            for group in trained_together(methods)
        )
        return cls(metric, tuple(methods), rule, folds, (only,), tuple(parts))


def versions(*packages: str) -> dict[str, str]:
    """The versions of this library and of packages; empty for one that is not installed."""
    found = {"fbeta": __version__, **dict.fromkeys(packages, "")}
    for package in packages:
        for name in (f"{package}-cpu", INSTALLED_AS.get(package, package)):  # xgboost has a package without CUDA
            with suppress(importlib.metadata.PackageNotFoundError):
                found[package] = importlib.metadata.version(name)
    return found


def _splits(table: Table, count: int, folds: int, seed: int) -> list[Split]:
    if table.time is None and table.fewest < OUTER:
        raise TableError(
            f"{table.name} has a class of only {table.fewest} rows or groups of rows: a comparison needs {OUTER}, one "
            "in the test rows of each outer split, so bring more of them."
        )
    found = []
    windows = OUTER if table.time is None else count  # by time there is one deal, and its newest window is tested
    for k in range(count):
        outer = split(table, windows, seed + k // windows)
        train, test = outer.train(k % windows), outer.test(k % windows)
        part = replace(table.take(train), name=f"what split {k + 1} of {table.name} learns from")
        fold = _inner(part, folds, seed + 1000 + k)
        found.append(Split(train, test, fold, seed + k, k // windows))
    return found


def _inner(table: Table, folds: int, seed: int) -> NDArray[np.int64]:
    """The inner fold of each row: a chain where the table has times, if both classes are in every link of one.

    A group of rows is in the fold of its last row, so that no model learns what comes later.
    """
    for count in range(folds, 1, -1) if table.time is not None else ():
        with suppress(TableError):
            fold, last = split(table, count, seed).ids, np.full(int(table.group.max()) + 1, -1)
            np.maximum.at(last, table.group, fold)
            fold = last[table.group]
            links = [table.y[part(k)] for k in range(count) for part in (fold.__lt__, fold.__eq__)]
            if all(0 < y.sum() < len(y) for y in links):
                return fold
    return split(replace(table, time=None), folds, seed).ids


def _probe_loss(name: str, metric: Metric) -> str:
    """A digest of a loss's slopes at some logits, which tells an edited loss from what its name was before.

    A loss that is a model's own changes with the library.
    """
    if name not in losses.names():
        return name
    loss = losses.get(name, metric=metric, class_counts=(48, 16))
    z = torch.linspace(-4, 4, 64, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(loss(z, (torch.arange(64) % 4 == 0).double()), z)
    return _digits(slope)


def _digits(numbers: Iterable[Any]) -> str:
    said = json.dumps([f"{float(x):.6g}" for x in numbers])
    return hashlib.sha256(said.encode()).hexdigest()[:16]

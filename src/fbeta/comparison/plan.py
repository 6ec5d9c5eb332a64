"""What will be trained, as plain data: the same plan gives the same numbers."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fbeta import __version__
from fbeta.comparison.methods import Method
from fbeta.decisions.steps import score_cells
from fbeta.learners import models
from fbeta.metrics import Confusion, Metric
from fbeta.tables import Table, TableError, split
from fbeta.tables.table import digest

#: Outer splits are the folds of one random deal, then of the next: each row is judged about equally often.
OUTER = 5
#: Goes up when the same rows and settings come to lead to other scores.
PROTOCOL = 4


@dataclass(frozen=True)
class Part:
    """What is trained, kept and resumed as one: a model with one loss, or with several that are trained together.

    `context` is what else its scores depend on: rows, metric, folds, settings and versions.
    """

    model: str
    losses: tuple[str, ...]
    split: int
    seed: int
    context: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """For people."""
        losses = self.losses[0] if len(self.losses) == 1 else f"{len(self.losses)}-losses"
        return f"{self.model}-{losses}-split{self.split}"

    @property
    def key(self) -> str:
        """The name of its file: another one for anything that its scores depend on."""
        text = json.dumps(asdict(self), sort_keys=True, default=str)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, eq=False)
class Split:
    """One outer split: rows to learn from with their inner folds, and rows to be judged by.

    Shape: `train` and `test` row numbers; `fold` ``(len(train),)``.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    fold: NDArray[np.int64]
    seed: int


@dataclass(frozen=True)
class Plan:
    """The outer splits that methods are judged on, and the parts in which they are trained, split by split."""

    splits: tuple[Split, ...]
    parts: tuple[Part, ...]

    @classmethod
    def make(cls, table: Table, metric: Metric, methods: Sequence[Method], splits: int, folds: int, seed: int) -> Plan:
        """Plan a comparison on a table; a table that cannot be split so is refused."""
        about_metric = {"metric": str(metric), "probe": _probe(metric)}
        shared = {"protocol": PROTOCOL, "data": digest(table), **about_metric, "folds": folds}
        parts = []
        for k in range(splits):
            for model, losses in trained_together(methods):
                learner = models.get(model)
                own = {"settings": learner.settings, "versions": versions("numpy", "polars", learner.package)}
                parts.append(Part(model, losses, k, seed, tuple((shared | own).items())))
        return cls(tuple(_splits(table, splits, folds, seed)), tuple(parts))


def trained_together(methods: Sequence[Method]) -> list[tuple[str, tuple[str, ...]]]:
    """Each model with the losses that train as one.

    >>> trained_together([Method("linear", "bce"), Method("linear", "soft"), Method("xgboost", "bce")])
    [('linear', ('bce', 'soft')), ('xgboost', ('bce',))]
    """
    groups: list[tuple[str, tuple[str, ...]]] = []
    for model in dict.fromkeys(m.model for m in methods):
        same = tuple(m.loss for m in methods if m.model == model)
        groups += [(model, same)] if models.get(model).together else [(model, (x,)) for x in same]
    return groups


def versions(*packages: str) -> dict[str, str]:
    """The versions of this library and of packages; empty for one that is not installed."""
    found = {"fbeta": __version__, **dict.fromkeys(packages, "")}
    for package in packages:
        for name in (f"{package}-cpu", package):  # xgboost has a package without CUDA
            with suppress(importlib.metadata.PackageNotFoundError):
                found[package] = importlib.metadata.version(name)
    return found


def _splits(table: Table, count: int, folds: int, seed: int) -> list[Split]:
    if table.time is not None and count > OUTER:
        raise ValueError(
            f"By time there are {OUTER} outer splits, and chance makes no more; ask for {OUTER} seeds at most."
        )
    if table.time is None and table.fewest < OUTER:
        raise TableError(
            f"{table.name} has a class of only {table.fewest} rows or groups of rows: a comparison needs {OUTER}, one "
            "in the test rows of each outer split, so bring more of them."
        )
    found = []
    for k in range(count):
        outer = split(table, OUTER, seed + k // OUTER)
        train, test = outer.train(k % OUTER), outer.test(k % OUTER)
        # By time only outside: all of these rows are the past, and each must be held out once.
        part = replace(table.take(train), time=None, name=f"what split {k + 1} of {table.name} learns from")
        found.append(Split(train, test, split(part, folds, seed + 1000 + k).ids, seed + k))
    return found


def _probe(metric: Metric) -> str:
    """A digest of a metric's scores of some cells, which tells functions with the same name apart."""
    cells = np.random.default_rng(0).integers(1, 1000, (4, 64)).astype(np.float64)
    said = json.dumps([f"{x:.9g}" for x in score_cells(metric, Confusion(*cells))])
    return hashlib.sha256(said.encode()).hexdigest()[:16]

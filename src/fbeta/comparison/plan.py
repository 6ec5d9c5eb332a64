"""What is compared, and what will be trained for it, as plain data: the same plan gives the same numbers."""

import hashlib
import importlib.metadata
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fbeta import __version__
from fbeta import losses as all_losses
from fbeta.decisions import as_rule
from fbeta.decisions.steps import score_cells
from fbeta.learners import Learner
from fbeta.learners import models as all_models
from fbeta.learners.machine import device_of
from fbeta.metrics import Confusion, Metric, as_metric
from fbeta.spelling import did_you_mean
from fbeta.tables import Table, TableError, split
from fbeta.tables.table import digest

#: What users name: one, several, or None for those that are there.
Names = str | Sequence[str] | None
#: What people use, the paper's loss, ours, and the metric on soft counts.
DEFAULT_LOSSES = ("bce", "balanced-bce", "focal", "soft", "surrogate", "tangent")
BASELINE = "bce"
#: Outer splits are the folds of one random deal, then of the next: each row is judged about equally often.
OUTER = 5
#: Goes up when the same rows and settings come to lead to other scores.
PROTOCOL = 4


@dataclass(frozen=True)
class Method:
    """A model trained with a loss."""

    model: str
    loss: str

    @property
    def name(self) -> str:
        """As tables show it."""
        return f"{self.model}, {self.loss}"

    @property
    def learner(self) -> Learner:
        """The model, with its settings."""
        return all_models.get(self.model)


def methods_for(models: Names, losses: Names, metric: Metric, *, baseline: bool = True) -> list[Method]:
    """All pairs of a model and a loss it can be trained with; by default only losses that take the metric."""
    chosen = list(dict.fromkeys(_several(models) or all_models.names()))
    for name in chosen:
        all_models.get(name)  # says what is wrong with it
    named, known = _several(losses), all_losses.names()
    for name in named:
        if name not in known:
            raise ValueError(f"Unknown loss {name!r}.{did_you_mean(name, known)} Choices: {', '.join(known)}.")
    asked = named or [name for name in DEFAULT_LOSSES if _takes(name, metric)]
    asked = list(dict.fromkeys([BASELINE, *asked] if baseline else asked))
    pairs = [Method(model, loss) for model in chosen for loss in asked]
    found = [method for method in pairs if method.loss in (method.learner.losses or known)]
    if not found:
        known = list(all_models.get(chosen[0]).losses or ())
        raise ValueError(
            f"{' and '.join(chosen)} cannot be trained with {', '.join(named)}: it has {', '.join(known)}."
        )
    return found


def check(
    metric: Metric | str,
    models: Names = None,
    losses: Names = None,
    *,
    rule: str = "shrunk",
    device: str = "cpu",
    baseline: bool = True,
) -> tuple[Metric, list[Method]]:
    """Refuse what is misspelt before a large table is read; give the metric and the methods.

    >>> check("mcc", ["linear"], rule="exakt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: Unknown rule 'exakt'. Did you mean 'exact'? Choices: ...
    """
    goal = as_metric(metric)
    as_rule(rule)
    device_of(device)
    return goal, methods_for(models, losses, goal, baseline=baseline)


def baseline_of(methods: Sequence[Method]) -> Method:
    """Plain cross entropy of the model that is hardest to beat as a rule."""
    plain = [method for method in methods if method.loss == BASELINE]
    return max(plain, key=lambda method: method.learner.rank)


def _several(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _takes(loss: str, metric: Metric) -> bool:
    try:
        all_losses.get(loss, metric=metric, class_counts=(9, 1))
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Part:
    """A model with one loss, or with several that are trained together; `context` is what else its scores depend on."""

    model: str
    losses: tuple[str, ...]
    split: int
    seed: int
    context: tuple[tuple[str, Any], ...] = ()

    @property
    def key(self) -> str:
        """The name of its file: another one for anything that its scores depend on."""
        losses = self.losses[0] if len(self.losses) == 1 else f"{len(self.losses)}-losses"
        text = json.dumps(asdict(self), sort_keys=True, default=str)
        return f"{self.model}-{losses}-split{self.split}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, eq=False)
class Split:
    """One outer split, by row numbers: rows to learn from with their inner folds, and rows to be judged by."""

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
    def make(cls, table: Table, metric: Metric, methods: Sequence[Method], splits: int, folds: int, seed: int) -> Self:
        """Plan a comparison on a table; a table that cannot be split so is refused."""
        about_metric = {"metric": str(metric), "probe": _probe(metric)}
        shared = {"protocol": PROTOCOL, "data": digest(table), **about_metric, "folds": folds}
        parts = []
        for k in range(splits):
            for model, losses in trained_together(methods):
                learner = all_models.get(model)
                own = {"settings": learner.settings, "versions": versions("numpy", "polars", learner.package)}
                parts.append(Part(model, losses, k, seed, tuple((shared | own).items())))
        return cls(tuple(_splits(table, splits, folds, seed)), tuple(parts))


def trained_together(methods: Sequence[Method]) -> list[tuple[str, tuple[str, ...]]]:
    """Each model with the losses that train as one."""
    groups: list[tuple[str, tuple[str, ...]]] = []
    for model in dict.fromkeys(m.model for m in methods):
        same = tuple(m.loss for m in methods if m.model == model)
        groups += [(model, same)] if all_models.get(model).together else [(model, (x,)) for x in same]
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
